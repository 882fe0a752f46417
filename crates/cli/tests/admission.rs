//! What `bumpless run` makes of the plan's answer.

mod support;

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use support::addresses::Addresses;
use support::plan::Plan;
use support::process::{Process, bumpless, outcome};
use support::site::Site;

/// A tank every 50 ms over networks on which an answer takes up to 100 ms.
fn slow_networks() -> Plan {
    let mut plan = Plan::pair(2).tank(50, "");
    plan.network = "round_trip_max_ms = 100".into();
    plan
}

#[test]
fn run_refuses_what_the_plan_refuses_with_reasons_and_remedy() {
    let site = Site::new(slow_networks());
    let config = site.config();
    let (said, errors, status) = outcome(&bumpless(&[
        "run",
        config.to_str().unwrap(),
        "--node",
        "left",
    ]));
    assert_eq!((status, said.as_str()), (Some(1), ""), "{errors}");
    for part in [
        "the plan refuses this configuration",
        "too much in the 25.0 ms",
        "ask `bumpless plan`",
        "run_although_refused = true in [plan]",
    ] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    assert!(!site.socket("left").exists());
}

#[test]
fn run_although_refused_says_so_in_status_for_as_long_as_it_runs() {
    let mut plan = slow_networks();
    plan.transfer = "[plan]\nrun_although_refused = true".into();
    let mut site = Site::new(plan);
    site.start_surroundings();
    site.start("left");
    site.await_primary("left", "tank");
    let status = site.status("left").unwrap();
    assert_eq!(status["plan"]["verdict"], "no");
    assert!(!status["plan"]["reasons"].as_array().unwrap().is_empty());
    let told = |text: &str| text.contains("runs although the plan refuses this configuration");
    let weaknesses = status["weaknesses"].as_array().unwrap();
    assert!(
        weaknesses
            .iter()
            .any(|weakness| told(weakness.as_str().unwrap())),
        "{status}"
    );
    let config = site.config();
    let (said, ..) = outcome(&bumpless(&[
        "status",
        config.to_str().unwrap(),
        "--node",
        "left",
    ]));
    assert!(told(&said), "{said}");
}

#[test]
fn a_node_that_the_plan_admits_says_so_in_status() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    site.start("left");
    site.await_primary("left", "tank");
    assert_eq!(site.status("left").unwrap()["plan"]["verdict"], "yes");
}

/// Tests start processes side by side. One that has not yet become its program holds the sockets of the test that
/// started it.
#[test]
fn addresses_found_free_stay_free_although_processes_start_meanwhile() {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for name in ["one", "other"] {
            let ended = &ended;
            scope.spawn(move || {
                let said =
                    std::env::temp_dir().join(format!("bumpless-{}-{name}", std::process::id()));
                while !ended.load(Ordering::Relaxed) {
                    drop(Process::start(&["--version"], &said));
                }
                let _ = std::fs::remove_file(said);
            });
        }
        let taken = (0..300).filter(|_| {
            let witness = Addresses::find().witness(0);
            UdpSocket::bind(witness).is_err()
        });
        let taken = taken.count();
        ended.store(true, Ordering::Relaxed);
        assert_eq!(taken, 0);
    });
}
