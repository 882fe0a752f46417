//! The tables of a run: medians of the rounds, with the least and the most.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

fn number(cell: &Value, field: &str) -> f64 {
    cell[field].as_f64().unwrap_or(0.0)
}

fn quantile(of: &Value, percent: usize) -> Option<f64> {
    let mut all: Vec<_> = of.as_array()?.iter().filter_map(Value::as_u64).collect();
    all.sort_unstable();
    let at = (all.len() * percent / 100).min(all.len().checked_sub(1)?);
    Some(all[at] as f64)
}

/// The median of the rounds, the least and the most.
fn rounds(mut all: Vec<f64>, unit: f64, digits: usize) -> String {
    all.sort_by(f64::total_cmp);
    match all.as_slice() {
        [] => "-".to_owned(),
        [least, .., most] => {
            let [middle, least, most] = [all[all.len() / 2], *least, *most].map(|it| it / unit);
            format!("{middle:.digits$} ({least:.digits$} to {most:.digits$})")
        }
        [only] => format!("{:.digits$}", only / unit),
    }
}

/// Rows by the label that `label` gives, columns by that of `column`; each cell a figure of each round.
struct Table {
    rows: Vec<String>,
    columns: Vec<String>,
    figures: BTreeMap<(usize, usize), Vec<f64>>,
}

fn place(all: &mut Vec<String>, label: String) -> usize {
    all.iter().position(|it| *it == label).unwrap_or_else(|| {
        all.push(label);
        all.len() - 1
    })
}

impl Table {
    fn of<'a>(
        cells: impl Iterator<Item = &'a Value>,
        label: impl Fn(&Value) -> String,
        figures: impl Fn(&Value) -> Vec<(String, Option<f64>)>,
    ) -> Self {
        let mut table = Self {
            rows: Vec::new(),
            columns: Vec::new(),
            figures: BTreeMap::new(),
        };
        for cell in cells {
            let row = place(&mut table.rows, label(cell));
            for (column, figure) in figures(cell) {
                let column = place(&mut table.columns, column);
                let figures = table.figures.entry((row, column)).or_default();
                figures.extend(figure);
            }
        }
        table
    }

    fn print(&self, out: &mut String, title: &str, unit: f64, digits: usize) {
        let cell = |row, column| {
            let figures = self.figures.get(&(row, column)).cloned();
            rounds(figures.unwrap_or_default(), unit, digits)
        };
        let first = self.rows.iter().map(String::len).max().unwrap_or(0);
        let _ = writeln!(out, "\n{title}\n");
        let _ = write!(out, "{:first$}", "");
        for column in &self.columns {
            let _ = write!(out, "  {column:>26}");
        }
        let _ = writeln!(out);
        for (row, name) in self.rows.iter().enumerate() {
            let _ = write!(out, "{name:first$}");
            for column in 0..self.columns.len() {
                let _ = write!(out, "  {:>26}", cell(row, column));
            }
            let _ = writeln!(out);
        }
    }
}

fn way(cell: &Value) -> String {
    let way = cell["way"].as_str().unwrap_or_default();
    let asks = cell["asks"] == false && way == "socket";
    match cell["busy"].as_bool() {
        Some(true) if asks => format!("{way}, busy, not asking"),
        Some(true) => format!("{way}, busy"),
        _ => way.to_owned(),
    }
}

fn worker(cell: &Value) -> &str {
    match cell["worker"].as_str() {
        Some("thread") => "own thread",
        _ => "where interrupted",
    }
}

pub fn tables(run: &Value) -> String {
    let text = |field: &str| run[field].as_str().unwrap_or_default().to_owned();
    let mut out = format!(
        "{}\ncommit {}, {}\nload before: {}, after: {}\n",
        text("host"),
        text("commit"),
        text("command"),
        run["load"]["before"].as_str().unwrap_or_default(),
        run["load"]["after"].as_str().unwrap_or_default(),
    );
    let _ = writeln!(
        out,
        "{} rounds: the median of the rounds (least to most)",
        run["rounds"]
    );
    let all = run["cells"].as_array().cloned().unwrap_or_default();
    let of = |what: &'static str| all.iter().filter(move |it| it["what"] == what);
    delays(&mut out, &of);
    costs(&mut out, &of);
    states(&mut out, &of);
    out
}

