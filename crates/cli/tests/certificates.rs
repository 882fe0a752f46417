//! A pair whose nodes and witnesses agree on keys with certificates, as processes.

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::plan::Plan;
use support::process::{BUMPLESS, json, outcome, said};
use support::site::Site;
use support::wait_until;

/// A pair on two networks with a witness on each, everybody with a certificate.
fn site(key_lifetime_s: u32) -> Site {
    let mut plan = Plan::pair(2).tank(50, "");
    plan.key_lifetime_s = Some(key_lifetime_s);
    Site::new(plan)
}

fn sessions(status: &Value) -> Vec<(&str, bool, u64)> {
    let sessions = status["sessions"].as_array().unwrap();
    let of = |it: &'_ Value| (it["has_key"].as_bool(), it["keys_agreed"].as_u64());
    let all = sessions.iter().map(|it| (it["with"].as_str(), of(it)));
    all.map(|(with, (key, agreed))| (with.unwrap(), key.unwrap(), agreed.unwrap()))
        .collect()
}

#[test]
fn a_pair_agrees_on_keys_rolls_them_and_fails_over_and_nobody_needs_a_key_file() {
    let mut site = site(1);
    assert!(!site.key().exists());
    site.start_surroundings();
    site.start("left");
    site.start("right");
    let (primary, backup, epoch) = site.await_redundant("tank");
    let rolled = |status: &Value| {
        let all = sessions(status);
        // The plant's Modbus TCP is open here; nothing else is weak.
        let weaknesses = status["weaknesses"].as_array().unwrap();
        let open = |it: &Value| it.as_str().unwrap().contains("is open, as Modbus TCP is");
        weaknesses.len() == 1
            && open(&weaknesses[0])
            && all.len() == 3
            && all.iter().all(|&(_, key, agreed)| key && agreed >= 4)
    };
    for node in ["left", "right"] {
        site.await_status("each key has been replaced thrice", node, rolled);
        for cause in [
            "discard_forged",
            "discard_unprotected",
            "discard_misdirected",
        ] {
            assert_eq!(site.counter(node, cause), 0, "{cause}");
        }
    }
    let config = site.config();
    let (told, errors, _) = said(&["status", config.to_str().unwrap(), "--node", &backup]);
    for with in ["w0", "w1", &primary] {
        let words = format!("session with {with}: connected; ");
        assert!(told.contains(&words), "{told}{errors}");
    }
    site.kill(&primary);
    assert!(site.await_primary(&backup, "tank") > epoch);
    site.start(&primary);
    let (_, again, _) = site.await_redundant("tank");
    assert_eq!(again, primary);
}

#[test]
fn a_witness_that_starts_again_is_heard_again() {
    let mut site = site(3600);
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site.await_redundant("tank");
    site.kill_witness(0);
    site.await_redundancy("tank", "degraded");
    site.start_witness(0);
    site.await_redundant("tank");
}

#[test]
fn a_node_whose_certificate_is_anothers_gets_no_key_and_both_say_so() {
    let mut site = site(3600);
    let stranger = self::site(3600);
    // The right node comes with a certificate of another authority.
    for file in ["certificate.pem", "key.pem", "authority.pem", "revoked.pem"] {
        let folder = format!("right.{}", site.plan.name);
        fs::copy(
            stranger.path(&folder).join(file),
            site.path(&folder).join(file),
        )
        .unwrap();
    }
    site.start_surroundings();
    site.start("left");
    site.start("right");
    for (node, with) in [("left", "right"), ("right", "left")] {
        let status = site.await_status("it says why there is no key", node, |status| {
            let sessions = status["sessions"].as_array().unwrap();
            let mut sessions = sessions.iter();
            let is_told = sessions.any(|it| it["with"] == with && it["problem"].is_string());
            // The weaknesses are gathered once in a while, after that.
            is_told
                && status["weaknesses"]
                    .to_string()
                    .contains("there is no key with")
        });
        assert!(sessions(&status).contains(&(with, false, 0)), "{status}");
        let weaknesses = status["weaknesses"].to_string();
        assert!(weaknesses.contains("there is no key with"), "{weaknesses}");
        assert!(weaknesses.contains("authorit"), "{weaknesses}");
    }
    let primary = site.await_primary("left", "tank");
    assert!(primary > 0, "whoever the witnesses believe goes on alone");
}

