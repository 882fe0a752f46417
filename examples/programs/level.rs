// Keeps a level. Inputs: level, set point. Output: valve, 0 to 1.
//
//     rustc --target wasm32-unknown-unknown --crate-type cdylib -O -C link-arg=-zstack-size=16384 level.rs
//     bumpless program test level.wasm --inputs 2 --outputs 1

#[link(wasm_import_module = "bumpless")]
unsafe extern "C" {
    safe fn input(index: i32) -> f64;
    safe fn output(index: i32, value: f64);
    safe fn period_ns() -> i64;
}

static mut INTEGRAL: f64 = 0.0;

#[unsafe(no_mangle)]
pub extern "C" fn cycle() {
    let error = input(1) - input(0);
    let step = period_ns() as f64 * 1e-9;
    // SAFETY: a module has one thread.
    let integral = unsafe {
        INTEGRAL = (INTEGRAL + error * step).clamp(-10.0, 10.0);
        INTEGRAL
    };
    output(0, (0.8 * error + 0.1 * integral).clamp(0.0, 1.0));
}
