//! `bumpless iprp torture`: a slice of the matrix, and of what others are known to fail at.

use std::path::Path;
use std::process::Command;

use bumpless_testing::{need_namespaces, page};
use serde_json::Value;

use crate::support::process::{BUMPLESS, outcome};

/// A cell of each kind of event, under the worst conditions.
const CELLS: [&str; 4] = [
    "flapping.loss-skew-reordering",
    "receiver-restarts.loss-skew-reordering",
    "sender-killed.loss-skew-reordering",
    "simulated.numbers-end.loss-skew-reordering",
];

fn torture(more: &[&str], output: &Path) -> (String, String, Option<i32>) {
    let mut command = Command::new(BUMPLESS);
    command.args(["iprp", "torture", "--json", "--repetitions", "1"]);
    command.args(more).arg("--output").arg(output);
    outcome(&command.output().unwrap())
}

pub fn a_slice_of_the_torture_keeps_every_promise_and_says_who_was_not_there() {
    need_namespaces();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let cases = [&CELLS[..], &["srt-2828"]].concat().join(",");
    let (told, errors, status) = torture(&["--cases", &cases], &out);
    let result: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}{errors}"));
    assert_eq!(result["schema"], "bumpless.iprp.torture/1");
    let held = result["held"] == true;
    assert_eq!(status, Some(i32::from(!held)), "{told}{errors}");
    assert_eq!(result["stopped"], false);
    let cells = result["cells"].as_array().unwrap();
    let ids: Vec<_> = cells.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, CELLS);
    for cell in cells {
        let trial = &cell["trials"][0];
        assert_eq!(cell["held"], true, "{cell}");
        assert!(trial["sent"].as_u64() > Some(500), "{cell}");
        assert_eq!(trial["doubled"], 0);
        // What is done takes place: the first network loses two of five.
        let [copies, lost] =
            ["copies", "lost"].map(|it| trial["networks"][0][it].as_u64().unwrap());
        assert!(lost * 4 > copies, "{cell}");
        let wants = trial["wants"].as_array().unwrap();
        assert!(wants.len() >= 3 && wants.iter().all(|it| it["held"] == true));
    }
    let rows = result["known"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    for row in rows {
        let first = &row["contestants"][0];
        // How late it is hangs on what else this machine does.
        assert_eq!(first["name"], "iPRP");
        assert!(first["sent"].as_u64() > Some(500), "{row}");
        assert_eq!([&first["lost"], &first["doubled"]], [0, 0], "{row}");
        assert!(first["unproved"].is_null(), "{row}");
        assert!(first["networks"][0]["cut"].as_u64() > Some(0), "{row}");
        // Those that are built apart, and what to do about it.
        let absent = row["absent"].as_array().unwrap();
        let is_told = |name: &str| {
            absent.iter().any(|it| {
                let [who, why] = ["name", "why"].map(|what| it[what].as_str().unwrap());
                who.contains(name) && why.contains("bench/peers/iprp/build.sh")
            })
        };
        for name in ["SRT", "kronosnet", "PRP"] {
            assert!(is_told(name), "{row}");
        }
    }
    kept(&out);
}

/// Everything is kept: each datagram, and a page that needs nothing else.
fn kept(out: &Path) {
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let whole: Value = serde_json::from_str(&read("run.json")).unwrap();
    assert!(whole["settings"]["host"]["kernel"].is_string());
    for (cell, raw) in whole["cells"]
        .as_array()
        .unwrap()
        .iter()
        .zip(whole["raw"].as_array().unwrap())
    {
        let took = raw["trials"][0]["took_us"].as_array().unwrap();
        let lost = took.iter().filter(|it| **it == -1).count() as u64;
        assert_eq!(Some(lost), cell["trials"][0]["lost"].as_u64());
    }
    assert!(read("tables.txt").contains("srt-2828"));
    let report = read("report.html");
    assert_eq!(page::loads(&report), [""; 0]);
    for words in ["The matrix", "srt-2828", "Frames sent", "cut off"] {
        assert!(report.contains(words), "{words}");
    }
}

pub fn a_case_or_a_folder_of_peers_that_is_not_there_is_told_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let (told, errors, status) = torture(&["--cases", "cutt"], folder.path());
    let told = told + &errors;
    assert_eq!(status, Some(2));
    for words in ["cutt", "cut.clean", "srt-2937"] {
        assert!(told.contains(words), "{told}");
    }
    let nowhere = folder.path().join("nowhere");
    let (told, errors, status) = torture(&["--peers", nowhere.to_str().unwrap()], folder.path());
    assert_eq!(status, Some(2));
    let told = told + &errors;
    assert!(told.contains("bench/peers/iprp/build.sh"), "{told}");
}