#[test]
fn a_node_whose_certificate_is_revoked_is_heard_no_more_and_the_other_goes_on() {
    let mut site = site(3600);
    site.start_surroundings();
    site.start("left");
    site.start("right");
    let (primary, backup, _) = site.await_redundant("tank");
    let name = format!("{backup}.{}", site.plan.name);
    let authority = site.path("pki").display().to_string();
    let (_, errors, status) = said(&["pki", "revoke", &name, "--authority", &authority]);
    assert_eq!(status, Some(0), "{errors}");
    let own = format!("{primary}.{}", site.plan.name);
    let list = fs::read(site.path("pki/revoked.pem")).unwrap();
    for folder in [&own[..], "w0.witness", "w1.witness"] {
        fs::write(site.path(folder).join("revoked.pem"), &list).unwrap();
    }
    let status = site.await_status("the partner is not believed", &primary, |status| {
        let weaknesses = status["weaknesses"].to_string();
        weaknesses.contains("revoked") && status["groups"][0]["redundancy"] == "lost"
    });
    assert!(
        sessions(&status).contains(&(&backup[..], false, 1)),
        "{status}"
    );
    assert!(site.counter(&primary, "discard_unknown_key") > 0);
    let group = site.group(&primary, "tank").unwrap();
    assert_eq!(
        (&group["role"], &group["writes_outputs"]),
        (&"primary".into(), &true.into())
    );
}

#[test]
fn files_that_cannot_be_used_are_told_at_once_and_nothing_starts() {
    let site = site(3600);
    let folder = site.path(&format!("left.{}", site.plan.name));
    fs::set_permissions(folder.join("key.pem"), Permissions::from_mode(0o640)).unwrap();
    fs::write(folder.join("authority.pem"), "garbage").unwrap();
    let config = site.config();
    let run = ["run", config.to_str().unwrap(), "--node", "left"];
    let (told, errors, status) = said(&run);
    assert_eq!((status, &*told), (Some(1), ""), "{errors}");
    for words in ["key.pem", "mode 640", "authority.pem"] {
        assert!(errors.contains(words), "{errors}");
    }
    assert!(!site.socket("left").exists());
    let arguments = ["check", config.to_str().unwrap(), "--json"];
    let (value, status) = json(&arguments, "bumpless.check/1");
    assert_eq!((status, &value["ok"]), (Some(0), &true.into()));
    let found = value["certificates"].as_array().unwrap();
    assert!(
        matches!(&found[..], [right] if right["node"] == "right"),
        "{value}"
    );
    let problems = value["certificate_problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{value}");
    assert!(problems.iter().all(|it| it["node"] == "left"), "{value}");
}

