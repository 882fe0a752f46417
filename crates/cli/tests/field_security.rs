//! A pair whose field device has Modbus/TCP Security, as processes.

mod support;

use std::path::PathBuf;

use support::hosts::{pair_on_hosts, with_hosts};
use support::plan::Plan;
use support::process::said;
use support::site::Site;
use support::wait_until;

const SECURE: &str = "security = \"tls\"\nserver_name = \"plant.field\"";

/// Everybody with a certificate, the nodes of this role.
fn site(mut plan: Plan, role: &str) -> Site {
    plan.key_lifetime_s = Some(3600);
    let site = Site::new(plan);
    site.issue("plant.field");
    for node in &site.plan.nodes {
        let name = format!("{}.{}", node.name, site.plan.name);
        std::fs::remove_dir_all(site.path(&name)).unwrap();
        let (authority, out) = (site.path("pki"), site.path(&name));
        let issue = ["pki", "issue", &name, "--role", role, "--authority"];
        let folders = [authority.to_str().unwrap(), "--out", out.to_str().unwrap()];
        let (_, stderr, status) = said(&[&issue[..], &folders].concat());
        assert_eq!(status, Some(0), "{stderr}");
    }
    site
}

fn start_plant(site: &mut Site) {
    let own = site.path("plant.field").display().to_string();
    site.start_plant(&["--certificates", &own, "--may-write", "operator"]);
}

#[test]
fn a_pair_with_a_secure_plant_survives_kill_9_and_no_output_is_older_than_the_last() {
    with_hosts(|hosts| {
        let mut site = site(pair_on_hosts().tank(50, SECURE), "operator").on(hosts);
        site.start_witnesses();
        start_plant(&mut site);
        site.start("left");
        site.start("right");
        let (primary, backup, epoch) = site.await_redundant("tank");
        for node in ["left", "right"] {
            let secure = |status: &serde_json::Value| {
                status["weaknesses"] == serde_json::json!([])
                    && status["applications"][0]["field"]["security"] == "tls"
            };
            site.await_status("nothing is weak", node, secure);
        }
        site.await_writes(3);
        site.kill(&primary);
        let higher = site.await_primary(&backup, "tank");
        assert!(higher > epoch);
        site.await_write_in(higher);
        site.await_writes(3);
        site.start(&primary);
        site.await_redundant("tank");
        site.writes().judge();
        // Nobody was refused anything.
        assert!(
            !site.plant().said().contains("refused"),
            "{}",
            site.plant().said()
        );
    });
}

#[test]
fn a_node_whose_role_may_not_write_says_so_in_status_and_writes_nothing() {
    let mut site = site(Plan::pair(2).tank(50, SECURE), "viewer");
    site.start_witnesses();
    start_plant(&mut site);
    site.start("left");
    let told = |status: &serde_json::Value| {
        let weaknesses = status["weaknesses"].to_string();
        let file = site.path("left.black-box").join("certificate.pem");
        ["role viewer", "--role ROLE", file.to_str().unwrap()]
            .iter()
            .all(|part| weaknesses.contains(part))
    };
    site.await_status("the role is named", "left", told);
    assert_eq!(site.writes().0.len(), 0);
    wait_until("the plant says so", || {
        site.plant().said().contains("role viewer")
    });
}

#[test]
fn without_certificates_for_its_devices_a_node_does_not_start_and_check_says_what_is_missing() {
    let mut plan = Plan::pair(2).tank(50, &format!("{SECURE}\ncertificates = \"own\""));
    plan.open = true;
    let site = Site::new(plan);
    let config: PathBuf = site.config();
    let config = config.to_str().unwrap();
    let words = format!("{:?}", said(&["run", config, "--node", "left"]));
    for part in ["left.black-box", "bumpless pki issue"] {
        assert!(words.contains(part), "{part} in {words}");
    }
    let (stdout, stderr, status) = said(&["check", config]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stdout.contains("bumpless pki issue left.black-box"),
        "{stdout}"
    );
}
