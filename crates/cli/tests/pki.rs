//! Authorities and certificates as people meet them: made, issued, revoked, shown, and refused.

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use bumpless_base::Random;
use support::process::{BUMPLESS, json, outcome, said};
use tempfile::TempDir;

/// An authority of the site plant7 in `pki`.
struct Works(TempDir);

impl Works {
    fn new() -> Self {
        let works = Self(tempfile::tempdir().unwrap());
        let (_, errors, status) = said(&["pki", "init", &works.text("pki"), "--site", "plant7"]);
        assert_eq!((status, &*errors), (Some(0), ""));
        works
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// `bumpless pki ACTION WHAT` with this authority.
    fn run(&self, arguments: &[&str]) -> (String, String, Option<i32>) {
        let pki = self.text("pki");
        said(&[&["pki"], arguments, &["--authority", &pki]].concat())
    }

    fn issue(&self, node: &str) {
        let (_, errors, status) = self.run(&["issue", node, "--out", &self.text(node)]);
        assert_eq!((status, &*errors), (Some(0), ""));
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The middle of a key, which must not be shown anywhere.
fn secret(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("PRIVATE KEY"));
    text.lines().nth(1).unwrap().to_owned()
}

#[test]
fn from_nothing_to_everybodys_folders_takes_two_commands_that_say_what_is_next() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(BUMPLESS);
        command.args(arguments).current_dir(directory.path());
        let (told, errors, status) = outcome(&command.stdin(Stdio::null()).output().unwrap());
        assert_eq!((status, &*errors), (Some(0), ""), "{arguments:?}");
        told
    };
    let made = run(&["pki", "init"]);
    for words in [
        "pki has the authority of the site site",
        "\n    bumpless pki issue left.tank right.tank witness-a.witness\n",
    ] {
        assert!(made.contains(words), "{made}");
    }
    let nodes = ["left.tank", "right.tank", "witness-a.witness"];
    let issued = run(&[&["pki", "issue"], &nodes[..]].concat());
    for node in nodes {
        let words = format!("of {node}.site until");
        assert!(issued.contains(&words), "{issued}");
        assert!(
            issued.contains(&format!("    scp -rp {node} OTHER:\n")),
            "{issued}"
        );
    }
    let folders = ["left.tank", "pki", "right.tank", "witness-a.witness"];
    assert_eq!(names(directory.path()), folders);
    let files = ["authority.pem", "certificate.pem", "key.pem", "revoked.pem"];
    assert_eq!(names(&directory.path().join("left.tank")), files);
}

