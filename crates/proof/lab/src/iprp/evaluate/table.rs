//! The tables in the paper's layout, the paper's figures beside the measured ones.

use std::fmt::Write;

use super::Results;
use super::scenario::{PAPER_COST, Row};
use super::traffic::Traffic;
use crate::iprp::hosts::NAMES;

/// All tables.
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Losses (table III), per cent: measured / in the paper. {} flows at once, each 280 bytes every 20 ms for {:.0} s.\n",
        results.flows, results.seconds
    );
    let _ = writeln!(
        text,
        "{:<5} {:>15} {:>15} {:>15} {:>17} {:>17}  99 % of theory",
        "Scen.", "nwA", "nwB", "nwC", "iPRP", "theory"
    );
    for it in &results.measured {
        let (of_networks, with, theory) = it.scenario.paper;
        let _ = write!(text, "{:<5}", it.scenario.number);
        for network in 0..NAMES.len() {
            let cell = match of_networks.get(network) {
                Some(paper) => format!("{:.3} / {paper:.3}", it.loss_of(network) * 100.0),
                None => "-".to_owned(),
            };
            let _ = write!(text, " {cell:>15}");
        }
        let (least, most) = it.interval();
        let lost = it.lost() as f64 / it.sent().max(1) as f64 * 100.0;
        let pair = |ours: f64, paper: f64| format!("{ours:.4} / {paper:.4}");
        let _ = writeln!(
            text,
            " {:>17} {:>17}  {} of {}, {least:.0} to {most:.0}: {}",
            pair(lost, with),
            pair(it.theory() * 100.0, theory),
            it.lost(),
            it.sent(),
            if it.is_as_theory_says() {
                "within"
            } else {
                "NOT as theory says"
            }
        );
        if it.unseen > 0 {
            let _ = writeln!(
                text,
                "      {} more do not count: a network has not seen their copy, as when this machine stands still",
                it.unseen
            );
        }
        if it.own_losses() > 0 || it.doubled > 0 {
            let _ = writeln!(
                text,
                "      {} were missed though a copy came, {} came twice",
                it.own_losses(),
                it.doubled
            );
        }
    }
    delays(&mut text, results);
    bars(&mut text, results);
    cost(&mut text, results);
    if let Some(it) = &results.traffic {
        traffic(&mut text, it);
    }
    text
}

fn traffic(text: &mut String, traffic: &Traffic) {
    let _ = writeln!(
        text,
        "\nOther programs, unmodified, both networks as in scenario 5. Lost, per cent of copies and of what was sent; delays in ms.\n\n\
         {:<52} {:>7} {:>7} {:>8} {:>16} {:>16}  delay: median, p99",
        "Program", "nwA", "nwB", "iPRP", "missed of", "lost on both"
    );
    for row in &traffic.rows {
        let percent = |share: f64| format!("{:.3}", share * 100.0);
        let _ = write!(
            text,
            "{:<52} {:>7} {:>7} {:>8} {:>16} {:>16}",
            row.name,
            percent(row.loss_of(0)),
            percent(row.loss_of(1)),
            percent(row.loss()),
            format!("{} of {}", row.lost, row.sent),
            row.lost_on_all
        );
        if let Some(delay) = &row.delay {
            let ms = |ns: u64| ns as f64 / 1e6;
            let (median, p99) = (ms(delay.p50), ms(delay.p99));
            let _ = write!(text, "  {median:.3}, {p99:.3} ({})", row.delay_of);
        }
        if !row.note.is_empty() {
            let _ = write!(text, "  {}", row.note);
        }
        text.push_str(if row.held {
            "\n"
        } else {
            "  NOT as it should be\n"
        });
    }
    for it in &traffic.absent {
        let _ = writeln!(text, "{:<52} not measured: {}", it.name, it.why);
    }
}

fn delays(text: &mut String, results: &Results) {
    let Some(delays) = results.delays() else {
        return;
    };
    let _ = writeln!(
        text,
        "\nDelays (figure 5, scenario 5), ms: what the program sees is the least of its copies', and the way through both hosts.\n\n\
         {:<28} {:>8} {:>8} {:>8}",
        "", "median", "mean", "p99"
    );
    let mut row = |name: &str, it: &super::Summary| {
        let [median, mean, p99] = [it.p50, it.avg, it.p99].map(|ns| ns as f64 / 1e6);
        let _ = writeln!(text, "{name:<28} {median:>8.3} {mean:>8.3} {p99:>8.3}");
    };
    for (network, it) in delays.networks.iter().enumerate() {
        row(&format!("nw{}", NAMES[network]), it);
    }
    row("least of the copies", &delays.least);
    row("iPRP", &delays.program);
    row("iPRP above the least", &delays.added);
}

fn bars(text: &mut String, results: &Results) {
    if results.bars.is_empty() {
        return;
    }
    text.push_str("\nWhat is promised besides\n\n");
    for bar in &results.bars {
        let verdict = if bar.held { "held" } else { "BROKEN" };
        let _ = writeln!(text, "{verdict:<6} {}: {}", bar.id, bar.promised);
        let _ = write!(text, "       {}", bar.seen);
        if bar.stalled > 0 {
            let _ = write!(
                text,
                "; {} more while this machine stood still",
                bar.stalled
            );
        }
        text.push('\n');
    }
    let (count, longest) = results.stalls;
    let _ = writeln!(
        text,
        "       This machine stood still {count} times for 2 ms or more meanwhile, {longest:.1} ms at the longest."
    );
}

fn cost(text: &mut String, results: &Results) {
    if results.cost.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\nProcessor (table IV), per cent of one: measured / in the paper, of another computer.\n\n\
         {:<9} {:>33} {:>33}\n{:<9} {:>16} {:>16} {:>16} {:>16}",
        "",
        "1000 packets/s in all",
        "10 packets/s for each",
        "Sessions",
        "Send.",
        "Rec.",
        "Send.",
        "Rec."
    );
    for row in &results.cost {
        let paper = PAPER_COST.iter().find(|it| it.sessions == row.sessions);
        let Some(paper) = paper else {
            continue;
        };
        let pair = |ours: f64, paper: f64| format!("{ours:.2} / {paper:.1}");
        let cells = [
            pair(row.together.0, paper.together.0),
            pair(row.together.1, paper.together.1),
            pair(row.each.0, paper.each.0),
            pair(row.each.1, paper.each.1),
        ];
        let _ = write!(text, "{:<9}", row.sessions);
        for cell in cells {
            let _ = write!(text, " {cell:>16}");
        }
        text.push('\n');
    }
    if let Some((sender, receiver)) = for_a_packet(&results.cost) {
        let _ = writeln!(
            text,
            "\nProcessor time for each packet, from the rows of 1000 packets/s: sender {sender:.0} us, receiver {receiver:.0} us, system calls \
             included; the paper's profiler has 0.8 us and 3.6 us for its own functions alone."
        );
    }
}

/// Microseconds of both daemons for a packet of experiment 1, above what they take when idle.
fn for_a_packet(rows: &[Row]) -> Option<(f64, f64)> {
    let idle = rows.iter().find(|row| row.sessions == 0)?;
    let busy: Vec<_> = rows.iter().filter(|row| row.sessions > 0).collect();
    let mean = |of: fn(&Row) -> f64| {
        let sum: f64 = busy.iter().map(|row| of(row) - of(idle)).sum();
        // Per cent of a second, for a thousand packets.
        sum / busy.len() as f64 * 10.0
    };
    (!busy.is_empty()).then(|| (mean(|row| row.together.0), mean(|row| row.together.1)))
}
