use super::*;
use crate::kept;
use crate::study::analysis::promises;
use crate::study::result::{Background, Carried, Run};
use bumpless_bench::output_folder::OutputFolder;
use std::fs;

/// A study with an outage of two transports and a run over each way.
fn study() -> Study {
    let run = |transport: &str, backup: &str, over: &str, rtt_us: Vec<Option<u32>>| {
        let outage = over == "network" && backup != "none";
        Run {
            transport: transport.into(),
            backup: backup.into(),
            over: over.into(),
            substation: "s10-1-1".into(),
            number: 1,
            cut_ns: outage.then_some(60_000_000),
            healed_ns: outage.then_some(170_000_000),
            late_us: vec![0; rtt_us.len()],
            rtt_us,
            ..Run::default()
        }
    };
    let trips = |us: &[u32]| us.iter().map(|&us| Some(us)).collect::<Vec<_>>();
    let mut study = Study {
        head: Head {
            complete: true,
            ..Head::default()
        },
        runs: vec![
            run("tcp", "none", "network", trips(&[6_000, 6_100])),
            run("tcp", "ethernet", "backup", trips(&[3_800, 3_900])),
            run(
                "tcp",
                "ethernet",
                "network",
                trips(&[6_000, 6_200, 71_500, 22_000, 6_100]),
            ),
            run(
                "redundant-tcp",
                "ethernet",
                "network",
                trips(&[4_000, 4_100, 4_400, 4_300, 4_200]),
            ),
            run(
                "standby-tcp",
                "ethernet",
                "network",
                vec![Some(6_000), None, Some(90_000), Some(5_000)],
            ),
        ],
        ..Study::default()
    };
    study.promises = promises(&study);
    study
}

#[test]
fn tables_show_ours_beside_the_papers_figures_and_broken_promises() {
    let text = text(&study());
    for part in [
        "71.5",
        "70.0",
        "8.2",
        "MPTCPv0 (red. sched.)",
        "not asked for",
        "RQ1",
        "RQ2",
        "RQ3",
        "Of 2 promises of ours 1 held.",
        "Failovers within 10 ms (teleprotection), Ethernet-like backup, 99 of 100 and nothing lost: TCP under iPRP redundant.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let standby = text
        .lines()
        .find(|line| line.contains("standby") && line.contains("each failover"));
    assert!(standby.unwrap().trim_end().ends_with("NO"), "{text}");
}

#[test]
fn the_page_and_the_raw_data_are_whole_and_can_be_shown_again() {
    let directory = tempfile::tempdir().unwrap();
    let study = Study {
        head: Head {
            schema: Study::SCHEMA.into(),
            ..study().head
        },
        ..study()
    };
    let folder = OutputFolder::find(directory.path()).unwrap();
    kept::write(&study, &folder).unwrap();
    let read: Study = kept::read(&directory.path().join("study.json")).unwrap();
    assert_eq!(read, study);
    let file = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let page = file("report.html");
    assert_eq!(page.matches("<svg").count(), 3, "figures 4, 5 and 6");
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(!page.contains("http"), "it needs nothing else");
    let csv = file("outages.csv");
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 4, "a head and three outages");
    let columns = lines[0].split(',').count();
    assert!(
        lines.iter().all(|line| line.split(',').count() == columns),
        "{csv}"
    );
    assert!(
        lines[1].starts_with("tcp,ethernet,1,s10-1-1,0,60000,110000,,71500,71500,2,2,0,")
            && lines[1].ends_with(",0,0,0"),
        "{csv}"
    );
    assert!(lines[3].contains(",1,\"\""), "{csv}");
    fs::write(directory.path().join("study.json"), "{}").unwrap();
    let why = kept::read::<Study>(&directory.path().join("study.json")).unwrap_err();
    assert!(why.contains("bumpless.wan-study/1"), "{why}");
    let mut later = study;
    later.head.schema = "bumpless.wan-study/2".into();
    let later = serde_json::to_string(&later).unwrap();
    fs::write(directory.path().join("study.json"), later).unwrap();
    let why = kept::read::<Study>(&directory.path().join("study.json")).unwrap_err();
    assert!(why.contains("bumpless.wan-study/2"), "{why}");
}