#[test]
fn without_a_word_about_security_a_node_names_the_two_commands_and_they_suffice() {
    let mut site = site(3600);
    let text = fs::read_to_string(site.config()).unwrap();
    let silent = text.replace("[security]\nkey_lifetime_s = 3600\n", "");
    assert!(!silent.contains("[security]") && silent != text);
    fs::write(site.config(), silent).unwrap();
    let nodes = ["left", "right"].map(|node| format!("{node}.{}", site.plan.name));
    let witnesses = ["w0.witness".to_owned(), "w1.witness".to_owned()];
    for folder in nodes
        .iter()
        .chain(&witnesses)
        .map(String::as_str)
        .chain(["pki"])
    {
        fs::remove_dir_all(site.path(folder)).unwrap();
    }
    let config = site.config();
    let run = ["run", config.to_str().unwrap(), "--node", "left"];
    let (told, errors, status) = said(&run);
    assert_eq!((status, &*told), (Some(1), ""), "{errors}");
    assert!(!site.socket("left").exists());
    let missing = site.path(&nodes[0]).display().to_string();
    for words in [
        &*missing,
        "keys = [\"black-box.key\"]",
        "packets = \"open\"",
    ] {
        assert!(errors.contains(words), "{errors}");
    }
    let arguments = ["check", config.to_str().unwrap(), "--json"];
    let (value, status) = json(&arguments, "bumpless.check/1");
    assert_eq!((status, &value["ok"]), (Some(0), &true.into()));
    let lines = errors.lines().filter_map(|line| line.strip_prefix("    "));
    let lines: Vec<_> = lines.collect();
    assert_eq!(value["certificates_missing"], serde_json::json!(lines));
    assert_eq!(lines.len(), 2, "{errors}");
    for line in lines {
        let line = line.replace("SITE", "plant");
        let mut words = line.split(' ');
        assert_eq!(words.next(), Some("bumpless"));
        let mut command = Command::new(BUMPLESS);
        command.args(words).current_dir(site.path("."));
        let (_, errors, status) = outcome(&command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(status, Some(0), "{line}: {errors}");
    }
    let (value, _) = json(&arguments, "bumpless.check/1");
    assert!(value["certificates_missing"].is_null(), "{value}");
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site.await_redundant("tank");
}

#[test]
fn one_witness_process_serves_reference_points_by_a_certificate_at_each_address() {
    let mut site = site(1);
    site.start_witness_for_all();
    site.start_plant(&[]);
    site.start("left");
    site.start("right");
    site.await_redundant("tank");
    for node in ["left", "right"] {
        let status = site.await_status("each has a key of its own", node, |status| {
            let all = sessions(status);
            all.len() == 3 && all.iter().all(|&(_, key, agreed)| key && agreed >= 3)
        });
        let weaknesses = status["weaknesses"].to_string();
        assert!(!weaknesses.contains("key"), "{weaknesses}");
    }
    // With the wrong names at the addresses, no node believes either.
    let mut crossed = self::site(3600);
    crossed.plan.witnesses.reverse();
    crossed.start_witness_for_all();
    crossed.start("left");
    let status = crossed.await_status("it says why there is no key", "left", |status| {
        status["weaknesses"]
            .to_string()
            .matches("there is no key with 'w")
            .count()
            == 2
    });
    assert!(sessions(&status).contains(&("w0", false, 0)), "{status}");
}

#[test]
fn a_primary_keeps_to_what_its_backup_can_take_and_both_name_what_differs() {
    let mut plan = Plan::pair(2).synthetic("tank", 100_000, 400, "");
    plan.key_lifetime_s = Some(3600);
    let mut site = Site::new(plan);
    let text = fs::read_to_string(site.config()).unwrap();
    let slow = text.replace("name = \"A\"\n", "name = \"A\"\nbandwidth_mbit = 20\n");
    let slow = slow.replace("name = \"B\"\n", "name = \"B\"\nbandwidth_mbit = 20\n");
    let slow = slow.replace("[transfer]\n", "[transfer]\nin_flight_max = 40\n");
    fs::write(site.path("slow.toml"), &slow).unwrap();
    site.start_witnesses();
    site.start("left");
    let config = site.path("slow.toml");
    site.start_with("right", &config);
    site.await_redundant("tank");
    for (node, own, other) in [("left", "1000", "20"), ("right", "20", "1000")] {
        let status = site.await_status("a state is at the backup", node, |status| {
            status["weaknesses"]
                .as_array()
                .is_some_and(|lines| lines.len() == 3)
        });
        for network in ["A", "B"] {
            let words = format!("of network '{network}' is {own} here and {other} at");
            let lines = status["weaknesses"].to_string();
            assert!(lines.contains(&words), "{lines}");
        }
        let partner = status["sessions"].as_array().unwrap().iter();
        let mut partner = partner.filter(|it| !it["with"].as_str().unwrap().starts_with('w'));
        let limit = if node == "left" { 40 } else { 512 };
        assert_eq!(partner.next().unwrap()["states"]["in_flight_max"], limit);
    }
    // 100 kB take 40 ms at 20 Mbit/s, and under one at 1 Gbit/s.
    let slowest = |node: &str| {
        let status = site.status(node).unwrap();
        let took = &status["applications"][0]["last_transfer_ms"];
        took.as_f64()
    };
    wait_until("a state is safe, in its time", || {
        ["left", "right"]
            .iter()
            .any(|node| slowest(node).is_some_and(|took| took > 30.0))
    });
    assert!(
        ["left", "right"]
            .iter()
            .all(|node| slowest(node).is_none_or(|took| took > 30.0))
    );
}

/// Left and right, each with a file of its own in a folder of its own, as on two computers.
fn apart() -> Site {
    let mut plan = Plan::pair(2).synthetic("tank", 1000, 50, "");
    plan.key_lifetime_s = Some(1);
    let mut site = Site::new(plan);
    site.start_witnesses();
    for node in ["left", "right"] {
        fs::create_dir(site.path(node)).unwrap();
        let file = site.path(node).join("pair.toml");
        fs::write(&file, text(&site, "")).unwrap();
        site.start_with(node, &file);
    }
    site.await_redundant("tank");
    site
}

/// The configuration of `site` with certificates in its folder, and `more`.
fn text(site: &Site, more: &str) -> String {
    let text = fs::read_to_string(site.config()).unwrap();
    let folder = site.path(".").display().to_string();
    let certificates = format!("certificates = '{folder}'\nkey_lifetime_s");
    text.replacen("key_lifetime_s", &certificates, 1) + more
}

fn apply(site: &Site, node: &str, next: &str) -> (String, String, Option<i32>) {
    let file = site.path("next.toml");
    fs::write(&file, next).unwrap();
    let config = site.path(node).join("pair.toml");
    let [config, file] = [&config, &file].map(|path| path.to_str().unwrap());
    said(&["apply", config, file, "--node", node, "--json"])
}

const COMES: &str = "\n[[application]]\nname = \"comes\"\ngroup = \"tank\"\nkind = \"synthetic\"\nchannel = 9\n\
                     period_ms = 50\nsize = 1000\n";

#[test]
fn a_node_brings_a_change_to_its_partner_and_both_make_it() {
    let site = apart();
    let next = text(&site, COMES);
    let (told, errors, status) = apply(&site, "right", &next);
    assert_eq!(status, Some(0), "{errors}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        told["in_force_on"],
        serde_json::json!(["right", "left"]),
        "{told}"
    );
    for node in ["left", "right"] {
        let status = site.status(node).unwrap();
        assert_eq!(status["configuration"]["fingerprint"], told["fingerprint"]);
        let file = site.path(node).join("pair.toml");
        assert_eq!(fs::read_to_string(file).unwrap(), next);
    }
    site.await_redundant("tank");
}

#[test]
fn a_change_that_the_partner_refuses_is_made_by_neither_and_says_why() {
    let mut site = apart();
    let before = text(&site, "");
    let own = text(&site, "\n[realtime]\nlock_memory = true\n");
    let file = site.path("right").join("pair.toml");
    fs::write(&file, &own).unwrap();
    site.interrupt("right");
    site.start_with("right", &file);
    site.await_redundant("tank");
    let (told, _, status) = apply(&site, "left", &text(&site, COMES));
    assert_eq!(status, Some(1), "{told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    let errors = told["error"].as_str().unwrap();
    for words in [
        "'right' refuses it",
        "realtime",
        "cannot change while the pair runs",
    ] {
        assert!(errors.contains(words), "{errors}");
    }
    for (node, text) in [("left", &before), ("right", &own)] {
        site.await_status("nothing is prepared", node, |status| {
            status["configuration"]["change"].is_null()
        });
        let folder = site.path(node);
        let found = fs::read_to_string(folder.join("pair.toml")).unwrap();
        assert_eq!(found, *text);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "a draft is left");
    }
}