#[test]
fn certificates_of_several_nodes_are_issued_all_or_none() {
    let works = Works::new();
    let issue = |nodes: &[&str], more: &[&str]| {
        let mut command = Command::new(BUMPLESS);
        command.args(["pki", "issue", "--authority", "pki"]);
        command.args(nodes).args(more).current_dir(works.0.path());
        outcome(&command.stdin(Stdio::null()).output().unwrap())
    };
    fs::create_dir(works.path("right.tank")).unwrap();
    fs::write(works.path("right.tank/note"), "mine").unwrap();
    for (nodes, more, words, expected) in [
        (
            &["left.tank", "right.tank"][..],
            &[][..],
            "right.tank: is there",
            1,
        ),
        (&["left.tank", "LEFT.tank"], &[], "named twice", 2),
        (&["left.tank", "other"], &[], "such as left.tank", 2),
        (&["left.tank", "other.tank"], &["--out", "x"], "one node", 2),
    ] {
        let (told, errors, status) = issue(nodes, more);
        assert_eq!((status, &*told), (Some(expected), ""), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
    assert_eq!(names(works.0.path()), ["pki", "right.tank"]);
    assert!(!works.path("pki/issued").exists());
    let (told, errors, status) = issue(&["left.tank", "other.tank"], &["--json"]);
    assert_eq!(status, Some(0), "{errors}");
    let lines = told
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let folders = lines.map(|line| line["folder"].clone()).collect::<Vec<_>>();
    assert_eq!(folders, ["left.tank", "other.tank"]);
}

#[test]
fn what_was_made_is_told_to_programs() {
    let works = Works::new();
    let other = works.text("other");
    let (value, status) = json(&["pki", "init", &other, "--json"], "bumpless.pki-init/1");
    assert_eq!(
        (status, &value["folder"]),
        (Some(0), &other.as_str().into())
    );
    assert_eq!(value["site"], "site");
    let (pki, left) = (works.text("pki"), works.text("left"));
    let issue = [
        "pki",
        "issue",
        "left.tank",
        "--authority",
        &pki,
        "--out",
        &left,
        "--json",
    ];
    let (issued, status) = json(&issue, "bumpless.pki-issue/1");
    assert_eq!(
        (status, &issued["name"]),
        (Some(0), &"left.tank.plant7".into())
    );
    let certificate = format!("{left}/certificate.pem");
    let (shown, status) = json(
        &["pki", "show", &certificate, "--json"],
        "bumpless.pki-show/1",
    );
    assert_eq!(status, Some(0));
    let item = &shown["items"][0];
    for (field, expected) in [
        ("kind", &"certificate".into()),
        ("names", &serde_json::json!(["left.tank.plant7"])),
        ("serial", &issued["serial"]),
        ("ends", &issued["ends"]),
        ("state", &"valid".into()),
        ("authority", &false.into()),
        ("signs", &true.into()),
    ] {
        assert_eq!(&item[field], expected, "{item}");
    }
    let (key, _) = json(
        &["pki", "show", &format!("{left}/key.pem"), "--json"],
        "bumpless.pki-show/1",
    );
    assert_eq!(key["items"][0]["key"], item["key"]);
    assert_eq!(key["items"][0]["kind"], "private_key");

    let revoke = ["pki", "revoke", "left.tank", "--authority", &pki, "--json"];
    let (revoked, status) = json(&revoke, "bumpless.pki-revoke/1");
    assert_eq!(status, Some(0));
    assert_eq!(revoked["revoked"], serde_json::json!([issued["serial"]]));
    let list = revoked["list"].as_str().unwrap();
    let (shown, _) = json(&["pki", "show", list, "--json"], "bumpless.pki-show/1");
    let shown = &shown["items"][0];
    assert_eq!(
        (&shown["kind"], &shown["number"]),
        (&"revocation_list".into(), &revoked["number"])
    );
    assert_eq!(shown["revoked"][0]["serial"], issued["serial"]);
    let (again, status) = json(&revoke, "bumpless.pki-revoke/1");
    assert_eq!(status, Some(0));
    assert_eq!(
        again["revoked_before"],
        serde_json::json!([issued["serial"]])
    );
    assert_eq!(again["revoked"], serde_json::json!([]));
}

#[test]
fn people_are_shown_whose_certificate_it_is_and_until_when() {
    let works = Works::new();
    works.issue("left.tank");
    let show = |name: &str| {
        let (told, errors, status) = said(&["pki", "show", &works.text(name)]);
        assert_eq!((status, &*errors), (Some(0), ""), "{name}");
        told
    };
    for (name, words) in [
        (
            "left.tank/certificate.pem",
            &[
                "certificate of left.tank.plant7",
                ": valid",
                "TLS client, TLS server",
            ][..],
        ),
        (
            "left.tank/authority.pem",
            &[
                "certificate of the authority CN=plant7",
                "names that end in plant7",
            ],
        ),
        (
            "left.tank/revoked.pem",
            &["revocation list 1", "revoked  nothing"],
        ),
        ("left.tank/key.pem", &["private key\n  key"]),
    ] {
        let told = show(name);
        words
            .iter()
            .for_each(|it| assert!(told.contains(it), "{it} is not in {told}"));
    }
    // All that one file has.
    let files = ["certificate.pem", "authority.pem", "revoked.pem"]
        .map(|it| works.path("left.tank").join(it));
    let all: String = files
        .iter()
        .map(|it| fs::read_to_string(it).unwrap())
        .collect();
    fs::write(works.path("all.pem"), all).unwrap();
    let told = show("all.pem");
    assert_eq!(told.matches("serial").count(), 2, "{told}");
    assert!(told.contains("revocation list"), "{told}");
}

#[test]
fn no_command_shows_a_key() {
    let works = Works::new();
    works.issue("left.tank");
    let keys = ["pki/authority.key", "left.tank/key.pem"].map(|it| works.path(it));
    let mut told = String::new();
    for key in &keys {
        for more in [&[][..], &["--json"]] {
            let path = key.to_str().unwrap();
            let (output, errors, _) = said(&[&["pki", "show", path], more].concat());
            told += &(output + &errors);
        }
        let text = fs::read_to_string(key).unwrap();
        // Garbled in its middle, at which a parser might quote it.
        fs::write(key, text.replacen("MIG", "M?G", 1)).unwrap();
        told += &said(&["pki", "show", key.to_str().unwrap()]).1;
        fs::write(key, text).unwrap();
    }
    told += &works
        .run(&["issue", "right.tank", "--out", &works.text("right")])
        .0;
    told += &works.run(&["revoke", "left.tank"]).0;
    assert!(told.lines().count() > 8, "{told}");
    for key in keys {
        assert!(!told.contains(&secret(&key)), "{told}");
    }
}

#[test]
fn a_second_run_beside_the_first_does_no_harm() {
    let works = Works::new();
    works.issue("left.tank");
    let files = [
        "pki/authority.key",
        "pki/authority.pem",
        "left.tank/key.pem",
    ];
    let before = files.map(|it| fs::read(works.path(it)).unwrap());
    for (arguments, folder) in [
        (&["pki", "init", &works.text("pki")][..], "pki"),
        (
            &[
                "pki",
                "issue",
                "left.tank",
                "--authority",
                &works.text("pki"),
                "--out",
                &works.text("left.tank"),
            ],
            "left.tank",
        ),
    ] {
        let (told, errors, status) = said(arguments);
        assert_eq!((status, &*told), (Some(1), ""), "{errors}");
        for words in [
            &works.text(folder),
            "is there already",
            "nothing is overwritten",
        ] {
            assert!(errors.contains(words), "{errors}");
        }
    }
    assert_eq!(files.map(|it| fs::read(works.path(it)).unwrap()), before);
    assert_eq!(names(&works.path("pki/issued")).len(), 1);
    assert_eq!(names(works.0.path()), ["left.tank", "pki"]);

    // Two that begin at once: one of them makes it, whole.
    for round in 0..8 {
        let folder = works.text(&format!("site{round}"));
        let init = || {
            let mut command = Command::new(BUMPLESS);
            command.args(["pki", "init", &folder]).stdin(Stdio::null());
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut both = [init(), init()];
        let done = both.each_mut().map(|it| it.wait().unwrap().code());
        assert!(
            done == [Some(0), Some(1)] || done == [Some(1), Some(0)],
            "{done:?}"
        );
        let out = works.text(&format!("left{round}"));
        let (_, errors, status) = said(&[
            "pki",
            "issue",
            "left.tank",
            "--authority",
            &folder,
            "--out",
            &out,
        ]);
        assert_eq!(status, Some(0), "{errors}");
    }
}

#[test]
fn wrong_usage_is_told_with_what_would_be_right() {
    let works = Works::new();
    works.issue("left.tank");
    let out = works.text("out");
    for (arguments, words) in [
        (&["issue", "left", "--out", &out][..], "such as left.tank"),
        (&["issue", "-left.tank", "--out", &out], "tip: to pass"),
        (
            &["issue", "left_.ta nk", "--out", &out],
            "cannot stand in a certificate",
        ),
        (
            &["issue", "left.tank", "--days", "0", "--out", &out],
            "1..=36500",
        ),
        (
            &["issue", "left.tank", "--days", "36500", "--out", &out],
            "give a shorter --days",
        ),
        (
            &["revoke", "right.tank"],
            "has issued no certificate for right.tank.plant7",
        ),
        (&["revoke", "0123"], "with a dot between them"),
    ] {
        let (told, errors, status) = works.run(arguments);
        assert_eq!((status, &*told), (Some(2), ""), "{errors}");
        assert!(errors.contains(words), "{words} is not in {errors}");
    }
    let (_, errors, status) = said(&["pki", "init", &out, "--site", "plant.7"]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("the last part not a number"), "{errors}");
    assert!(!works.path("out").exists());
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place_and_the_way_out() {
    let works = Works::new();
    works.issue("left.tank");
    let key = works.path("pki/authority.key");
    fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
    let (_, errors, status) = works.run(&["issue", "right.tank", "--out", &works.text("right")]);
    assert_eq!(status, Some(1));
    // Revoking a certificate is no remedy for a key that makes others.
    for words in [
        key.to_str().unwrap(),
        "mode 640",
        "chmod 600",
        "another authority",
    ] {
        assert!(errors.contains(words), "{errors}");
    }
    assert!(!errors.contains("pki revoke"), "{errors}");
    assert!(!works.path("right").exists());
    let (value, status) = json(
        &["pki", "show", key.to_str().unwrap(), "--json"],
        "bumpless.error/1",
    );
    assert_eq!(status, Some(1));
    assert!(
        value["error"].as_str().unwrap().contains("mode 640"),
        "{value}"
    );
    fs::write(works.path("text"), "nothing").unwrap();
    for (path, words) in [
        ("text", "has no certificate"),
        ("none", "is not there"),
        ("pki", "no regular file"),
    ] {
        let (_, errors, status) = said(&["pki", "show", &works.text(path)]);
        assert_eq!(status, Some(1));
        assert!(
            errors.contains(words) && errors.contains(&works.text(path)),
            "{errors}"
        );
    }
    let (_, errors, status) = said(&["pki", "issue", "a.b", "--authority", &works.text("none")]);
    assert_eq!(status, Some(1));
    assert!(
        errors.contains("none/authority.pem: is not there"),
        "{errors}"
    );
}

#[test]
fn keys_are_their_owners_alone_whatever_the_user_takes_from_files() {
    let works = Works::new();
    for mask in ["000", "022", "777"] {
        let folders = ["pki", "node"].map(|it| works.text(&format!("{it}{mask}")));
        let script = format!(
            "umask {mask}; \"$0\" pki init \"$1\" && exec \"$0\" pki issue left.tank --authority \"$1\" --out \"$2\""
        );
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script, BUMPLESS]).args(&folders);
        let (_, errors, status) = outcome(&command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(status, Some(0), "{mask}: {errors}");
        let [pki, node] = folders.map(PathBuf::from);
        for (path, mode) in [
            (pki.clone(), 0o700),
            (pki.join("authority.key"), 0o600),
            (pki.join("revoked.pem"), 0o644),
            (node.clone(), 0o700),
            (node.join("key.pem"), 0o600),
            (node.join("certificate.pem"), 0o644),
        ] {
            assert_eq!(
                fs::metadata(&path).unwrap().mode() & 0o7777,
                mode,
                "{mask} {path:?}"
            );
        }
    }
}

/// Runs `bumpless pki` with `arguments`, and interrupts it after `delay`.
fn interrupted(arguments: &[&str], delay: Duration) {
    let mut command = Command::new(BUMPLESS);
    command.arg("pki").args(arguments).stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(delay);
    // SAFETY: kill takes integers; the process is a child that has not been waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    child.wait().unwrap();
}

#[test]
fn whenever_it_is_interrupted_nothing_is_there_by_half() {
    let works = Works::new();
    works.issue("left.tank");
    let mut random = Random::new(7);
    for round in 0..60 {
        let mut delay = || Duration::from_micros(random.next_u64() % 12_000);
        let (site, node) = (format!("site{round}"), format!("node{round}.tank"));
        interrupted(&["init", &works.text(&site)], delay());
        interrupted(
            &[
                "issue",
                &node,
                "--authority",
                &works.text("pki"),
                "--out",
                &works.text(&node),
            ],
            delay(),
        );
        interrupted(
            &["revoke", "left.tank", "--authority", &works.text("pki")],
            delay(),
        );
        for (folder, files) in [(site, 3), (node, 4)] {
            let folder = works.path(&folder);
            let whole = !folder.exists() || names(&folder).len() == files;
            assert!(whole, "{folder:?}: {:?}", names(&folder));
        }
        let (_, errors, status) = said(&["pki", "show", &works.text("pki/revoked.pem")]);
        assert_eq!(status, Some(0), "{errors}");
    }
    for folder in [
        works.0.path().to_owned(),
        works.path("pki"),
        works.path("pki/issued"),
    ] {
        let left: Vec<_> = names(&folder)
            .into_iter()
            .filter(|it| it.starts_with('.'))
            .collect();
        assert_eq!(left, [""; 0], "{folder:?}");
    }
}
