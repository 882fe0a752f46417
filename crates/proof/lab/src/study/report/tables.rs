//! The paper's tables with ours beside, failovers, and promises.

use bumpless_bench::report::table::{Kind, Table};
use bumpless_wan::emulation::Line;

use super::words::{ms, ms_or, paper as told, reckoned};
use crate::study::analysis::{Cell, LIMIT_US, Trips, baseline, beside, cells, loads, promises};
use crate::study::paper::{self, Figures};
use crate::study::result::Study;
use crate::study::transport::{ALL, Socket, Transport, line_title};

/// Every table, in order.
pub fn all(study: &Study) -> Vec<Table> {
    let cells = cells(study);
    let mut tables = vec![
        promised(study),
        table_i(study),
        background(study),
        table_ii(study),
        beside_each_other(study, &cells),
        captures(study),
    ];
    for line in [Line::Ethernet, Line::Lte] {
        for load in loads(study) {
            let of = cells.iter();
            let of: Vec<_> = of.filter(|it| it.line == line && it.load == load).collect();
            if !of.is_empty() {
                tables.push(failovers(&of, line, load, loads(study)));
            }
        }
    }
    tables.retain(|table| !table.is_empty());
    tables
}

fn promised(study: &Study) -> Table {
    let mut table = Table::new(
        "What ours promises, and what was seen",
        &[
            "promise",
            "seen",
            "figures",
            "above",
            "of these the machine's",
            "held",
        ],
    );
    table.words = true;
    table.note = "A figure above its limit is the machine's only if that stood still for as long as the figure is above, while the message was under way.".to_owned();
    for it in promises(study) {
        let (kind, held) = match it.held {
            true => (Kind::Good, "yes"),
            false => (Kind::Bad, "NO"),
        };
        let counts = [it.count, it.above, it.explained].map(|count| count.to_string());
        let row = [it.says, it.seen]
            .into_iter()
            .chain(counts)
            .chain([held.to_owned()]);
        table.kind(kind, row);
    }
    table
}

fn table_i(study: &Study) -> Table {
    let mut table = Table::new(
        "Table I: transports",
        &[
            "#",
            "protocol",
            "congestion control",
            "security",
            "timeout [ms]",
            "measured here",
        ],
    );
    table.words = true;
    for (number, protocol, congestion, security, timeout) in paper::TABLE_I {
        let here = ALL.iter().find(|it| it.paper == Some(number));
        let measured = here.map_or_else(
            || match number {
                3 => "no: the paper's figures stand beside".to_owned(),
                _ => "no: no kernel that is maintained has it; the paper's figures stand beside"
                    .to_owned(),
            },
            |it| measured(study, it),
        );
        let words = [protocol, congestion, security, timeout].map(str::to_owned);
        table.row(
            [number.to_string()]
                .into_iter()
                .chain(words)
                .chain([measured]),
        );
    }
    for it in ALL.iter().filter(|it| it.paper.is_none()) {
        let congestion = match it.socket {
            Socket::Udp | Socket::State => "-",
            // RFC 9260, 7.2.
            Socket::Sctp => "SCTP's own",
            Socket::Tcp | Socket::Mptcp | Socket::Quic | Socket::MultipathQuic => "Cubic",
        };
        let (whose, security) = match (it.protection, it.tls) {
            (Some(_), _) if it.socket == Socket::State => ("ours", "its own"),
            (Some(_), true) => ("ours", "TLS 1.3, and iPRP's"),
            (Some(_), false) => ("ours", "iPRP's"),
            (None, true) => ("further", "TLS 1.3"),
            (None, false) => ("further", "none"),
        };
        let words = [whose, it.title, congestion, security, "-"].map(str::to_owned);
        table.row(words.into_iter().chain([measured(study, it)]));
    }
    table
}

fn measured(study: &Study, transport: &Transport) -> String {
    let lacking = study.not_measured.iter();
    if let Some(it) = lacking
        .into_iter()
        .find(|it| it.transport == transport.name)
    {
        return format!("no: {}", it.why);
    }
    let runs = study
        .runs
        .iter()
        .filter(|run| run.transport == transport.name);
    match runs.filter(|run| run.cut_ns.is_some()).count() {
        0 => "not asked for".to_owned(),
        count => format!("{count} outages"),
    }
}

