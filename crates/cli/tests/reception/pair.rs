//! A pair with a stranger on its networks, and what its guard tells.

use serde_json::Value;

use crate::support::hosts::{Hosts, pair_on_hosts};
use crate::support::site::Site;

/// As prompt as what looks for stalls, where that is permitted.
pub const PROMPT: &str = "\n[realtime]\npriority = 20\n";

/// A pair on the networks A and B, and a host that belongs to neither of its nodes.
pub fn pair(hosts: Hosts, guard: &str) -> Site {
    hosts.put_stranger_on_both();
    let mut plan = pair_on_hosts().tank(50, "");
    plan.transfer = format!("[reception]\nguard = \"{guard}\"\nother_per_s = 1000\n{PROMPT}");
    let mut site = Site::new(plan).on(hosts);
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site
}

/// The flows of a node's interface.
pub fn flow(status: &Value, interface: usize, name: &str) -> Value {
    let flows = status["reception"]["interfaces"][interface]["flows"].as_array();
    let flows = flows.unwrap_or_else(|| panic!("{}", status["reception"]));
    let found = flows.iter().find(|flow| flow["name"] == name);
    found
        .unwrap_or_else(|| panic!("{name} in {flows:?}"))
        .clone()
}

pub fn dropped(flow: &Value) -> u64 {
    ["capacity", "closed"]
        .iter()
        .map(|cause| flow["dropped"][cause].as_u64().unwrap())
        .sum()
}
