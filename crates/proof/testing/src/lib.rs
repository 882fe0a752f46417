//! What the tests of several crates share; nothing that is shipped depends on it.
//!
//! First a harness for tests that find out only when they run whether they can: one that lacks a right is
//! counted as ignored, with the reason, where libtest would count it as passed.
//!
//! Their file has `harness = false` in its package's `Cargo.toml` and names them in [`tests!`]; the compiler
//! warns of one that is not named, as of any function that nobody calls. Then [`page`].

pub mod page;

use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::process::{Command, ExitCode};
use std::thread;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Makes the `main` that runs these functions as tests.
#[macro_export]
macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::run(&[$((stringify!($test), $test)),+])
        }
    };
}

/// Why a test cannot run here; what unwinds from [`skip`].
struct Skipped(String);

/// Ends the test that calls this, at whatever depth, as ignored; as failed with `BUMPLESS_REQUIRE_ALL=1`.
///
/// A thread that a test waits for may call it, if the test resumes its panic.
pub fn skip(why: &str) -> ! {
    // Past the panic hook: nothing is wrong that it should print.
    resume_unwind(Box::new(Skipped(why.to_owned())))
}

/// Skips the test unless it may do what root may.
pub fn need_root() {
    // The owner of a process's directory is its effective user.
    if std::fs::metadata("/proc/self").is_ok_and(|of| of.uid() != 0) {
        skip("needs root");
    }
}

/// Skips the test unless it can make network namespaces and what is in them.
pub fn need_namespaces() {
    need_root();
    let made = Command::new("unshare")
        .args(["--net", "ip", "link"])
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        skip("needs network namespaces and `ip` (iproute2)");
    }
}

/// Skips the test unless `program`, of Debian's `package`, can be run.
pub fn need_program(program: &str, package: &str) {
    if Command::new(program).arg("-V").output().is_err() {
        skip(&format!("needs `{program}` ({package})"));
    }
}

/// Of what a test does many times: the first to do, and the step to the next one. `BUMPLESS_SLICE=K/N` is every Nth from
/// the Kth on, counted from 0, as CI does what takes long; all without it.
///
/// # Panics
/// If the variable says anything else.
pub fn slice() -> (u64, u64) {
    let Some(said) = std::env::var_os("BUMPLESS_SLICE") else {
        return (0, 1);
    };
    part(&said.to_string_lossy()).unwrap_or_else(|| {
        panic!(
            "BUMPLESS_SLICE is K/N with K below N, not {}",
            said.display()
        )
    })
}

fn part(said: &str) -> Option<(u64, u64)> {
    let (first, step) = said.split_once('/')?;
    let (first, step) = (first.parse().ok()?, step.parse().ok()?);
    (first < step).then_some((first, step))
}

/// Runs tests as libtest would, with its arguments; for [`tests!`].
pub fn run(tests: &[(&'static str, fn())]) -> ExitCode {
    let all = std::env::var_os("BUMPLESS_REQUIRE_ALL").is_some_and(|value| value == "1");
    let trial = |&(name, test)| Trial::ignorable_test(name, move || judge(name, test, all));
    let trials = tests.iter().map(trial).collect();
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or_else(threads);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// How many tests run side by side by `RUST_TEST_THREADS`, which libtest knows and libtest-mimic does not.
fn threads() -> Option<usize> {
    std::env::var("RUST_TEST_THREADS").ok()?.parse().ok()
}

/// What becomes of a test; with `all`, none may be skipped.
fn judge(name: &str, test: fn(), all: bool) -> Result<Completion, Failed> {
    // On a thread of its own, as with libtest: tests change namespaces of theirs.
    let thread = thread::Builder::new().name(name.into()).spawn(test)?;
    let Err(panic) = thread.join() else {
        return Ok(Completion::Completed);
    };
    match panic.downcast::<Skipped>() {
        Ok(why) if all => Err(format!("{}, and BUMPLESS_REQUIRE_ALL=1", why.0).into()),
        Ok(why) => Ok(Completion::ignored_with(why.0)),
        Err(panic) => resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_is_ignored_with_its_reason_and_fails_if_all_must_run() {
        let skipping = || {
            let thread = thread::spawn(|| skip("no rights"));
            resume_unwind(thread.join().unwrap_err())
        };
        assert!(matches!(
            judge("a", skipping, false),
            Ok(Completion::Ignored { reason: Some(why) }) if why == "no rights"
        ));
        assert!(judge("a", skipping, true).is_err());
    }

    #[test]
    fn a_test_that_ends_passes_and_one_that_panics_fails() {
        assert!(matches!(judge("a", || (), true), Ok(Completion::Completed)));
        assert!(
            thread::spawn(|| judge("a", || panic!("wrong"), false))
                .join()
                .is_err()
        );
    }

    #[test]
    fn parts_of_one_number_leave_nothing_out_and_what_is_no_part_is_none() {
        let mut all: Vec<u64> = Vec::new();
        for said in ["0/3", "1/3", "2/3"] {
            let (first, step) = part(said).unwrap();
            all.extend((first..10).step_by(step as usize));
        }
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..10));
        for wrong in ["", "3", "3/3", "0/0", "-1/3", "a/b"] {
            assert_eq!(part(wrong), None, "{wrong}");
        }
    }
}
