//! `bumpless plan --calibrate`: from a measurement over loopback to a plan that uses it.

mod support;

use std::path::{Path, PathBuf};

use bumpless_config::Config;
use serde_json::Value;
use support::addresses::Addresses;
use support::process::{Process, bumpless, outcome};
use support::wait_for;
use tempfile::TempDir;

struct Pair {
    directory: TempDir,
    config: PathBuf,
    text: String,
}

impl Pair {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let addresses = Addresses::find();
        let node = |name: &str, at: u8| {
            let control = directory.path().join(format!("{name}.sock"));
            format!(
                "[[node]]\nname = \"{name}\"\naddresses = {{ A = \"{}\" }}\ncontrol = \"{}\"\n",
                addresses.node(0, at),
                control.display()
            )
        };
        let text = format!(
            "[pair]\nname = \"measured\"\n[[network]]\nname = \"A\"\nbandwidth_mbit = 10000\n{}{}\
             [[group]]\nname = \"g\"\nnodes = [\"left\", \"right\"]\nwithout_reference = true\n\
             [[application]]\nname = \"app\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 1\n\
             period_ms = 1000\nsize = \"1 MB\"\n",
            node("left", 0),
            node("right", 1)
        );
        let config = directory.path().join("pair.toml");
        std::fs::write(&config, &text).unwrap();
        Self {
            directory,
            config,
            text,
        }
    }

    fn path(&self) -> &str {
        self.config.to_str().unwrap()
    }

    fn plan(&self, more: &[&str]) -> (String, String, Option<i32>) {
        let mut arguments = vec!["plan", self.path()];
        arguments.extend(more);
        outcome(&bumpless(&arguments))
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".lock"))
            .collect();
        names.sort();
        names
    }
}

#[test]
fn measured_costs_are_kept_and_used_and_refused_for_another_network() {
    let pair = Pair::new();
    let (said, errors, status) = pair.plan(&["--calibrate", "--rounds", "9"]);
    assert_eq!(status, Some(0), "{said} {errors}");
    assert!(
        said.contains("left to right on A: ") && said.contains("right to left on A: "),
        "{said}"
    );
    assert!(said.contains("\n    1000000 "), "{said}");
    assert_eq!(pair.files(), ["pair.costs.json", "pair.toml"]);

    let kept = std::fs::read_to_string(pair.config.with_extension("costs.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["schema"], "bumpless.costs/1");
    let paths = kept["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2);
    for path in paths {
        let sizes = path["sizes"].as_array().unwrap();
        let largest = sizes
            .iter()
            .map(|size| size["size"].as_u64().unwrap())
            .max();
        assert_eq!(
            (sizes[0]["size"].as_u64(), largest),
            (Some(0), Some(9_000_000))
        );
        let mut of_verification = sizes.iter().filter(|size| size["size"] == 1_000_000);
        assert_eq!(of_verification.next(), None);
        assert!(path["held_out_error"].as_f64().unwrap() > 0.0);
    }

    let (said, errors, _) = pair.plan(&[]);
    assert!(
        said.contains("With the costs measured on ") && said.contains("pair.costs.json"),
        "{said} {errors}"
    );
    let json: Value = serde_json::from_str(&pair.plan(&["--json"]).0).unwrap();
    assert_eq!(json["costs"]["measured_unix_s"], kept["measured_unix_s"]);
    let typical = json["costs"]["typical"][0]["nanoseconds"].as_f64().unwrap();
    assert!(typical > 0.0);
    let jitter = &json["senders"][0]["machine"]["jitter_ns"];
    let measured = kept["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["jitter"]["p9999_ns"]);
    assert_eq!(
        jitter.as_u64(),
        measured.map(|late| late.as_u64().unwrap()).max()
    );

    let other = pair
        .text
        .replace("name = \"A\"\n", "name = \"A\"\nmtu = 9000\n");
    std::fs::write(&pair.config, other).unwrap();
    let (_, errors, status) = pair.plan(&[]);
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("the mtu was 1500") && errors.contains("calibrate again"),
        "{errors}"
    );
}

#[test]
fn a_node_that_runs_is_not_measured() {
    let pair = Pair::new();
    let config = Config::parse(&pair.text, "test").unwrap();
    let _running = bumpless_node::lock(&config, config.node("right").unwrap()).unwrap();
    let (_, errors, status) = pair.plan(&["--calibrate"]);
    assert_eq!(status, Some(1));
    assert!(
        errors.contains("'right'") && errors.contains("already running"),
        "{errors}"
    );
    assert_eq!(pair.files(), ["pair.toml"]);
}

#[test]
fn an_interrupted_measurement_keeps_nothing() {
    let pair = Pair::new();
    let log = pair.directory.path().join("said");
    let process = Process::start(&["plan", pair.path(), "--calibrate"], &log);
    wait_for("progress", || {
        process.said().contains(" left ").then_some(())
    });
    process.signal(libc::SIGINT);
    let status = process.wait();
    assert_eq!(status.code(), Some(1), "{}", read(&log));
    assert!(
        read(&log).contains("stopped; nothing was kept"),
        "{}",
        read(&log)
    );
    assert_eq!(pair.files(), ["pair.toml", "said"]);
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn what_cannot_be_measured_is_refused_with_its_remedy() {
    let pair = Pair::new();
    let cases: [(&[&str], i32, &str); 4] = [
        (&["--calibrate", "--verify"], 2, "without --verify first"),
        (
            &["--calibrate", "--node", "middle"],
            2,
            "no node is called 'middle'",
        ),
        (&["--verify"], 2, "--calibrate"),
        (&["--costs", "elsewhere.json"], 2, "elsewhere.json"),
    ];
    for (arguments, expected, words) in cases {
        let (_, errors, status) = pair.plan(arguments);
        assert_eq!(status, Some(expected), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    std::fs::write(pair.config.with_extension("costs.json"), "{}").unwrap();
    let (_, errors, status) = pair.plan(&[]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("calibrate again"), "{errors}");
}
