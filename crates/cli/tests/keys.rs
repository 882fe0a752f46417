//! Keys as people meet them: made, told apart, missed, and refused.

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use support::plan::Plan;
use support::process::{BUMPLESS, json, outcome, said};
use support::site::Site;

/// What a key file must not show anywhere.
fn secret(site: &Site) -> String {
    let text = fs::read_to_string(site.key()).unwrap();
    text.trim_end().rsplit(' ').next().unwrap().to_owned()
}

fn site() -> Site {
    Site::new(Plan::pair(2).tank(50, ""))
}

#[test]
fn a_key_is_made_with_what_to_do_next_and_shown_without_its_secret() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pair.key");
    let key = path.to_str().unwrap();
    let (made, errors, status) = said(&["key", "new", key]);
    assert_eq!((status, &*errors), (Some(0), ""));
    for words in ["Copy it to the other computers", "[security]", "--key"] {
        assert!(made.contains(words), "{made}");
    }
    let (shown, errors, status) = said(&["key", "show", key]);
    assert_eq!((status, &*errors), (Some(0), ""));
    assert_eq!(made.lines().next(), shown.lines().next());
    let (value, status) = json(&["key", "show", key, "--json"], "bumpless.key/1");
    assert_eq!((status, &value["file"]), (Some(0), &key.into()));
    let id = value["identifier"].as_str().unwrap();
    assert_eq!(shown, format!("{key} has the key {id}\n"));
    let text = fs::read_to_string(&path).unwrap();
    let secret = text.trim_end().rsplit(' ').next().unwrap();
    for told in [made, shown, value.to_string()] {
        assert!(!told.contains(secret), "{told}");
    }
    let other = directory.path().join("other.key");
    let arguments = ["key", "new", other.to_str().unwrap(), "--json"];
    let (value, status) = json(&arguments, "bumpless.key/1");
    assert_eq!(status, Some(0));
    assert_eq!(value["identifier"].as_str().map(str::len), Some(4));
}

#[test]
fn a_key_is_its_owners_alone_whatever_the_user_takes_from_files() {
    let directory = tempfile::tempdir().unwrap();
    for mask in ["000", "022", "777"] {
        let path = directory.path().join(mask);
        let script = format!("umask {mask}; exec \"$0\" key new \"$1\"");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script, BUMPLESS]).arg(&path);
        let (_, errors, status) = outcome(&command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(status, Some(0), "{mask}: {errors}");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(said(&["key", "show", path.to_str().unwrap()]).2, Some(0));
    }
}

#[test]
fn a_key_that_is_there_is_not_overwritten() {
    let site = site();
    let key = site.key();
    let before = fs::read(&key).unwrap();
    let (_, errors, status) = said(&["key", "new", key.to_str().unwrap()]);
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("never overwritten"), "{errors}");
    assert_eq!(fs::read(&key).unwrap(), before);
}

