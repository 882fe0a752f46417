//! The paper's tables with ours beside, failovers, and promises.

use bumpless_bench::report::table::{Kind, Table};
use bumpless_wan::emulation::Line;

use super::words::{ms, ms_or, paper as told};
use crate::study::analysis::{Cell, LIMIT_US, Trips, baseline, cells, promises};
use crate::study::paper::{self, Figures};
use crate::study::result::Study;
use crate::study::transport::{ALL, Socket, Transport, line_title};

/// Every table, in order.
pub fn all(study: &Study) -> Vec<Table> {
    let cells = cells(study);
    let mut tables = vec![promised(study), table_i(study), table_ii(study)];
    for line in [Line::Ethernet, Line::Lte] {
        let of: Vec<_> = cells.iter().filter(|it| it.line == line).collect();
        if !of.is_empty() {
            tables.push(failovers(&of, line));
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
            Socket::Udp => "-",
            Socket::Tcp | Socket::Mptcp | Socket::Quic => "Cubic",
        };
        let security = match it.tls {
            true => "TLS 1.3, and iPRP's",
            false => "iPRP's",
        };
        let words = ["ours", it.title, congestion, security, "-"].map(str::to_owned);
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

fn table_ii(study: &Study) -> Table {
    let mut table = Table::new(
        "Table II: round trips without outages [ms]",
        &["way", "messages", "mean", "median", "1 %", "99 %"],
    );
    table.note = "TCP, 1,000 bytes every 50 ms. The paper's emulated network took longer than its links sum to; the profile `measured` adds that to each router.".to_owned();
    let rows = [
        ("emulated network", baseline(study, None), paper::NETWORK),
        (
            "backup LTE",
            baseline(study, Some(Line::Lte)),
            paper::backup(Line::Lte),
        ),
        (
            "backup Ethernet",
            baseline(study, Some(Line::Ethernet)),
            paper::backup(Line::Ethernet),
        ),
    ];
    for (way, trips, figures) in rows {
        if trips.count() == 0 {
            continue;
        }
        table.row(
            [way.to_owned(), trips.count().to_string()]
                .into_iter()
                .chain(four(&trips)),
        );
        let Figures {
            mean,
            median,
            low,
            high,
        } = figures;
        let theirs = [Some(mean), median, low, high].map(told);
        table.kind(
            Kind::Paper,
            ["paper".to_owned(), String::new()]
                .into_iter()
                .chain(theirs),
        );
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

fn failovers(cells: &[&Cell<'_>], line: Line) -> Table {
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
        "median",
        "99 %",
        "max",
        "over 10 ms",
        "lost",
        "too early",
    ];
    let mut table = Table::new(
        format!(
            "Figure {figure} in numbers: outages with an {} backup, round trips [ms]",
            line_title(line)
        ),
        &head,
    );
    table.groups = vec![
        (String::new(), 2),
        ("before".to_owned(), 2),
        ("failover".to_owned(), 5),
        ("later, while dead".to_owned(), 3),
        ("outage".to_owned(), 2),
        (String::new(), 1),
    ];
    table.note = "Failover: the longest of the messages that were under way when the way died and of the first one after that. Too early: runs in which the program went to its backup although the way was whole; they are left out.".to_owned();
    if line == Line::Lte {
        table
            .note
            .push_str(" The paper's were measured beside 50,000 messages a second of others, ours beside none.");
    }
    for cell in cells {
        table.row(row(cell));
        if let Some(figures) = cell
            .transport
            .paper
            .and_then(|row| paper::failover(row, line))
        {
            table.kind(Kind::Paper, paper_row("paper", figures, head.len()));
        }
    }
    for (number, protocol, _, security, _) in paper::TABLE_I {
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
    row.extend([50, 99].map(|percent| ms_or(cell.during.percentile(percent))));
    row.push(most(&cell.during));
    row.push((cell.through.above(LIMIT_US) + cell.lost).to_string());
    row.push(cell.lost.to_string());
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
