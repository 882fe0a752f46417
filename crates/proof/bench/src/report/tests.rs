use super::*;
use crate::run::cost::Cost;
use crate::run::cyclic::Applications;
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
fn what_protection_costs_is_judged_beside_tls_and_quic() {
    let mut run = run();
    run.transfers.extend([
        cell("transfer-protected", 1 << 20, "none", &[9_450_000]),
        cell("transfer-protected", 128, "none", &[108_100]),
    ]);
    let cost = |peer: &str, cpu_s_per_gb| Cost {
        peer: peer.into(),
        size: 1 << 20,
        cpu_s_per_gb,
        ..Cost::default()
    };
    run.costs = vec![
        cost("transfer-protected", [1.0, 2.0]),
        cost("transfer-chacha", [4.0, 5.0]),
        cost("tcp-tls", [4.0, 4.0]),
        cost("quinn", [10.0, 2.0]),
    ];
    let expected = [
        (
            "1 MB at 1 Gbit/s, median, protected",
            table::Kind::Good,
            "1.050",
        ),
        ("128 B at 1 Gbit/s", table::Kind::Bad, "8.1"),
        ("transfer-protected of tcp-tls", table::Kind::Good, "0.375"),
        ("transfer-protected of quinn", table::Kind::Good, "0.250"),
        ("transfer-chacha of tcp-tls", table::Kind::Bad, "1.125"),
        ("transfer-chacha of quinn", table::Kind::Good, "0.750"),
    ];
    for (what, kind, measured) in expected {
        assert_eq!(seen(&run, what), (kind, measured.to_owned()), "{what}");
    }
}

#[test]
fn busy_polling_is_judged_beside_tcp_over_the_same_network() {
    let mut run = run();
    let over = |network: &str, peer: &str, size, median| Cell {
        connection: "single".into(),
        network: network.into(),
        ..cell(peer, size, "none", &[median])
    };
    run.transfers = vec![
        over("1gbit", "transfer-busy", 128, 101),
        over("1gbit", "tcp", 128, 100),
        over("unshaped", "transfer-busy", 128, 100),
        over("unshaped", "tcp", 128, 100),
        over("unshaped", "transfer-busy", 1 << 20, 61),
        over("unshaped", "tcp", 1 << 20, 100),
    ];
    let expected = [
        ("128 B over 1gbit, busy", table::Kind::Bad, "1.010"),
        ("128 B over unshaped, busy", table::Kind::Good, "1.000"),
        ("1 MB over unshaped, busy", table::Kind::Bad, "0.610"),
    ];
    for (what, kind, measured) in expected {
        assert_eq!(seen(&run, what), (kind, measured.to_owned()), "{what}");
    }
}

#[test]
fn a_cell_above_the_paper_s_maximum_is_ours_unless_a_stall_explains_it() {
    // Table 21: at most 1 ms for 512 bytes without loss, 11 for 1 MB.
    let mut run = Run::begin("lab");
    let mut stalled = cell("transfer", 512, "none", &[500_000, 2_500_000]);
    stalled.disturbed = vec![1];
    stalled.stood_still_ns = vec![1_600_000];
    run.transfers = vec![stalled, cell("transfer", 1 << 20, "none", &[10_999_999])];
    let what = "transfer: sizes and losses with a longest";
    let (kind, told) = seen(&run, what);
    assert_eq!(kind, table::Kind::Good);
    let words = "1 of 2, no stall explains 0; of 1 to 2 transfers each (paper: 100)";
    assert_eq!(told, words);

    // Not long enough: 2.5 ms less 1.4 are more than 1.
    run.transfers[0].stood_still_ns = vec![1_400_000];
    assert_eq!(seen(&run, what).0, table::Kind::Bad);
    // A run that did not tell how long: by no more than the longest stall of the cell.
    run.transfers[0].stood_still_ns.clear();
    run.transfers[0].jitter.longest_ns = 1_400_000;
    assert_eq!(seen(&run, what).0, table::Kind::Bad);
    run.transfers[0].jitter.longest_ns = 1_500_000;
    assert_eq!(seen(&run, what).0, table::Kind::Good);
    // One that no stall touches has nothing to be explained by.
    run.transfers[0].disturbed.clear();
    assert_eq!(seen(&run, what).0, table::Kind::Bad);

    let above = maxima::table(&run);
    let rows: Vec<_> = above.rows().map(|(_, row)| row.join(" ")).collect();
    assert_eq!(rows, ["transfer 512 B none 2 2.500 1.0 1 1 1.500"]);
}

/// A step of the ramp of ours.
fn step(utilisation: f64, missed: u64, standing_still: u64) -> Applications {
    Applications {
        case: "ramp".into(),
        peer: "transfer".into(),
        connection: "single".into(),
        utilisation,
        sent: 1020,
        missed,
        missed_standing_still: standing_still,
        ..Applications::default()
    }
}

#[test]
fn of_the_tries_of_a_step_of_the_ramp_the_worst_counts() {
    let mut run = Run::begin("lab");
    run.applications = vec![step(0.9, 0, 0), step(0.93, 2, 2), step(0.95, 3, 0)];
    let what = "growing load";
    let once = (table::Kind::Good, "93.0; one try of each step".to_owned());
    assert_eq!(seen(&run, what), once);

    run.applications = vec![
        step(0.9, 0, 0),
        step(0.93, 1, 0),
        step(0.93, 0, 0),
        step(0.95, 0, 0),
    ];
    let told = "90.0; at 93.0 1 of 2 tries missed".to_owned();
    assert_eq!(seen(&run, what), (table::Kind::Bad, told));
    let ramp = ramp::table(&run);
    let tries: Vec<_> = ramp.rows().map(|(_, row)| row[3].as_str()).collect();
    assert_eq!(tries, ["1 of 1", "1 of 2", "2 of 2", "1 of 1"]);
}

#[test]
fn a_plot_is_called_like_the_paper_s_only_with_the_lines_that_it_has() {
    let titles = |run: &Run| -> Vec<String> {
        let figures = figures::all(run).into_iter();
        figures.map(|figure| figure.title).collect()
    };
    let mut run = Run::begin("lab");
    run.transfers = vec![
        cell("transfer", 128, "none", &[100_000]),
        cell("transfer", 128, "first", &[100_000]),
    ];
    let told = titles(&run);
    assert!(told[0].ends_with("lost: none (the paper's figure 7)"));
    assert!(told[1].ends_with("lost: first (the paper's figure 9)"));
    run.transfers
        .push(cell("usrsctp", 128, "first", &[1_000_000]));
    let figures = figures::all(&run);
    assert!(titles(&run)[0].ends_with("(the paper's figure 7)"));
    assert!(figures[1].title.ends_with("(the paper's figures 9 and 10)"));
    assert!(figures[1].svg.contains("paper: SCTP default"));
    for cell in &mut run.transfers {
        cell.network = "unshaped".into();
    }
    assert!(titles(&run).iter().all(|title| !title.contains("figure")));
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
    let place = tempfile::tempdir().unwrap();
    let run = run();
    write(&run, &OutputFolder::find(place.path()).unwrap()).unwrap();
    let text = std::fs::read_to_string(place.path().join("run.json")).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
    assert!(place.path().join("report.html").exists());
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
