//! Two applications whose versions change together: what two plants were told, in order of time.

use std::fs;
use std::net::SocketAddr;

use serde_json::Value;

use crate::support::plan::Plan;
use crate::support::process::{Process, said};
use crate::support::site::Site;
use crate::support::{json_lines, wait_until};
use crate::versions::MORE;
use crate::{expected, plan, put_process};

/// Applications, with the logs of their plants.
const BOTH: [(&str, &str); 2] = [("ramp", "plant.jsonl"), ("slow", "slow-plant.jsonl")];

/// A pair that runs the program twice, with a period of 50 ms and one of 80 ms, each with a plant of its own.
struct Twice {
    site: Site,
    /// The second one's plant.
    _plant: Process,
}

/// One that was written: when, by which application, in which cycle, and what.
struct Write {
    at_ns: u64,
    name: &'static str,
    cycle: u64,
    outputs: [f32; 2],
}

impl Write {
    fn is_next(&self) -> bool {
        let [sum, count] = self.outputs;
        let [expected_sum, expected_count] = expected(self.cycle);
        let (name, cycle) = (self.name, self.cycle);
        assert_eq!(sum, expected_sum, "{name}, cycle {cycle}: another state");
        let more = f64::from(count - expected_count);
        assert!(more == 0.0 || more == MORE, "{name}, cycle {cycle}: {more}");
        more == MORE
    }
}

fn second_plant(first: SocketAddr) -> SocketAddr {
    (first.ip(), first.port() + 1).into()
}

impl Twice {
    fn running() -> Self {
        let mut plan: Plan = plan("process", "arguments = [\"play\"]", ["", ""]);
        plan.group = "hot_restart_ms = 120000".into();
        let (first, second) = (plan.plant, second_plant(plan.plant));
        let slow = plan.applications[0]
            .replace("name = \"ramp\"", "name = \"slow\"")
            .replace("channel = 1", "channel = 2")
            .replace("period_ms = 50", "period_ms = 80")
            .replace(&first.to_string(), &second.to_string());
        plan.applications.push(slow);
        let mut site = Site::new(plan);
        put_process(&site, "ramp");
        site.start_witnesses();
        site.start_plant(&["--check-epoch"]);
        let log = site.path(BOTH[1].1).display().to_string();
        let said = site.path("slow-plant.said");
        let listen = second.to_string();
        let arguments = ["plant", "--listen", &listen, "--log", &log, "--check-epoch"];
        let plant = Process::start(&arguments, &said);
        wait_until("the second plant listens", || {
            fs::read_to_string(&said).is_ok_and(|said| said.contains("listens"))
        });
        site.start("left");
        site.start("right");
        site.await_redundant("tank");
        Self {
            site,
            _plant: plant,
        }
    }

