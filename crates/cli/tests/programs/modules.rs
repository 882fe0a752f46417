//! The program as a WebAssembly module, and its next version (A-17, G-31).

use std::fs;

use crate::support::process::{Process, said};
use crate::support::site::Site;
use crate::versions::MORE;
use crate::{expected, plan, written};

/// One cycle, as `step` computes it: its second output is `more` higher, and it traps in each cycle after `until`, when its
/// work is half done.
fn cycle(until: u64, more: f64) -> String {
    format!(
        r#"(func (export "bumpless_inputs") (result i32) i32.const 3)
            (func (export "bumpless_outputs") (result i32) i32.const 2)
            (func (export "cycle") (local $next f64)
                (global.set $count (i64.add (global.get $count) (i64.const 1)))
                (local.set $next (f64.add
                    (f64.mul (global.get $sum) (f64.const 1.25))
                    (f64.convert_i64_u (global.get $count))))
                (global.set $sum (f64.sub (local.get $next) (f64.mul (f64.const 10)
                    (f64.floor (f64.div (local.get $next) (f64.const 10))))))
                (call $output (i32.const 0) (global.get $sum))
                (if (i64.gt_u (global.get $count) (i64.const {until})) (then unreachable))
                (call $output (i32.const 1) (f64.add (f64.const {more})
                    (f64.convert_i64_u (i64.rem_u (global.get $count) (i64.const 10))))))"#
    )
}

/// The program; with `until`, it traps in each cycle after that.
pub fn module(until: u64) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "bumpless" "output" (func $output (param i32 f64)))
            (global $sum (export "sum") (mut f64) (f64.const 0))
            (global $count (export "count") (mut i64) (i64.const 0))
            {})"#,
        cycle(until, 0.0)
    );
    wat::parse_str(text).unwrap()
}

/// The next version, which has the same elsewhere in its state, and a memory; its conversion ends with `answer`.
fn next_version(answer: i32) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "bumpless" "output" (func $output (param i32 f64)))
            (import "bumpless" "old_global" (func $old_global (param i32 i32) (result i64)))
            (memory 1)
            (data (i32.const 0) "sumcount")
            (global $trips (mut i64) (i64.const 0))
            (global $count (mut i64) (i64.const 0))
            (global $sum (mut f64) (f64.const 0))
            (func (export "bumpless_convert") (result i32)
                (global.set $sum
                    (f64.reinterpret_i64 (call $old_global (i32.const 0) (i32.const 3))))
                (global.set $count (call $old_global (i32.const 3) (i32.const 5)))
                (i32.store (i32.const 4096) (i32.const 7))
                (i32.const {answer}))
            {})"#,
        cycle(u64::MAX >> 1, MORE)
    );
    wat::parse_str(text).unwrap()
}

/// The configuration with another module.
fn next_config(site: &Site, module: &str) -> String {
    let path = site.path("next.toml");
    let text = fs::read_to_string(site.config()).unwrap();
    let text = text.replace("file = \"ramp\"", &format!("file = \"{module}\""));
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn is_changed(site: &Site) -> bool {
    let text = fs::read_to_string(site.config()).unwrap();
    text.contains("file = \"ramp-2\"")
}

/// A-18: with the primary killed while the change is being made, and again after it, each output is that of its cycle in a run
/// without faults, by one version and then by the other.
pub fn a_modules_next_version_goes_on_with_what_it_makes_of_the_state_through_kills() {
    let mut plan = plan("wasm", "", ["", ""]);
    plan.group = "hot_restart_ms = 120000".into();
    let mut site = Site::new(plan);
    fs::write(site.path("ramp"), module(u64::MAX >> 1)).unwrap();
    fs::write(site.path("ramp-2"), next_version(0)).unwrap();
    fs::write(site.path("ramp-3"), next_version(1)).unwrap();
    site.start_witnesses();
    site.start_plant(&["--check-epoch"]);
    site.start("left");
    site.start("right");
    let (primary, backup, epoch) = site.await_redundant("tank");
    site.await_writes(5);
    let config = site.config().display().to_string();

    let (stdout, stderr, status) = said(&["apply", &config, &next_config(&site, "ramp-3")]);
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    let refused = "its bumpless_convert says so by a number other than 0";
    assert!(stderr.contains(refused), "{stderr}");

    let next = next_config(&site, "ramp-2");
    let change = Process::start(
        &["apply", &config, &next, "--wait", "3"],
        &site.path("apply.said"),
    );
    site.await_status("it is on its way", &primary, |status| {
        !status["configuration"]["change"].is_null() || is_changed(&site)
    });
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    site.await_write_in(higher);
    change.wait();
    site.start(&primary);
    let (primary, backup, _) = site.await_redundant("tank");
    println!("killed in mid-change: made {}", is_changed(&site));
    if !is_changed(&site) {
        let (stdout, stderr, status) = said(&["apply", &config, &next]);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
    }
    site.await_writes(5);
    site.kill(&primary);
    let higher = site.await_primary(&backup, "tank");
    site.await_write_in(higher);
    site.await_writes(5);
    site.writes().judge();
    let of_the_next = |(cycle, [sum, count]): &(u64, [f32; 2])| {
        let [expected_sum, expected_count] = expected(*cycle);
        assert_eq!(
            *sum, expected_sum,
            "cycle {cycle} goes on from the one before"
        );
        let more = f64::from(count - expected_count);
        assert!(more == 0.0 || more == MORE, "cycle {cycle}: {more}");
        more == MORE
    };
    let written = written(&site);
    assert!(written.windows(2).all(|pair| pair[1].0 >= pair[0].0));
    let versions: Vec<_> = written.iter().map(of_the_next).collect();
    assert_eq!(
        (versions.first(), versions.last()),
        (Some(&false), Some(&true))
    );
}
