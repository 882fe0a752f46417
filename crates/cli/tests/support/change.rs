//! A pair that is to change while it runs, and what a change must leave as it was.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::plan::Plan;
use super::process::{Process, bumpless, outcome};
use super::site::Site;
use super::{wait_for, wait_until};

pub const BOTH: [&str; 2] = ["left", "right"];

/// An application of the group `tank`; `more` are further lines.
pub fn application(name: &str, channel: u32, period_ms: u32, more: &str) -> String {
    format!(
        "[[application]]\nname = \"{name}\"\ngroup = \"tank\"\nkind = \"synthetic\"\nchannel = {channel}\n\
         period_ms = {period_ms}\nsize = 2000\n{more}\n"
    )
}

/// A pair that can change.
pub struct Pair {
    pub site: Site,
}

impl Pair {
    /// With these applications; it runs and is redundant.
    pub fn running(applications: &[String]) -> Self {
        let mut plan = Plan::pair(2);
        plan.applications = applications.to_vec();
        Self::start(plan, true)
    }

    pub fn start(plan: Plan, log_transfers: bool) -> Self {
        let mut site = Site::new(plan);
        if log_transfers {
            site.run_options = vec!["--log-transfers"];
        }
        site.start_surroundings();
        BOTH.iter().for_each(|node| site.start(node));
        let pair = Self { site };
        pair.site.await_redundant("tank");
        pair
    }

    /// Writes a configuration with these applications to a file of this name.
    pub fn write(&self, name: &str, applications: &[String]) -> String {
        let mut plan = self.site.plan.clone();
        plan.applications = applications.to_vec();
        self.write_plan(name, &plan)
    }

    pub fn write_plan(&self, name: &str, plan: &Plan) -> String {
        let path = self.site.path(name);
        let directory = path.parent().unwrap();
        fs::write(&path, plan.text(directory)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// `bumpless apply` with the pair's file and `more`.
    pub fn apply(&self, more: &[&str]) -> (String, String, Option<i32>) {
        outcome(&bumpless(&self.arguments(more)))
    }

    pub fn arguments(&self, more: &[&str]) -> Vec<String> {
        let config = self.site.config().to_str().unwrap().to_owned();
        let more = more.iter().map(|&argument| argument.to_owned());
        ["apply".to_owned(), config]
            .into_iter()
            .chain(more)
            .collect()
    }

    /// Starts `bumpless apply` without waiting for its end.
    pub fn begin(&self, more: &[&str], name: &str) -> Process {
        Process::start(&self.arguments(more), &self.site.path(name))
    }

    pub fn change(&self, applications: &[String]) {
        let new = self.write("next.toml", applications);
        let (said, error, status) = self.apply(&[&new]);
        assert_eq!(status, Some(0), "{said}{error}");
    }

    pub fn file(&self) -> String {
        fs::read_to_string(self.site.config()).unwrap()
    }

    /// Files of a change that is not made.
    pub fn drafts(&self) -> Vec<PathBuf> {
        let config = self.site.config();
        let files = fs::read_dir(config.parent().unwrap()).unwrap();
        let files = files.map(|file| file.unwrap().path());
        files
            .filter(|file| file.to_str().unwrap().contains("pair.toml."))
            .collect()
    }

    /// What `node` says of its configuration: fingerprint, and what a change is about.
    pub fn configuration(&self, node: &str) -> Option<(String, Option<String>)> {
        let configuration = self.site.status(node)?["configuration"].take();
        let fingerprint = configuration["fingerprint"].as_str()?.to_owned();
        Some((
            fingerprint,
            configuration["change"].as_str().map(str::to_owned),
        ))
    }

    /// The fingerprint that both nodes have in force; panics if they differ or a change is under way.
    pub fn in_force(&self) -> String {
        let [left, right] = BOTH.map(|node| self.configuration(node).unwrap());
        assert_eq!(left, right);
        assert_eq!(left.1, None);
        left.0
    }

    /// Waits until both nodes have the same in force, and nothing is under way.
    pub fn await_settled(&self) -> String {
        wait_for("one configuration on both nodes", || {
            let [left, right] = BOTH.map(|node| self.configuration(node));
            let (left, right) = (left?, right?);
            (left == right && left.1.is_none()).then_some(left.0)
        })
    }

    pub fn names(&self, node: &str) -> Vec<String> {
        let status = self.site.status(node).unwrap();
        let applications = status["applications"].as_array().unwrap();
        let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
        applications.iter().map(name).collect()
    }

    pub fn await_prepared(&self, node: &str) {
        wait_until("the change is prepared", || {
            let change = self.configuration(node).and_then(|(_, change)| change);
            change.is_some_and(|change| change.starts_with("prepared here"))
        });
    }

    /// Everything that was logged of `application`, by both nodes, in order of time.
    pub fn events(&self, event: &str, application: &str) -> Vec<Value> {
        let mut all: Vec<_> = BOTH
            .iter()
            .flat_map(|node| self.site.events_of(node, event))
            .filter(|line| line["application"] == application)
            .collect();
        all.sort_by_key(|line| line["time_ns"].as_u64());
        all
    }

    pub fn written(&self, application: &str) -> Vec<u64> {
        let outputs = self.events("output", application);
        let written = outputs.iter().filter(|line| line["outcome"] == "written");
        written
            .map(|line| line["cycle"].as_u64().unwrap())
            .collect()
    }

    pub fn await_cycles(&self, application: &str, more: usize) {
        let before = self.written(application).len();
        wait_until("further cycles", || {
            self.written(application).len() >= before + more
        });
    }

    /// Every cycle was executed, its outputs written once, and its state safe, unless the machine stood
    /// still meanwhile.
    pub fn judge(&self, application: &str) {
        let written = self.written(application);
        assert!(written.len() > 3, "{application}: {written:?}");
        assert!(
            written.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{application}: {written:?}"
        );
        let outputs = self.events("output", application);
        // Until the pair has found its roles there is nothing to lose.
        let not_written = |line: &&Value| line["outcome"] != "written";
        let held: Vec<_> = outputs
            .iter()
            .skip_while(not_written)
            .filter(not_written)
            .collect();
        assert!(held.iter().all(|line| self.stood_still(line)), "{held:?}");
        let transfers = self.events("transfer", application);
        let safe = transfers.iter().filter(|line| line["outcome"] == "safe");
        assert!(safe.count() + 3 > written.len());
        let failed: Vec<_> = transfers
            .iter()
            .filter(|line| line["outcome"] != "safe" && !self.stood_still(line))
            .collect();
        assert!(failed.is_empty(), "{failed:?}");
    }

    /// Whether a node noted at about the time of `line` that it was not run for a while.
    pub fn stood_still(&self, line: &Value) -> bool {
        let at = line["time_ns"].as_u64().unwrap();
        BOTH.iter()
            .flat_map(|node| self.site.events_of(node, "stall"))
            .any(|stall| stall["time_ns"].as_u64().unwrap().abs_diff(at) < 500_000_000)
    }

    /// Nothing of a change is left: files, in status, and what is in force is `fingerprint` on both.
    pub fn assert_unchanged(&self, fingerprint: &str, text: &str) {
        assert_eq!(self.in_force(), fingerprint);
        assert_eq!(self.file(), text);
        assert_eq!(self.drafts(), Vec::<PathBuf>::new());
    }
}

pub fn three() -> [String; 3] {
    [
        application("stays", 1, 100, ""),
        application("tuned", 2, 100, ""),
        application("goes", 3, 100, ""),
    ]
}
