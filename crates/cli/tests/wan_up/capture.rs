//! What passes nodes and links, in a file.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::Grid;
use crate::support::wan::{said, signal, until};

/// A packet of a capture: when, at which interface, whether it came (1) or left (2), and its ICMP type.
type Seen = (u64, String, u32, u8);

/// Every packet of a capture that has ended, which must be whole: blocks of pcapng, each with its length at both ends.
fn captured(file: &Path) -> Vec<Seen> {
    let bytes = std::fs::read(file).unwrap();
    let (packets, read) = packets_of(&bytes);
    assert_eq!(read, bytes.len(), "the last block is cut");
    packets
}

/// Every packet of a capture that goes on or was killed: its last block may be cut.
fn captured_so_far(file: &Path) -> Vec<Seen> {
    packets_of(&std::fs::read(file).unwrap()).0
}

/// Packets in whole blocks, and how many bytes these are.
fn packets_of(bytes: &[u8]) -> (Vec<Seen>, usize) {
    let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let (mut names, mut packets, mut at) = (Vec::new(), Vec::new(), 0);
    while at + 12 <= bytes.len() {
        let length = word(at + 4) as usize;
        if at + length > bytes.len() {
            break;
        }
        assert_eq!(
            word(at + length - 4) as usize,
            length,
            "at {at} of {}",
            bytes.len()
        );
        match word(at) {
            // An interface: its name is the first option.
            1 => {
                let name = &bytes[at + 20..][..usize::from(bytes[at + 18])];
                names.push(String::from_utf8(name.to_vec()).unwrap());
            }
            6 => {
                let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
                let kept = word(at + 20) as usize;
                let frame = &bytes[at + 28..][..kept];
                let flags = word(at + 28 + kept.next_multiple_of(4) + 4);
                // IPv4 and ICMP.
                if frame[12..14] == [8, 0] && frame[23] == 1 {
                    packets.push((time, names[word(at + 8) as usize].clone(), flags, frame[34]));
                }
            }
            _ => {}
        }
        at += length;
    }
    packets.sort();
    (packets, at)
}

/// A capture that has begun.
fn capturing(grid: &Grid, file: &Path, more: &[&str]) -> Child {
    let mut capture = grid.command("capture", more);
    capture.arg("--json").arg("--output").arg(file);
    let capture = capture.stdout(Stdio::piped()).stderr(Stdio::null());
    let capture = capture.spawn().unwrap();
    until("the capture has begun", || {
        std::fs::metadata(file).is_ok_and(|it| it.len() > 0)
    });
    capture
}

/// What a capture says at its end.
fn ended(capture: Child) -> Value {
    let done = capture.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", said(&done));
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(told["schema"], "bumpless.wan-capture/1");
    told
}

pub fn a_capture_has_what_passes_and_is_whole_however_it_ends() {
    let grid = Grid::new("capture");
    grid.up(&[]);
    let far = grid.address("s02-1-1");
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let places = ["centre-1", "s02-1-1:c02-1-1"];

    let capture = capturing(&grid, &file("asked"), &places);
    // What came while it did not run is in the file, although it is asked to end before it could read that.
    signal(&capture, "-STOP");
    assert!(grid.answers(&far));
    signal(&capture, "-INT");
    signal(&capture, "-CONT");
    let told = ended(capture);
    assert_eq!(
        (&told["ended"], &told["dropped"]),
        (&"asked".into(), &0.into()),
        "{told}"
    );
    assert_eq!(told["interfaces"][0]["packets"], 2, "{told}");
    let seen = captured(&file("asked"));
    let seen: Vec<_> = seen
        .iter()
        .map(|(_, at, flags, kind)| (&**at, *flags, *kind))
        .collect();
    // The question leaves and comes, and so does the answer.
    assert_eq!(
        seen,
        [
            ("centre-1:eth1", 2, 8),
            ("s02-1-1:eth1", 1, 8),
            ("s02-1-1:eth1", 2, 0),
            ("centre-1:eth1", 1, 0)
        ]
    );

    let long = [
        "centre-1", "--", "ping", "-q", "-i", "0.002", "-s", "1400", &far,
    ];
    let talk = || {
        let mut talk = grid.command("exec", &long);
        talk.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut talking = talk();
    let capture = capturing(&grid, &file("full"), &["centre-1", "--max-mib", "1"]);
    let told = ended(capture);
    assert_eq!(told["ended"], "size", "{told}");
    let length = std::fs::metadata(file("full")).unwrap().len();
    assert!((1 << 19..=1 << 20).contains(&length), "{length}");
    assert_eq!(told["bytes"], length);
    assert!(captured(&file("full")).len() > 300);
    let capture = capturing(
        &grid,
        &file("time"),
        &["centre-1", "--seconds", "1", "--packet-bytes", "60"],
    );
    assert_eq!(ended(capture)["ended"], "time");
    assert!(!captured(&file("time")).is_empty());

    let mut killed = capturing(&grid, &file("killed"), &places);
    until("something is captured", || {
        !captured_so_far(&file("killed")).is_empty()
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!captured_so_far(&file("killed")).is_empty());
    talking.kill().unwrap();
    talking.wait().unwrap();

    let refused = |more: &[&str], name: &str, words: &str| {
        let mut capture = grid.command("capture", more);
        let done = capture.arg("--output").arg(file(name)).output().unwrap();
        assert!(
            !done.status.success() && said(&done).contains(words),
            "{}",
            said(&done)
        );
    };
    let capture = capturing(&grid, &file("silent"), &["centre-2", "--seconds", "1"]);
    let told = ended(capture);
    let interfaces = told["interfaces"].as_array().unwrap();
    assert!(
        !interfaces.is_empty() && interfaces.iter().all(|it| it["packets"] == 0),
        "what nothing passed is told, too: {told}"
    );
    refused(&["centre-1"], "full", "new file");
    refused(&["nobody", "centre-1:s02-1-1"], "new", "no link is between");
    assert!(!file("new").exists());
    let capture = capturing(&grid, &file("network"), &places);
    grid.done("down", &[]);
    assert_eq!(ended(capture)["ended"], "network");
    captured(&file("network"));
    grid.nothing_is_left();
}
