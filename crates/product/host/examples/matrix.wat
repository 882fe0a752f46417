;; Computes: in each cycle the state of a linear observer with 24 states is advanced once, x := A x + B u, and a PI controller
;; works on its output. Inputs: measured, set point. Output: 0 to 1.
(module
  (import "bumpless" "input" (func $input (param i32) (result f64)))
  (import "bumpless" "output" (func $output (param i32 f64)))
  (memory 1)
  (global $integral (mut f64) (f64.const 0))
  ;; A at 0, by rows; x at 8192; the next x at 16384.
  (func (export "_initialize") (local $i i32) (local $j i32)
    (loop $rows
      (local.set $j (i32.const 0))
      (loop $columns
        (f64.store (i32.add (i32.mul (local.get $i) (i32.const 192)) (i32.mul (local.get $j) (i32.const 8)))
          (f64.div (f64.const 0.9)
            (f64.convert_i32_u (i32.add (i32.const 24) (i32.mul (local.get $i) (local.get $j))))))
        (br_if $columns (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (i32.const 24))))
      (br_if $rows (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 24)))))
  (func $row (param $i i32) (result f64) (local $j i32) (local $sum f64)
    (loop $columns
      (local.set $sum (f64.add (local.get $sum)
        (f64.mul
          (f64.load (i32.add (i32.mul (local.get $i) (i32.const 192)) (i32.mul (local.get $j) (i32.const 8))))
          (f64.load offset=8192 (i32.mul (local.get $j) (i32.const 8))))))
      (br_if $columns (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (i32.const 24))))
    (local.get $sum))
  (func (export "cycle") (local $i i32) (local $error f64)
    (loop $rows
      (f64.store offset=16384 (i32.mul (local.get $i) (i32.const 8))
        (f64.add (call $row (local.get $i)) (f64.mul (f64.const 0.01) (call $input (i32.const 0)))))
      (br_if $rows (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 24))))
    (memory.copy (i32.const 8192) (i32.const 16384) (i32.const 192))
    (local.set $error (f64.sub (call $input (i32.const 1)) (f64.load (i32.const 8192))))
    (global.set $integral (f64.max (f64.const -10) (f64.min (f64.const 10)
      (f64.add (global.get $integral) (f64.mul (local.get $error) (f64.const 0.01))))))
    (call $output (i32.const 0) (f64.max (f64.const 0) (f64.min (f64.const 1)
      (f64.add (f64.mul (f64.const 0.8) (local.get $error)) (f64.mul (f64.const 0.1) (global.get $integral)))))))
)