#[test]
fn check_tells_the_key_or_what_this_computer_lacks_and_passes_the_configuration() {
    let site = site();
    let config = site.config();
    let config = config.to_str().unwrap();
    let shown = ["key", "show", site.key().to_str().unwrap(), "--json"].map(str::to_owned);
    let shown = shown.each_ref().map(String::as_str);
    let id = json(&shown, "bumpless.key/1").0["identifier"].clone();
    let (value, status) = json(&["check", config, "--json"], "bumpless.check/1");
    assert_eq!((status, &value["key"]), (Some(0), &id));
    assert_eq!(value["key_problems"], serde_json::json!([]));
    let (told, _, status) = said(&["check", config]);
    assert_eq!(status, Some(0));
    assert!(told.contains(&format!("sealed with the key {}", id.as_str().unwrap())));

    fs::set_permissions(site.key(), Permissions::from_mode(0o640)).unwrap();
    let (value, status) = json(&["check", config, "--json"], "bumpless.check/1");
    assert_eq!((status, &value["ok"]), (Some(0), &true.into()));
    assert!(value["key"].is_null(), "{value}");
    let problems = value["key_problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0]["file"].as_str(), site.key().to_str());
    assert!(problems[0]["wrong"].as_str().unwrap().contains("mode 640"));
    assert!(problems[0]["right"].as_str().unwrap().contains("chmod 600"));
    let (told, _, status) = said(&["check", config]);
    assert_eq!(status, Some(0));
    assert!(told.contains("this computer cannot run it: key file"));
    assert!(told.contains("is valid"), "{told}");
}

#[test]
fn check_tells_every_file_of_a_password_that_this_computer_cannot_use_and_never_a_password() {
    let site = site();
    let folder = site.config().parent().unwrap().to_owned();
    let config = folder.join("with-servers.toml");
    let mut text = fs::read_to_string(site.config()).unwrap();
    text += r#"
[[application]]
name = "boiler"
group = "tank"
kind = "process"
channel = 9
period_ms = 50
file = "program.py"
command = ["python3"]
state_max = 64
[application.field]
"#;
    for (at, name) in ["open", "empty", "nowhere", "right"].iter().enumerate() {
        text += &format!(
            "[[application.field.device]]\nname = \"{name}\"\nkind = \"opcua\"\naddress = \"192.0.2.{at}\"\n\
             driver = \"/bin/true\"\nfiles = \"opcua\"\nuser = \"operator\"\npassword_file = \"{name}.password\"\n\
             [[application.output]]\nname = \"to-{name}\"\ndevice = \"{name}\"\npoint = \"i=1\"\n"
        );
    }
    fs::write(&config, text).unwrap();
    fs::write(folder.join("program.py"), "").unwrap();
    for (name, content, mode) in [
        ("open", "hunter2", 0o644),
        ("empty", "\n", 0o600),
        ("right", "hunter2\n", 0o600),
    ] {
        let path = folder.join(format!("{name}.password"));
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    let config = config.to_str().unwrap();
    let (value, status) = json(&["check", config, "--json"], "bumpless.check/1");
    assert_eq!((status, &value["ok"]), (Some(0), &true.into()), "{value}");
    let (told, _, _) = said(&["check", config]);
    let problems = value["password_problems"].as_array().unwrap();
    let wrong = [
        ("open", "mode 644", "chmod 600"),
        ("empty", "is empty", "one line"),
        ("nowhere", "is not there", "install -m 600"),
    ];
    assert_eq!(problems.len(), wrong.len(), "{problems:#?}");
    for (problem, (name, cause, remedy)) in problems.iter().zip(wrong) {
        let has = |key: &str, part: &str| problem[key].as_str().unwrap().contains(part);
        let file = folder.join(format!("{name}.password"));
        assert!(has("device", name) && has("file", file.to_str().unwrap()));
        assert!(has("wrong", cause) && has("right", remedy), "{problem}");
        let line = told
            .lines()
            .find(|it| it.contains(&format!("{name}.password")));
        let line = line.unwrap();
        assert!(
            line.starts_with("this computer cannot log in: field device"),
            "{line}"
        );
        assert!(line.contains(cause) && line.contains(remedy), "{line}");
    }
    assert!(!format!("{value}{told}").contains("hunter2"), "{told}");
}

#[test]
fn check_of_a_pair_with_open_packets_asks_for_no_key() {
    let mut plan = Plan::pair(2).tank(50, "");
    plan.open = true;
    let site = Site::new(plan);
    assert!(!site.key().exists());
    let config = site.config();
    let arguments = ["check", config.to_str().unwrap(), "--json"];
    let (value, status) = json(&arguments, "bumpless.check/1");
    assert_eq!(status, Some(0));
    assert!(value["key"].is_null(), "{value}");
    assert_eq!(value["key_problems"], serde_json::json!([]));
}

#[test]
fn a_node_says_everything_that_is_wrong_with_its_keys_at_once_and_does_not_start() {
    let site = site();
    let text = fs::read_to_string(site.config()).unwrap();
    let (own, all) = (
        "[\"black-box.key\"]",
        "[\"black-box.key\", \"none.key\", \"open.key\"]",
    );
    fs::write(site.config(), text.replacen(own, all, 1)).unwrap();
    fs::copy(site.key(), site.path("open.key")).unwrap();
    fs::set_permissions(site.path("open.key"), Permissions::from_mode(0o604)).unwrap();
    let config = site.config();
    let run = ["run", config.to_str().unwrap(), "--node", "left"];
    let (told, errors, status) = said(&run);
    assert_eq!((status, &*told), (Some(1), ""), "{errors}");
    let lines: Vec<_> = errors.lines().collect();
    assert_eq!(lines.len(), 2, "{errors}");
    for (line, words) in lines.iter().zip(["is not there", "mode 604"]) {
        assert!(line.contains(words), "{errors}");
    }
    assert!(!errors.contains(&secret(&site)), "{errors}");
    assert!(!site.socket("left").exists());
    let json_too = [&run[..], &["--json"]].concat();
    let (value, status) = json(&json_too, "bumpless.error/1");
    assert_eq!(status, Some(1));
    assert!(value["error"].as_str().unwrap().contains("mode 604"));
}

#[test]
fn a_witness_that_is_not_told_what_protects_its_pairs_is_refused_with_both_ways_out() {
    // On no computer of ours: one that starts all the same ends at once.
    let listen = "192.0.2.1:1";
    let (_, errors, status) = said(&["witness", "--listen", listen]);
    assert_eq!(status, Some(2), "{errors}");
    for words in ["--key FILE", "bumpless key new", "--open"] {
        assert!(errors.contains(words), "{errors}");
    }
}

#[test]
fn a_pair_with_a_key_and_one_without_find_their_roles() {
    for open in [false, true] {
        let mut plan = Plan::pair(2).tank(50, "");
        plan.open = open;
        let mut site = Site::new(plan);
        site.start_surroundings();
        for node in ["left", "right"] {
            site.start(node);
        }
        site.await_redundant("tank");
        site.await_writes(5);
        site.interrupt_all();
        site.writes().judge();
    }
}
