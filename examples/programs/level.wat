;; Keeps a level. Inputs: level, set point. Output: valve, 0 to 1.
;;
;;     wat2wasm level.wat
;;     bumpless program test level.wasm
(module
  (import "bumpless" "input" (func $input (param i32) (result f64)))
  (import "bumpless" "output" (func $output (param i32 f64)))
  (import "bumpless" "period_ns" (func $period_ns (result i64)))
  (global $integral (mut f64) (f64.const 0))
  (func (export "bumpless_inputs") (result i32) i32.const 2)
  (func (export "bumpless_outputs") (result i32) i32.const 1)
  (func $limited (param $value f64) (param $low f64) (param $high f64) (result f64)
    (f64.min (f64.max (local.get $value) (local.get $low)) (local.get $high)))
  (func (export "cycle") (local $error f64)
    (local.set $error
      (f64.sub (call $input (i32.const 1)) (call $input (i32.const 0))))
    (global.set $integral
      (call $limited
        (f64.add (global.get $integral)
          (f64.mul (local.get $error)
            (f64.mul (f64.convert_i64_s (call $period_ns)) (f64.const 1e-9))))
        (f64.const -10) (f64.const 10)))
    (call $output (i32.const 0)
      (call $limited
        (f64.add
          (f64.mul (f64.const 0.8) (local.get $error))
          (f64.mul (f64.const 0.1) (global.get $integral)))
        (f64.const 0) (f64.const 1)))))
