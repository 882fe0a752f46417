#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bumpless_harness::keys::run(input));