/// The same study, each run of which was made once more beside messages of others and took twice as long.
fn loaded() -> Study {
    let mut study = study();
    let mut with = study.runs.clone();
    for run in &mut with {
        run.background = 10_000;
        for us in run.rtt_us.iter_mut().flatten() {
            *us *= 2;
        }
    }
    study.runs.extend(with);
    study.settings.background = 10_000;
    study.background = vec![Background {
        each_second: 10_000,
        message_bytes: 157,
        centre: "centre-2".into(),
        substations: 260,
        behind_outages: 20,
        seconds: 3.0,
        clear: Carried {
            sent: 27_000,
            received: 26_730,
        },
        behind: Carried {
            sent: 2_700,
            received: 1_800,
        },
        reckoned: false,
        refused: 7,
        overrun: 11,
        p50_us: Some(2_400),
        p99_us: Some(3_900),
        max_us: Some(12_000),
        course: vec![(9_000, 8_900), (9_100, 9_010), (8_900, 8_820)],
    }];
    study.promises = promises(&study);
    study
}

#[test]
fn without_and_with_background_traffic_stand_side_by_side() {
    let text = text(&loaded());
    let line = |words: &str| {
        let found = text
            .lines()
            .find(|line| line.trim_start().starts_with(words));
        let found = found.unwrap_or_else(|| panic!("{words}: {text}"));
        found
            .split("  ")
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        line("TCP, Ethernet-like backup"),
        [
            "TCP, Ethernet-like backup",
            "6.0",
            "12.0",
            "6.2",
            "12.0",
            "71.5",
            "143.0",
            "71.5",
            "143.0",
            "70.0",
            "100.0",
            "100.0",
            "0",
            "0",
        ]
    );
    // Round trips without outages are told apart, too.
    assert_eq!(line("emulated network  ")[3..], ["6.0", "6.0", "6.1"]);
    assert_eq!(
        line("emulated network, beside 10000")[3..],
        ["12.0", "12.0", "12.2"]
    );
    // How much of it was sent in each second, and how much of that was lost, is told.
    assert_eq!(
        line("10000  ")[..8],
        [
            "10000", "0.20", "9900", "9100", "27000", "26730", "270", "1.000"
        ]
    );
    for part in [
        "emulated network, beside 10000 messages a second",
        "Figure 5 in numbers: outages with an Ethernet-like backup, beside 10000",
        "0.20 of the paper's 50000",
        "270 were lost",
        "but for 7 that the system did not take; of what is lost, 11 came and found no room",
        "Of 4 promises of ours 2 held.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("more than this machine has processors for"));
    // The paper's figures with this backup were measured without.
    assert_eq!(text.matches("paper: MPTCPv0 (def. sched.), -").count(), 1);
    let page = page::render(&loaded());
    assert!(page.contains("the same, beside 10000/s"));
}

#[test]
fn traffic_that_the_machine_had_no_processor_for_is_told_as_that() {
    let words = "more than this machine has processors for";
    let mut study = loaded();
    study.background[0].clear.sent -= 1_000;
    assert!(text(&study).contains(words), "{}", text(&study));
    let mut study = loaded();
    for run in study.runs.iter_mut().filter(|run| run.background > 0) {
        run.late_us.iter_mut().for_each(|us| *us = 5_000);
    }
    assert!(text(&study).contains(words), "{}", text(&study));
}

#[test]
fn a_study_that_broke_off_says_why_and_does_not_count_as_good() {
    let mut study = loaded();
    study.promises.clear();
    assert!(study.held());
    study.broke_off = Some("no port; --background 0 goes without it".into());
    study.background[0].reckoned = true;
    assert!(!study.held());
    let text = text(&study);
    assert!(
        text.contains("BROKEN OFF: no port; --background 0"),
        "{text}"
    );
    assert_eq!(
        text.matches("reckoned from the fewest hops").count(),
        2,
        "{text}"
    );
}