fn delays<'a, I: Iterator<Item = &'a Value>>(out: &mut String, of: &impl Fn(&'static str) -> I) {
    let took = |cell: &Value, name: &str| {
        [50, 99].map(|percent| {
            (
                format!("{name}p{percent}"),
                quantile(&cell["took_ns"], percent),
            )
        })
    };
    let label = |cell: &Value| format!("{} B, {}, {}", cell["bytes"], worker(cell), way(cell));
    let title = "1,000 datagrams a second, from the sender's call to the receiver's program, us";
    Table::of(of("delay"), label, |cell| took(cell, "").into()).print(out, title, 1e3, 1);
    let title = "1,000 urgent datagrams a second beside 100,000 of another flow that take their receiver 4 us each, us";
    let label = |cell: &Value| format!("{}, {}", worker(cell), way(cell));
    let figures = |cell: &Value| {
        let mut all: Vec<_> = took(cell, "urgent ").into();
        all.push(("other p50".to_owned(), cell["other_p50_ns"].as_f64()));
        all
    };
    Table::of(of("priority"), label, figures).print(out, title, 1e3, 1);
}

/// Nanoseconds of the receiver and of the interface's thread for each of so many.
fn shares(cell: &Value, count: f64) -> Vec<(String, Option<f64>)> {
    let [receiver, thread] = ["receiver_ns", "thread_ns"].map(|it| number(cell, it) / count);
    vec![
        ("receiver".to_owned(), Some(receiver)),
        ("interface's thread".to_owned(), Some(thread)),
        ("both".to_owned(), Some(receiver + thread)),
    ]
}

fn each_call(cell: &Value) -> f64 {
    number(cell, "calls_ns") / number(cell, "sent").max(1.0)
}

fn costs<'a, I: Iterator<Item = &'a Value>>(out: &mut String, of: &impl Fn(&'static str) -> I) {
    let label = |cell: &Value| {
        let checksum = match cell["what"].as_str() {
            Some("cost with checksum") => ", checksum computed",
            _ => "",
        };
        format!(
            "{} B, {}/s, {}{checksum}",
            cell["bytes"],
            cell["per_second"],
            way(cell)
        )
    };
    let dropped = |cell: &Value| {
        let same = |it: &&Value| {
            ["bytes", "per_second", "way", "round"]
                .iter()
                .all(|field| it[field] == cell[field])
        };
        of("junk").find(same).map_or(0.0, each_call)
    };
    let figures = |cell: &Value| {
        let time = match cell["busy"].as_bool() {
            Some(true) => "taking_ns",
            _ => "receiver_ns",
        };
        let receiver = number(cell, time) / number(cell, "received").max(1.0);
        let kernel = each_call(cell) - dropped(cell);
        let lost = number(cell, "sent") - number(cell, "received");
        vec![
            ("receiver".to_owned(), Some(receiver)),
            ("kernel".to_owned(), Some(kernel)),
            ("both".to_owned(), Some(receiver + kernel)),
            ("lost".to_owned(), Some(lost)),
        ]
    };
    let both = of("cost").chain(of("cost with checksum"));
    let title = "Processor time for each wanted datagram beyond one that is dropped at the driver, ns (receiver: of its thread, or, if it \
                 looks without sleeping, in what takes datagrams; kernel: in the sender's call, beyond that for a dropped one)";
    Table::of(both, label, figures).print(out, title, 1.0, 0);
    let call = |cell: &Value| vec![("call that sends it".to_owned(), Some(each_call(cell)))];
    let title = "Datagrams to a closed port, dropped at the driver: with what sends each, ns";
    Table::of(of("junk"), label, call).print(out, title, 1.0, 0);
    highest(out, of("highest"));
}

fn highest<'a>(out: &mut String, cells: impl Iterator<Item = &'a Value>) {
    // By cell and round: the highest rate of those without loss, and the most that was sent.
    let mut best: BTreeMap<(String, u64), (f64, f64)> = BTreeMap::new();
    for cell in cells {
        let segments = match cell["segments"].as_bool() {
            Some(true) => "in segments",
            _ => "one by one",
        };
        let name = format!(
            "{}, {} B, {segments}, {}",
            worker(cell),
            cell["bytes"],
            way(cell)
        );
        let entry = best
            .entry((name, cell["round"].as_u64().unwrap_or(0)))
            .or_default();
        let attained = number(cell, "attained_per_second");
        if cell["lost"] == 0 {
            entry.0 = entry.0.max(attained);
        }
        entry.1 = entry.1.max(attained);
    }
    let mut by_name: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
    for ((name, _), (without, sent)) in best {
        let [all_without, all_sent] = by_name.entry(name).or_default();
        all_without.push(without);
        all_sent.push(sent);
    }
    let width = by_name.keys().map(String::len).max().unwrap_or(0);
    let _ = writeln!(
        out,
        "\nThe highest rate without loss, and the most that was sent, thousands a second\n"
    );
    for (name, [without, sent]) in by_name {
        let [without, sent] = [without, sent].map(|it| rounds(it, 1e3, 0));
        let _ = writeln!(out, "{name:width$}  {without:>26}  {sent:>26}");
    }
}

fn states<'a, I: Iterator<Item = &'a Value>>(out: &mut String, of: &impl Fn(&'static str) -> I) {
    let label = |cell: &Value| {
        let rate = match cell["gigabits"].as_u64() {
            Some(0) | None => "as fast as it goes".to_owned(),
            Some(rate) => format!("{rate} Gbit/s"),
        };
        let joined = match cell["joined"].as_bool() {
            Some(false) => ", nothing joined",
            _ => "",
        };
        format!("{}, {rate}, {}{joined}", worker(cell), way(cell))
    };
    let figures = |cell: &Value| {
        vec![
            (
                "first to last, p50".to_owned(),
                quantile(&cell["spread_ns"], 50),
            ),
            ("p99".to_owned(), quantile(&cell["spread_ns"], 99)),
            (
                "sent to last, p50".to_owned(),
                quantile(&cell["whole_ns"], 50),
            ),
        ]
    };
    let title = "States of 1 MB (715 datagrams of 1,400 B, 44 at a time), us";
    Table::of(of("state"), label, figures).print(out, title, 1e3, 0);
    let cpu = |cell: &Value| {
        let mut all = match cell["worker"] == "thread" && cell["busy"] == false {
            true => shares(cell, number(cell, "states")),
            false => Vec::new(),
        };
        let incomplete = number(cell, "incomplete") * 1e3;
        all.push(("not whole, of 20".to_owned(), Some(incomplete)));
        let buffers = number(cell, "buffers");
        let joined = number(cell, "datagrams") * number(cell, "states") / buffers * 1e3;
        let joined = (buffers > 0.0).then_some(joined);
        all.push(("datagrams a buffer".to_owned(), joined));
        all
    };
    let title = "Processor time for each of them, us, how many were not whole, and how many datagrams the kernel joined";
    Table::of(of("state"), label, cpu).print(out, title, 1e3, 0);
}