/// What background traffic came to.
fn background(study: &Study) -> Table {
    let mut table = Table::new(
        "Background traffic: messages from all substations to the control centre",
        &[
            "asked [1/s]",
            "of the paper's",
            "sent [1/s]",
            "least in a second",
            "sent",
            "came",
            "lost",
            "lost [%]",
            "sent",
            "came",
            "median",
            "99 %",
            "max",
        ],
    );
    table.groups = vec![
        (String::new(), 4),
        ("over ways without outages".to_owned(), 4),
        ("over others".to_owned(), 2),
        ("one way [ms]".to_owned(), 3),
    ];
    for it in &study.background {
        table.note = format!(
            "{} bytes each, from {} substations in turn to {}, of which {} have an outage of a run on their way; the paper had {} in a second. What is not sent was \
             late by 20 ms for want of a processor, but for {} that the system did not take; of what is lost, {} came and found no room at the receiver. One way \
             includes the receiver's wait for a processor. The least is of whole seconds.{}",
            it.message_bytes,
            it.substations,
            it.centre,
            it.behind_outages,
            paper::BACKGROUND,
            it.refused,
            it.overrun,
            reckoned(it)
        );
        // The first second and the last one are not whole.
        let whole = it.course.get(1..it.course.len().saturating_sub(1));
        let least = whole
            .unwrap_or_default()
            .iter()
            .map(|(sent, _)| *sent)
            .min();
        let of = it.clear;
        let share = 100.0 * of.lost() as f64 / of.sent.max(1) as f64;
        let scale = f64::from(it.each_second) / f64::from(paper::BACKGROUND);
        table.row([
            it.each_second.to_string(),
            format!("{scale:.2}"),
            format!("{:.0}", it.achieved()),
            least.map_or_else(|| "-".to_owned(), |it| it.to_string()),
            of.sent.to_string(),
            of.received.to_string(),
            of.lost().to_string(),
            format!("{share:.3}"),
            it.behind.sent.to_string(),
            it.behind.received.to_string(),
            ms_or(it.p50_us),
            ms_or(it.p99_us),
            ms_or(it.max_us),
        ]);
    }
    table
}

/// Captures that lack something.
fn captures(study: &Study) -> Table {
    let mut table = Table::new("Captures that are not whole", &["case", "what is missing"]);
    table.words = true;
    for run in &study.runs {
        if let Some(lacks) = &run.capture_lacks {
            table.kind(
                Kind::Bad,
                [format!("{}, {}", run.transport, run.backup), lacks.clone()],
            );
        }
    }
    table
}

fn table_ii(study: &Study) -> Table {
    let mut table = Table::new(
        "Table II: round trips without outages [ms]",
        &["way", "messages", "mean", "median", "1 %", "99 %"],
    );
    table.note = "TCP, 1,000 bytes every 50 ms. The paper's emulated network took longer than its links sum to; the profile `measured` adds that to each router.".to_owned();
    let ways = [
        ("emulated network", None, paper::NETWORK),
        ("backup LTE", Some(Line::Lte), paper::backup(Line::Lte)),
        (
            "backup Ethernet",
            Some(Line::Ethernet),
            paper::backup(Line::Ethernet),
        ),
    ];
    for (way, line, figures) in ways {
        let mut measured = false;
        for load in loads(study) {
            let trips = baseline(study, line, load);
            if trips.count() > 0 {
                measured = true;
                let name = [format!("{way}{}", beside(load)), trips.count().to_string()];
                table.row(name.into_iter().chain(four(&trips)));
            }
        }
        if measured {
            let Figures {
                mean,
                median,
                low,
                high,
            } = figures;
            let theirs = [Some(mean), median, low, high].map(told);
            let name = ["paper".to_owned(), String::new()];
            table.kind(Kind::Paper, name.into_iter().chain(theirs));
        }
    }
    table
}

/// Failovers without and with background traffic, of cases that have both.
fn beside_each_other(study: &Study, cells: &[Cell<'_>]) -> Table {
    let mut table = Table::new(
        "Without and with background traffic [ms]",
        &[
            "case", "without", "with", "without", "with", "without", "with", "without", "with",
            "paper", "without", "with", "without", "with",
        ],
    );
    table.groups = vec![
        (String::new(), 1),
        ("before, 50 %".to_owned(), 2),
        ("before, 99 %".to_owned(), 2),
        ("failover, 50 %".to_owned(), 2),
        ("failover, mean".to_owned(), 3),
        ("over 10 ms [%]".to_owned(), 2),
        ("lost, at any time".to_owned(), 2),
    ];
    table.note = format!(
        "The paper's are with an Ethernet backup without, and with an LTE backup beside {} messages a second.",
        paper::BACKGROUND
    );
    let Some(load) = loads(study).into_iter().find(|&load| load > 0) else {
        return table;
    };
    for without in cells.iter().filter(|it| it.load == 0) {
        let same = |it: &&Cell<'_>| {
            it.load == load && it.transport == without.transport && it.line == without.line
        };
        let Some(with) = cells.iter().find(same) else {
            continue;
        };
        let both = |figure: &dyn Fn(&Cell<'_>) -> String| [figure(without), figure(with)];
        let mean = |trips: &Trips| trips.summary().map(|it| it.avg as u32);
        let over = |it: &Cell<'_>| {
            let count = it.through.count() + it.lost;
            let over = it.through.above(LIMIT_US) + it.lost;
            format!("{:.1}", 100.0 * over as f64 / count.max(1) as f64)
        };
        let of = without.transport.paper;
        let theirs = of.and_then(|row| paper::failover(row, without.line));
        let mut row = vec![without.title()];
        row.extend(both(&|it| ms_or(it.before.percentile(50))));
        row.extend(both(&|it| ms_or(it.before.percentile(99))));
        row.extend(both(&|it| ms_or(it.failovers.percentile(50))));
        row.extend(both(&|it| ms_or(mean(&it.failovers))));
        row.push(theirs.map_or_else(String::new, |it| told(Some(it.mean))));
        row.extend(both(&over));
        row.extend(both(&|it| (it.lost + it.lost_while_whole()).to_string()));
        table.row(row);
    }
    table
}