    /// Writes what changes both to the versions of these words, together.
    fn next(&self, ramp: &str, slow: &str) -> String {
        let path = self.site.path("next.toml");
        let text = fs::read_to_string(self.site.config()).unwrap();
        let mut pieces = text.splitn(3, "arguments = [\"play\"]");
        let mut piece = || pieces.next().unwrap();
        let (head, between, tail) = (piece(), piece(), piece());
        let text = format!(
            "[change]\ntogether = true\n\n{head}arguments = [{ramp}]{between}arguments = [{slow}]{tail}"
        );
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn apply(&self, next: &str) -> (String, String, Option<i32>) {
        let config = self.site.config().display().to_string();
        said(&["apply", &config, next])
    }

    fn is_changed(&self) -> bool {
        let text = fs::read_to_string(self.site.config()).unwrap();
        !text.contains("arguments = [\"play\"]")
    }

    /// What both plants have accepted, in order of time.
    fn written(&self) -> Vec<Write> {
        let write = |name, line: &Value| {
            let output = |at: usize| line["outputs"][at].as_f64().unwrap() as f32;
            Write {
                at_ns: line["at_ns"].as_u64().unwrap(),
                name,
                cycle: line["cycle"].as_u64().unwrap(),
                outputs: [output(0), output(1)],
            }
        };
        let mut all = Vec::new();
        for (name, log) in BOTH {
            let lines = json_lines(&self.site.path(log));
            let accepted = lines
                .iter()
                .filter(|line| line["type"] == "write" && line["accepted"] == true);
            all.extend(accepted.map(|line| write(name, line)));
        }
        all.sort_by_key(|write| write.at_ns);
        all
    }

    /// Waits for this many more writes of each application.
    fn await_writes(&self, more: usize) {
        let counts = || {
            let written = self.written();
            BOTH.map(|(name, _)| written.iter().filter(|write| write.name == name).count())
        };
        let before = counts();
        wait_until("more writes of both", || {
            counts()
                .iter()
                .zip(before)
                .all(|(now, before)| *now >= before + more)
        });
    }

    /// Waits until both have written in their next version: an order that a kill has interrupted goes on when both nodes are
    /// there again, after whatever the test has done meanwhile.
    fn await_both_next(&self) {
        wait_until("both next versions", || {
            let written = self.written();
            BOTH.iter().all(|(name, _)| {
                let mut own = written.iter().filter(|write| write.name == *name);
                own.any(Write::is_next)
            })
        });
    }

    /// Each output is that of its cycle in a run without faults, no application goes back, and once one has written in its next
    /// version, no other one writes in the version before.
    fn judge(&self) {
        self.site.writes().judge();
        let written = self.written();
        for (name, _) in BOTH {
            let own = written.iter().filter(|write| write.name == name);
            let cycles: Vec<_> = own.map(|write| write.cycle).collect();
            assert!(cycles.is_sorted(), "{name}: {cycles:?}");
        }
        let next = written.iter().map(Write::is_next).collect::<Vec<_>>();
        let told = || {
            let line = |write: &Write| {
                let (at, name, cycle) = (write.at_ns, write.name, write.cycle);
                format!("{at} {name} {cycle} {}\n", write.is_next())
            };
            written.iter().map(line).collect::<String>()
        };
        assert!(next.is_sorted(), "both versions in turn:\n{}", told());
        assert_eq!((next.first(), next.last()), (Some(&false), Some(&true)));
        let first = next.iter().position(|it| *it).unwrap();
        for (name, _) in BOTH {
            assert!(written[first..].iter().any(|write| write.name == name));
        }
    }
}

pub fn two_versions_change_together_and_none_before_writes_after() {
    let twice = Twice::running();
    twice.await_writes(3);
    let (stdout, stderr, status) = twice.apply(&twice.next("\"more\"", "\"wider\", \"more\""));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(
        stdout.contains("tuned: ramp, slow, all together or none"),
        "{stdout}"
    );
    twice.await_writes(5);
    twice.judge();
}

/// Kills the primary when an application has written in its next version: whoever takes over runs both next versions.
pub fn who_takes_over_right_after_the_moment_runs_both_next_versions() {
    let mut twice = Twice::running();
    twice.await_writes(3);
    let (primary, backup, epoch) = twice.site.await_redundant("tank");
    let config = twice.site.config().display().to_string();
    let next = twice.next("\"more\"", "\"wider\", \"more\"");
    let change = Process::start(
        &["apply", &config, &next, "--wait", "3"],
        &twice.site.path("apply.said"),
    );
    wait_until("an output of a next version", || {
        twice.written().iter().any(Write::is_next)
    });
    twice.site.kill(&primary);
    let higher = twice.site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    twice.site.await_write_in(higher);
    change.wait();
    twice.await_writes(5);
    twice.site.start(&primary);
    twice.site.await_redundant("tank");
    twice.await_writes(3);
    twice.judge();
}

pub fn a_primary_killed_in_mid_change_leaves_both_before_or_both_next() {
    let mut twice = Twice::running();
    twice.await_writes(3);
    let (primary, backup, epoch) = twice.site.await_redundant("tank");
    let config = twice.site.config().display().to_string();
    let next = twice.next("\"wider\", \"more\"", "\"more\"");
    let change = Process::start(
        &["apply", &config, &next, "--wait", "3"],
        &twice.site.path("apply.said"),
    );
    twice
        .site
        .await_status("it is on its way", &primary, |status| {
            !status["configuration"]["change"].is_null() || twice.is_changed()
        });
    twice.site.kill(&primary);
    let higher = twice.site.await_primary(&backup, "tank");
    assert!(higher > epoch);
    twice.site.await_write_in(higher);
    change.wait();
    twice.site.start(&primary);
    twice.site.await_redundant("tank");
    println!("killed in mid-change: made {}", twice.is_changed());
    if !twice.is_changed() {
        let (stdout, stderr, status) = twice.apply(&next);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
    }
    twice.await_both_next();
    twice.await_writes(5);
    twice.judge();
}

pub fn of_two_versions_one_that_cannot_convert_keeps_both_from_it() {
    let twice = Twice::running();
    twice.await_writes(3);
    let (stdout, stderr, status) = twice.apply(&twice.next("\"more\"", "\"wider\", \"refuses\""));
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    assert!(
        stderr.contains("'slow'") && stderr.contains("the count is odd"),
        "{stderr}"
    );
    twice.await_writes(3);
    assert!(!twice.written().iter().any(Write::is_next));
    assert!(!twice.is_changed());

    // The fifth to seventh conversion fail: on the primary when both stand still, and in the next two trials.
    let (stdout, stderr, status) =
        twice.apply(&twice.next("\"more\"", "\"wider\", \"falters\", \"more\""));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let (primary, ..) = twice.site.await_redundant("tank");
    twice
        .site
        .await_status("neither has changed", &primary, |status| {
            let weaknesses = status["weaknesses"].to_string();
            weaknesses.contains("'ramp', 'slow' change together and go on as they were")
                && weaknesses.contains("less and less often")
        });
    assert!(!twice.written().iter().any(Write::is_next));
    twice.await_both_next();
    let told: Vec<_> = ["left", "right"]
        .iter()
        .flat_map(|node| twice.site.events_of(node, "configuration"))
        .map(|line| line.to_string())
        .collect();
    let as_they_were = |line: &String| {
        line.contains("'ramp', 'slow' change together and go on as they were: 'slow'")
    };
    assert!(told.iter().any(as_they_were), "{told:?}");
    twice.await_writes(3);
    twice.judge();
    for node in ["left", "right"] {
        twice
            .site
            .await_status("no weakness is left", node, |status| {
                !status["weaknesses"].to_string().contains("as they were")
            });
    }
}
