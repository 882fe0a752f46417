//! What the black-box tests share: a pair of their own on addresses of their own, made of separate
//! processes that end with the test, and judges of what these processes left behind.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod addresses;
pub mod attacker;
pub mod change;
pub mod forge;
pub mod hosts;
pub mod junk;
pub mod liar;
pub mod modbus;
pub mod plan;
pub mod plc;
pub mod process;
pub mod site;
pub mod stalls;
pub mod state_file;
pub mod wan;
pub mod writes;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a test waits for what must happen at last. No verdict depends on how long it took.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until `condition` gives something.
pub fn wait_for<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    try_for(TIMEOUT, condition).unwrap_or_else(|| panic!("waited in vain for: {what}"))
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// What `condition` gives within `limit`.
pub fn try_for<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        let got = condition();
        if got.is_some() || started.elapsed() > limit {
            return got;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Lets the processes under test run for a while.
pub fn let_run(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// The JSON lines of `path`; a last line that is still being written is left out.
pub fn json_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}