/// Mean, median, and the hundredths at both ends.
fn four(trips: &Trips) -> [String; 4] {
    let mean = trips
        .summary()
        .map_or_else(|| "-".to_owned(), |it| ms(it.avg));
    let [low, median, high] = [1, 50, 99].map(|percent| ms_or(trips.percentile(percent)));
    [mean, median, low, high]
}

fn failovers(cells: &[&Cell<'_>], line: Line, load: u32, loads: Vec<u32>) -> Table {
    let figure = match line {
        Line::Ethernet => 5,
        Line::Lte => 7,
    };
    let head = [
        "transport",
        "outages",
        "median",
        "99 %",
        "mean",
        "median",
        "1 %",
        "99 %",
        "max",
        "no end",
        "median",
        "99 %",
        "max",
        "over 10 ms",
        "lost",
        "before",
        "after",
        "too early",
    ];
    let mut table = Table::new(
        format!(
            "Figure {figure} in numbers: outages with an {} backup{}, round trips [ms]",
            line_title(line),
            beside(load)
        ),
        &head,
    );
    table.groups = vec![
        (String::new(), 2),
        ("before".to_owned(), 2),
        ("failover".to_owned(), 6),
        ("later, while dead".to_owned(), 3),
        ("outage".to_owned(), 2),
        ("lost otherwise".to_owned(), 2),
        (String::new(), 1),
    ];
    table.note = "Failover: the longest of the messages that were under way when the way died and of the first one after that. No end: one of these was never answered; such a failover has no time and is not among the others. Lost otherwise: messages that were lost before the way died, and those that left when it carried again and were never answered. Too early: runs in which the program was on its backup although the way was whole; they are left out of all but these two.".to_owned();
    // The paper's figures stand where they were measured as ours were, or in the one table that there is.
    let papers = (load > 0) == paper::loaded(line) || loads.len() == 1;
    if papers && paper::loaded(line) {
        table.note.push_str(&format!(
            " The paper's were measured beside {} messages a second of others, ours beside {load}.",
            paper::BACKGROUND
        ));
    }
    for cell in cells {
        table.row(row(cell));
        let of = cell.transport.paper.filter(|_| papers);
        if let Some(figures) = of.and_then(|row| paper::failover(row, line)) {
            table.kind(Kind::Paper, paper_row("paper", figures, head.len()));
        }
    }
    for (number, protocol, _, security, _) in paper::TABLE_I.into_iter().filter(|_| papers) {
        let measured = ALL.iter().any(|it| it.paper == Some(number));
        if let (false, Some(figures)) = (measured, paper::failover(number, line)) {
            let name = format!("paper: {protocol}, {security}");
            table.kind(Kind::Paper, paper_row(&name, figures, head.len()));
        }
    }
    table
}

fn row(cell: &Cell<'_>) -> Vec<String> {
    let most = |trips: &Trips| {
        trips
            .summary()
            .map_or_else(|| "-".to_owned(), |it| ms(it.max))
    };
    let failed = match cell.failed {
        0 => String::new(),
        failed => format!(" (and {failed} failed)"),
    };
    let mut row = vec![
        cell.transport.title.to_owned(),
        format!("{}{failed}", cell.runs.len()),
        ms_or(cell.before.percentile(50)),
        ms_or(cell.before.percentile(99)),
    ];
    row.extend(four(&cell.failovers));
    row.push(most(&cell.failovers));
    row.push(cell.endless.to_string());
    row.extend([50, 99].map(|percent| ms_or(cell.during.percentile(percent))));
    row.push(most(&cell.during));
    row.push((cell.through.above(LIMIT_US) + cell.lost).to_string());
    let lost = [cell.lost, cell.lost_before, cell.lost_after];
    row.extend(lost.map(|count| count.to_string()));
    row.push(cell.premature.to_string());
    row
}

fn paper_row(name: &str, figures: Figures, columns: usize) -> Vec<String> {
    let mut row = vec![String::new(); columns];
    row[0] = name.to_owned();
    row[4] = told(Some(figures.mean));
    row[5] = told(figures.median);
    row
}
