use super::*;
use crate::run::transfers::Cell;
use crate::statistics::Summary;
use bumpless_testing::page::loads;

fn cell(peer: &str, size: usize, loss: &str, times: &[u64]) -> Cell {
    Cell {
        peer: peer.into(),
        connection: if peer == "tcp" { "many" } else { "single" }.into(),
        network: "1gbit".into(),
        size,
        loss: loss.into(),
        all: Summary::of(times.iter().copied()),
        undisturbed: Summary::of(times.iter().copied()),
        samples_ns: times.to_vec(),
        ..Cell::default()
    }
}

fn run() -> Run {
    Run {
        complete: true,
        transfers: vec![
            cell("transfer", 1 << 20, "none", &[9_000_000]),
            cell("transfer", 1 << 20, "last", &[9_100_000, 10_500_000]),
            cell("transfer", 128, "none", &[100_000]),
            cell("transfer", 128, "last", &[200_000]),
            cell("tcp", 1 << 20, "none", &[8_500_000]),
        ],
        ..Run::begin("lab")
    }
}

fn seen(run: &Run, what: &str) -> (table::Kind, String) {
    let bars = bars::table(run).unwrap();
    let found = bars.rows().find(|(_, row)| row[0].contains(what));
    let (kind, row) = found.unwrap_or_else(|| panic!("no bar '{what}'"));
    (*kind, row[2].clone())
}

#[test]
fn a_bar_is_held_or_missed_by_the_run_s_own_figures() {
    let run = run();
    assert_eq!(
        seen(&run, "median: of TCP's"),
        (table::Kind::Bad, "1.059".into())
    );
    assert_eq!(
        seen(&run, "wire's floor"),
        (table::Kind::Good, "1.006".into())
    );
    let (kind, worst) = seen(&run, "lost: last");
    assert_eq!(kind, table::Kind::Bad);
    assert!(worst.starts_with("1.500 at 1 MB; 1 of 2"), "{worst}");
}

#[test]
fn tables_stand_beside_the_paper_s_figures() {
    let text = text(&run());
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("transfer, single connection, 1gbit: transfer"))
        .unwrap();
    let block = &lines[at..at + 9];
    let row = block
        .iter()
        .position(|line| line.trim_start().starts_with("1 MB"))
        .unwrap();
    let words = |line: &str| {
        line.split_whitespace()
            .map(String::from)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        words(block[row])[2..],
        ["9.000", "9.000", "9.000", "9.100", "9.800", "10.50"]
    );
    // Table 21: 1 MB without loss, and with the last packet lost.
    assert_eq!(
        words(block[row + 1]),
        ["paper", "10.0", "10.0", "11.0", "10.0", "10.0", "10.0"]
    );
}

#[test]
fn the_page_needs_nothing_else_and_shows_every_figure() {
    let page = page::render(&run());
    assert_eq!(loads(&page), [""; 0]);
    assert_eq!(page.matches("<figure>").count(), figures::all(&run()).len());
    assert!(page.contains("figure 19") && page.contains("paper: RSTP"));
    let alone = figures::all(&run()).remove(0).alone();
    assert!(alone.starts_with("<svg xmlns=") && alone.contains("<style>"));
}

#[test]
fn a_kept_run_reads_as_it_was_written() {
    let directory = std::env::temp_dir().join(format!("bumpless-bench-{}", std::process::id()));
    let run = run();
    write(&run, &directory).unwrap();
    let text = std::fs::read_to_string(directory.join("run.json")).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
    assert!(directory.join("report.html").exists());
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_run_with_processors_kept_awake_says_so() {
    let mut run = run();
    assert!(!text(&run).contains("processors"), "{}", text(&run));
    run.host.wake_latency_us = Some(0);
    assert!(text(&run).contains("processors kept awake"));
    run.host.wake_latency_us = Some(70);
    assert!(text(&run).contains("processors waking within 70 us"));
}
