//! Commands that change links: beside each other, of what is cut, half done, ended in the middle.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::Grid;
use crate::impaired::{impaired, topology};
use crate::support::wan::{name, said, signal, until};

/// The file that tells of a network, which whoever changes links has locked.
fn file(grid: &Grid) -> PathBuf {
    format!("/run/bumpless-wan-{}.json", name(grid.0)).into()
}

/// Keeps commands from changing links until the value is dropped.
fn lock(grid: &Grid) -> File {
    let file = File::open(file(grid)).unwrap();
    file.lock().unwrap();
    file
}

fn start(grid: &Grid, action: &str, arguments: &[&str]) -> Child {
    let mut command = grid.command(action, arguments);
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until a command has the file open, which it does to lock it, or has ended, and has nothing open.
fn until_it_waits(grid: &Grid, command: &Child) {
    let file = file(grid);
    let descriptors = format!("/proc/{}/fd", command.id());
    until("a command waits", || {
        let open = std::fs::read_dir(&descriptors).into_iter().flatten();
        let open: Vec<_> = open.flatten().map(|it| it.path().read_link()).collect();
        open.is_empty() || open.iter().flatten().any(|it| *it == file)
    });
}

fn cut(grid: &Grid) -> Value {
    let status: Value = serde_json::from_str(&grid.done("status", &["--json"])).unwrap();
    status["cut"].clone()
}

/// The link of a substation that has one, as `status` names it.
fn link_of(substation: &str) -> String {
    let network: Value = serde_json::from_str(&topology()).unwrap();
    let links = network["links"].as_array().unwrap().iter();
    let mut ends = links.map(|it| it["ends"].as_array().unwrap());
    let ends = ends.find(|it| it.contains(&json!(substation))).unwrap();
    let ends: Vec<_> = ends.iter().map(|it| it.as_str().unwrap()).collect();
    ends.join(":")
}

/// What the kernel of a node has counted of ICMP.
fn icmp(grid: &Grid, node: &str, counter: &str) -> u64 {
    let told = grid.done("exec", &[node, "--", "cat", "/proc/net/snmp"]);
    let mut rows = told.lines().filter(|it| it.starts_with("Icmp:"));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let mut values = names.split(' ').zip(values.split(' '));
    let (_, value) = values.find(|(name, _)| *name == counter).unwrap();
    value.parse().unwrap()
}

/// How many of five packets come to `router` over its link with `node`.
fn heard(grid: &Grid, router: &str, node: &str) -> u64 {
    let network: Value = serde_json::from_str(&topology()).unwrap();
    let links = network["links"].as_array().unwrap().iter();
    let mut own = links.filter(|it| it["ends"].as_array().unwrap().contains(&json!(node)));
    let place = own.position(|it| it["ends"].as_array().unwrap().contains(&json!(router)));
    let interface = format!("eth{}", place.unwrap() + 1);
    let told = grid.done(
        "exec",
        &[
            node,
            "--",
            "ip",
            "-j",
            "neighbour",
            "show",
            "dev",
            &interface,
        ],
    );
    let told: Value = serde_json::from_str(&told).unwrap();
    let address = told[0]["dst"].as_str().unwrap();
    let before = icmp(grid, router, "InEchos");
    let ping = [
        node, "--", "ping", "-q", "-c", "5", "-l", "5", "-W", "1", address,
    ];
    grid.wan("exec", &ping);
    icmp(grid, router, "InEchos") - before
}

pub fn commands_that_change_links_wait_for_each_other() {
    let grid = Grid::new("waiting");
    grid.up(&[]);
    grid.done("cut", &["s01-1-1"]);
    let held = lock(&grid);
    let mut commands = [
        start(&grid, "cut", &["s02-1-1"]),
        start(&grid, "impair", &["s02-1-1", "--rate-mbit", "5"]),
        start(&grid, "heal", &["s01-1-1"]),
    ];
    for command in &commands {
        until_it_waits(&grid, command);
    }
    // Others come to their end in the meantime.
    for _ in 0..10 {
        assert_eq!(cut(&grid), json!([link_of("s01-1-1")]));
        assert_eq!(impaired(&grid), json!([]));
    }
    for command in &mut commands {
        assert!(command.try_wait().unwrap().is_none());
    }
    drop(held);
    for command in commands {
        let output = command.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    assert_eq!(cut(&grid), json!([link_of("s02-1-1")]));
    assert_eq!(impaired(&grid)[0]["rate_mbit"], 5);
    // One network is waited for, and ends.
    let held = lock(&grid);
    let late = start(&grid, "impair", &["s02-1-1", "--none"]);
    until_it_waits(&grid, &late);
    grid.done("down", &[]);
    drop(held);
    let told = late.wait_with_output().unwrap();
    assert_eq!(told.status.code(), Some(1));
    assert!(said(&told).contains("has ended"), "{}", said(&told));
}

pub fn links_of_one_router_are_impaired_by_commands_of_their_own() {
    let grid = Grid::new("own");
    grid.up(&[]);
    let network: Value = serde_json::from_str(&topology()).unwrap();
    let links = network["links"].as_array().unwrap().iter();
    let at_router = links.filter_map(|it| {
        let ends = [it["ends"][0].as_str()?, it["ends"][1].as_str()?];
        ends.contains(&"b01a").then(|| ends.join(":"))
    });
    let links: Vec<String> = at_router.collect();
    assert!(links.len() > 2);
    // One after the other, and then all at once.
    grid.done("impair", &[&links[0], "--loss-percent", "1"]);
    grid.done("impair", &[&links[1], "--loss-percent", "2"]);
    let wrong = |link: &str, loss: f64, rate: Option<u32>| json!({"link": link, "loss_percent": loss, "rate_mbit": rate});
    let told = impaired(&grid);
    assert_eq!(
        told,
        json!([wrong(&links[0], 1.0, None), wrong(&links[1], 2.0, None)])
    );
    // The other end would tell of a loss that this one has no more.
    let across = links[0].split(':').find(|it| *it != "b01a").unwrap();
    grid.done("impair", &[&links[0], "--none"]);
    assert_eq!(heard(&grid, "b01a", across), 5);
    grid.done("impair", &[&links[0], "--loss-percent", "100"]);
    grid.done("impair", &[&links[1], "--loss-percent", "3"]);
    assert_eq!(heard(&grid, "b01a", across), 0, "the loss is still there");
    let percents = ["3", "4", "5", "6"];
    let all: Vec<_> = links.iter().zip(percents).collect();
    let commands: Vec<_> = all
        .iter()
        .map(|&(link, percent)| {
            let how = [link, "--loss-percent", percent, "--rate-mbit", percent];
            start(&grid, "impair", &how)
        })
        .collect();
    for command in commands {
        let output = command.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let expected = all.iter().map(|&(link, percent)| {
        let number: u32 = percent.parse().unwrap();
        wrong(link, number.into(), Some(number))
    });
    assert_eq!(impaired(&grid), json!(expected.collect::<Vec<_>>()));
    // A link that is named twice is one.
    let (one, other) = links[0].split_once(':').unwrap();
    let back = format!("{other}:{one}");
    for action in ["cut", "heal"] {
        let told = grid.done(action, &[&links[0], &back, "--json"]);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["links"], json!([links[0]]), "{told}");
    }
    let told = grid.done("impair", &[&links[0], &back, "--none", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["links"], json!([links[0]]), "{told}");
}

pub fn what_is_cut_carries_nothing_while_it_is_impaired_otherwise() {
    let grid = Grid::new("flood");
    grid.up(&[]);
    let far = grid.address("s02-1-1");
    let link = link_of("s02-1-1");
    let mut ends = link.split(':');
    let router = ends.find(|it| *it != "s02-1-1").unwrap();
    let come = || -> u64 {
        let told = grid.done(
            "exec",
            &["s02-1-1", "--", "ip", "-s", "-j", "link", "show", "eth1"],
        );
        let told: Value = serde_json::from_str(&told).unwrap();
        told[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
    };
    let sent = || icmp(&grid, router, "OutEchos");
    grid.done("cut", &[&link]);
    let before = (come(), sent());
    // As many as it can, for half a minute at most.
    let flood = [
        router, "--", "ping", "-q", "-f", "-l", "60000", "-w", "30", &far,
    ];
    let mut flood = start(&grid, "exec", &flood);
    until("packets are sent", || sent() > before.1);
    for _ in 0..15 {
        for how in [
            &["--rate-mbit", "1000"][..],
            &["--rate-mbit", "2000"],
            &["--none"],
        ] {
            grid.done("impair", &[&[&link[..]], how].concat());
        }
    }
    assert!(
        flood.try_wait().unwrap().is_none(),
        "packets were sent all the while"
    );
    assert_eq!(come(), before.0, "what is cut stays cut");
    grid.done("heal", &[&link]);
    until("packets come", || come() > before.0);
    flood.kill().unwrap();
    flood.wait().unwrap();
}

pub fn an_impairment_that_is_refused_at_one_link_changes_none() {
    let grid = Grid::new("refused");
    grid.up(&[]);
    grid.done("impair", &["s01-1-1", "--rate-mbit", "7"]);
    let before = impaired(&grid);
    grid.done("exec", &["s02-1-1", "--", "ip", "link", "delete", "eth1"]);
    let how = ["--loss-percent", "1", "--rate-mbit", "5"];
    let refused = grid.wan("impair", &[&["s01-1-1", "s02-1-1"], &how[..]].concat());
    assert_eq!(refused.status.code(), Some(1));
    let told = said(&refused);
    assert!(told.contains("all links are as they were"), "{told}");
    assert_eq!(impaired(&grid), before);
}

pub fn impairments_by_script_end_as_it_was_before() {
    let grid = Grid::new("script-impaired");
    grid.up(&[]);
    let folder = tempfile::tempdir().unwrap();
    let script = |impairments: &str| {
        let file = folder.path().join("script.json");
        let text =
            format!(r#"{{"schema": "bumpless.wan-script/1", "impairments": [{impairments}]}}"#);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    grid.done("impair", &["s01-1-1", "--rate-mbit", "7"]);
    let before = impaired(&grid);
    let [one, other] = ["s01-1-1", "s02-1-1"].map(link_of);
    let file = script(
        r#"{"at_s": 0, "for_s": 0.2, "what": ["s01-1-1", "s02-1-1"], "loss_percent": 1, "rate_mbit": 10},
           {"at_s": 0.1, "for_s": 0.2, "what": ["s02-1-1"], "rate_mbit": 5}"#,
    );
    let told: Value = serde_json::from_str(&grid.done("script", &[&file, "--json"])).unwrap();
    assert_eq!(told["complete"], true, "{told}");
    let steps = told["steps"].as_array().unwrap().iter();
    let steps: Vec<_> = steps
        .map(|it| [&it["impaired"], &it["as_before"]])
        .collect();
    let wrong = |link: &str, loss: f64, rate: u32| json!({"link": link, "loss_percent": loss, "rate_mbit": rate});
    let none = json!([]);
    assert_eq!(
        steps,
        [
            [
                &json!([wrong(&one, 1.0, 10), wrong(&other, 1.0, 10)]),
                &none
            ],
            [&json!([wrong(&other, 1.0, 5)]), &none],
            [&json!([wrong(&other, 0.0, 5)]), &json!([one])],
            [&none, &json!([other])],
        ]
    );
    assert_eq!(impaired(&grid), before);
    // One that would last for minutes.
    let file =
        script(r#"{"at_s": 0, "for_s": 600, "what": ["s01-1-1", "s02-1-1"], "loss_percent": 100}"#);
    let playing = start(&grid, "script", &[&file]);
    let lost = json!([
        {"link": one, "loss_percent": 100.0, "rate_mbit": null},
        {"link": other, "loss_percent": 100.0, "rate_mbit": null},
    ]);
    until("links are impaired", || impaired(&grid) == lost);
    signal(&playing, "-INT");
    assert_eq!(playing.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(impaired(&grid), before);
}
