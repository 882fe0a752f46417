//! Links that carry less than they might.

use std::process::Command;

use serde_json::{Value, json};

use crate::Grid;
use crate::support::process::BUMPLESS;
use crate::support::wan::said;

/// The network of these tests, as a file.
pub fn topology() -> String {
    let arguments = ["wan", "topology", "--backbone-pairs", "3", "--json"];
    let output = Command::new(BUMPLESS).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// What was lost of `count` packets of 1,400 bytes that `centre-1` sends to the host with this address, all at once.
fn lost(grid: &Grid, address: &str, count: u32) -> u32 {
    let number = count.to_string();
    let ping = [
        "centre-1", "--", "ping", "-q", "-c", &number, "-l", &number, "-s", "1400", "-W", "1",
        address,
    ];
    let output = grid.wan("exec", &ping);
    let told = said(&output);
    let received = told.split(", ").find_map(|it| it.strip_suffix(" received"));
    count
        - received
            .unwrap_or_else(|| panic!("{told}"))
            .parse::<u32>()
            .unwrap()
}

pub fn impaired(grid: &Grid) -> Value {
    let status: Value = serde_json::from_str(&grid.done("status", &["--json"])).unwrap();
    status["impaired"].clone()
}

pub fn an_impaired_link_loses_its_share_and_carries_its_rate_also_when_healed() {
    let grid = Grid::new("impaired");
    grid.up(&[]);
    let far = grid.address("s02-1-1");
    let impair = |arguments: &[&str]| grid.done("impair", &[&["s02-1-1"], arguments].concat());
    assert_eq!(lost(&grid, &far, 60), 0);
    assert_eq!(impaired(&grid), json!([]));
    impair(&["--loss-percent", "100"]);
    assert!(!grid.answers(&far));
    // One link, each way by itself: of 200 some 150 are lost, give or take 6, and of one way alone 100 would be, give or take 7.
    impair(&["--loss-percent", "50"]);
    let many = lost(&grid, &far, 200);
    assert!((125..=175).contains(&many), "{many}");
    // Some 15 frames of these pass at once, and what waits longer than 50 ms is lost.
    let told: Value = serde_json::from_str(&impair(&["--rate-mbit", "1", "--json"])).unwrap();
    assert_eq!(told["schema"], "bumpless.wan-impairment/1");
    assert_eq!(told["rate_mbit"], 1, "{told}");
    assert_eq!(told["loss_percent"], 0.0, "{told}");
    assert!((30..60).contains(&lost(&grid, &far, 60)));
    let limited = impaired(&grid);
    assert_eq!(limited[0]["rate_mbit"], 1, "{limited}");
    grid.done("cut", &["s02-1-1"]);
    assert!(!grid.answers(&far));
    assert_eq!(impaired(&grid), limited);
    impair(&["--rate-mbit", "1", "--loss-percent", "0.5"]);
    assert!(!grid.answers(&far), "what is cut stays cut");
    impair(&["--none"]);
    assert!(!grid.answers(&far), "what is cut stays cut");
    impair(&["--rate-mbit", "2"]);
    grid.done("heal", &["s02-1-1"]);
    assert!(grid.answers(&far));
    assert!((20..60).contains(&lost(&grid, &far, 60)));
    assert_eq!(impaired(&grid)[0]["rate_mbit"], 2);
    impair(&["--none"]);
    assert_eq!(lost(&grid, &far, 60), 0);
    assert_eq!(impaired(&grid), json!([]));
    grid.done("down", &[]);
    // The same from the beginning, by a file.
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("network.json");
    let mut network: Value = serde_json::from_str(&topology()).unwrap();
    let links = network["links"].as_array_mut().unwrap();
    let link = links
        .iter_mut()
        .find(|it| it["ends"].as_array().unwrap().contains(&json!("s02-1-1")));
    link.unwrap()["rate_mbit"] = json!(1);
    std::fs::write(&file, network.to_string()).unwrap();
    grid.done("up", &["--file", file.to_str().unwrap()]);
    assert_eq!(impaired(&grid), limited);
    assert!((30..60).contains(&lost(&grid, &far, 60)));
    impair(&["--loss-percent", "0"]);
    assert_eq!(
        impaired(&grid),
        json!([]),
        "what is not given is taken back"
    );
    let nobody = ["s99-9-9", "nobody"];
    for (action, how) in [
        ("impair", &["--loss-percent", "1"][..]),
        ("cut", &[]),
        ("heal", &[]),
    ] {
        let unknown = grid.wan(action, &[&nobody, how].concat());
        let told = said(&unknown);
        assert_eq!(unknown.status.code(), Some(2), "{told}");
        assert!(nobody.iter().all(|name| told.contains(name)), "{told}");
    }
    for wrong in [
        &["--loss-percent", "0.00015"][..],
        &["--loss-percent", "-1"],
        &["--loss-percent", "0", "--rate-mbit", "0"],
        &["--none", "--rate-mbit", "1"],
        &[],
    ] {
        let refused = grid.wan("impair", &[&["s02-1-1"], wrong].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    }
}
