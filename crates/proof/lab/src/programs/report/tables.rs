//! Tables: what is promised, which programs, and what was seen in each outage.

use bumpless_bench::report::table::{Kind, Table};

use super::super::outside::TIMEOUT_MS;
use super::super::plan::Outage;
use super::super::protocol::Protocol;
use super::super::result::{Pass, Programs, Row};
use super::words::seconds;

/// All of them.
pub fn all(programs: &Programs) -> Vec<Table> {
    let outages = Outage::ALL.iter();
    let outages = outages.map(|&outage| seen(programs, outage));
    let tables = [promises(programs), software(programs)].into_iter();
    tables
        .chain(outages)
        .filter(|table| !table.is_empty())
        .collect()
}

fn promises(programs: &Programs) -> Table {
    let head = ["promise", "seen", "held"];
    let mut table = Table::new(
        "What is promised of programs under iPRP, and what was seen",
        &head,
    );
    table.words = true;
    for promise in &programs.promises {
        let (kind, held) = match promise.held {
            true => (Kind::Good, "yes"),
            false => (Kind::Bad, "NO"),
        };
        let cells = [&promise.says, &promise.seen].map(Clone::clone);
        table.kind(kind, cells.into_iter().chain([held.to_owned()]));
    }
    table
}

fn software(programs: &Programs) -> Table {
    let mut table = Table::new("Programs", &["protocol", "program"]);
    table.words = true;
    for one in &programs.software {
        let program = match (&one.program, &one.not_run) {
            (Some(program), _) => program.clone(),
            (None, why) => format!("NOT RUN: {}", why.as_deref().unwrap_or("no program")),
        };
        table.row([one.protocol.to_string(), program]);
    }
    table
}

/// What was seen when `outage` happened, for each protocol and centre of the substations that it reached, and of the others.
fn seen(programs: &Programs, outage: Outage) -> Table {
    let names = programs.outages.iter().find(|it| it.outage == outage);
    let names = names.map_or_else(String::new, |it| match it.nodes.is_empty() {
        true => String::new(),
        false => format!(" ({})", it.nodes.join(", ")),
    });
    let seconds_long = programs.settings.seconds;
    let caption = match outage {
        Outage::None => format!("Nothing dies: {seconds_long} s as they are"),
        _ => format!("For {seconds_long} s {} dies{names}", outage.title()),
    };
    let one = [
        "lost", "later", "median", "99 %", "silence", "ended", "back", "crashes",
    ];
    let head: Vec<&str> = ["protocol", "centre", "substations", "sent"]
        .into_iter()
        .chain(one)
        .chain(one)
        .collect();
    let mut table = Table::new(caption, &head);
    // What columns are is said once, at the first of these tables.
    if outage == Outage::None {
        table.note = format!(
            "Sent, lost: orders, questions and frames while it is dead, lost without an answer within {} s or, of frames, at all. Later: lost of those that were sent after it, until the next one dies. Median, 99 %: round \
             trips [ms], of frames one way. Silence: the longest for which one of the substations is not heard, until the next one dies. Ended: \
             connections. Back: from the end of the outage until each is heard. Crashes: how often the centre's program died of a fault of its own and was started \
             again, with all of its connections. Reached: those that have the outage on their way there or back.",
            TIMEOUT_MS / 1000
        );
    }
    table.groups = vec![
        (String::new(), 4),
        ("without iPRP".to_owned(), one.len()),
        ("under iPRP".to_owned(), one.len()),
    ];
    if programs.rows.iter().all(|row| row.outage != outage) {
        return table;
    }
    for protocol in Protocol::ALL {
        let ran = programs.software.iter().find(|it| it.protocol == protocol);
        if ran.is_some_and(|it| it.program.is_none()) {
            let cells = [protocol.to_string(), "not run".to_owned()];
            let empty = std::iter::repeat_n(String::new(), head.len() - cells.len());
            table.row(cells.into_iter().chain(empty));
            continue;
        }
        for centre in &programs.centres {
            for reached in [true, false] {
                let of = |pass: Pass| {
                    programs.rows.iter().find(|row| {
                        let is_of = row.outage == outage && row.protocol == protocol;
                        is_of && row.pass == pass && row.centre == *centre && row.reached == reached
                    })
                };
                table_row(&mut table, (protocol, centre), Pass::ALL.map(of));
            }
        }
    }
    table
}

fn table_row(table: &mut Table, (protocol, centre): (Protocol, &str), rows: [Option<&Row>; 2]) {
    let Some(any) = rows[0].or(rows[1]) else {
        return;
    };
    let which = match (any.outage, any.reached) {
        (Outage::None, _) => any.substations.to_string(),
        (_, true) => format!("{} reached", any.substations),
        (_, false) => format!("{} others", any.substations),
    };
    let sent = rows.map(|row| row.map_or_else(|| "-".to_owned(), |row| row.sent.to_string()));
    let first = [
        protocol.to_string(),
        centre.to_owned(),
        which,
        sent.join(", "),
    ];
    let cells = rows.into_iter().flat_map(|row| {
        let Some(row) = row else {
            return vec!["-".to_owned(); 8];
        };
        let ms = |us: Option<u64>| {
            us.map_or_else(|| "-".to_owned(), |us| format!("{:.1}", us as f64 / 1e3))
        };
        let back = match (row.outage, row.back_ms) {
            (Outage::None, _) => "-".to_owned(),
            (_, None) => "not yet".to_owned(),
            (_, Some(ms)) => seconds(ms),
        };
        vec![
            row.lost.to_string(),
            row.lost_after
                .map_or_else(|| "-".to_owned(), |count| count.to_string()),
            ms(row.p50_us),
            ms(row.p99_us),
            seconds(row.silence_ms),
            match protocol {
                Protocol::Phasors => "-".to_owned(),
                _ => row.ended.to_string(),
            },
            back,
            row.crashes.to_string(),
        ]
    });
    table.row(first.into_iter().chain(cells));
}
