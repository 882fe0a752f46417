//! What goes wrong with programs, one test for each.

mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = common::programs::played() {
        return code;
    }
    bumpless_testing::run(&[])
}
