//! The paper's three research questions (II-C), answered from the data of a study alone.

use bumpless_wan::emulation::Line;

use super::words::{ms, ms_or, reckoned};
use crate::study::analysis::{Cell, LIMIT_US, Trips, baseline, beside, cells, loads, promises};
use crate::study::paper;
use crate::study::result::{Background, Study};
use crate::study::transport::{Socket, line_title};

/// With less of what was asked for than this, what sends had no processor, and then neither had what is measured.
const HONEST_SHARE: f64 = 0.98;
/// A message of what is measured that is given to its socket later than this had to wait for a processor, microseconds.
const LATE_US: u32 = 1_000;

/// A question with what the study says to it.
#[derive(Debug)]
pub struct Answer {
    /// The question.
    pub question: String,
    /// The answer.
    pub sentences: Vec<String>,
}

/// Every question.
pub fn all(study: &Study) -> Vec<Answer> {
    let cells = cells(study);
    let answer = |question: &str, sentences| Answer {
        question: question.to_owned(),
        sentences,
    };
    vec![
        answer("RQ1: can it be deployed?", feasible(study, &cells)),
        answer(
            "RQ2: which delays come with outages?",
            delays(study, &cells),
        ),
        answer(
            "RQ3: which transport meets what smart grids ask for?",
            suited(study, &cells),
        ),
    ]
}

fn feasible(study: &Study, cells: &[Cell<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    let of = |cell: &Cell<'_>, socket| cell.transport.socket == socket;
    let outages = |wanted: &dyn Fn(&Cell<'_>) -> bool| {
        let runs = cells.iter().filter(|cell| wanted(cell));
        runs.map(|cell| (cell.runs.len(), cell.failed))
            .fold((0, 0), |(ran, not), (more, failed)| {
                (ran + more, not + failed)
            })
    };
    let (ran, failed) = outages(&|cell| of(cell, Socket::Mptcp));
    if ran + failed > 0 {
        said.push(format!(
            "MPTCP v1 is in this kernel: {ran} runs of {} gave figures. Programs must ask for its socket, and both hosts be told of their addresses.",
            ran + failed
        ));
    }
    for lacking in &study.not_measured {
        said.push(format!(
            "{} cannot be had here: {}.",
            lacking.transport, lacking.why
        ));
    }
    let (ran, failed) = outages(&|cell| cell.transport.by_daemons().is_some());
    if ran + failed > 0 {
        said.push(format!(
            "iPRP protects the same TCP, TLS and UDP programs unmodified, by a daemon at each host: {ran} runs of {} gave figures.",
            ran + failed
        ));
    }
    let (ran, failed) = outages(&|cell| of(cell, Socket::State));
    if ran + failed > 0 {
        said.push(format!(
            "A controller's states go to its backup over both ways by themselves: {ran} runs of {} gave figures.",
            ran + failed
        ));
    }
    let (ran, _) = outages(&|cell| cell.transport.reconnects);
    if ran > 0 {
        said.push("Without either, the program itself has to watch for late answers, connect again over the backup and send again.".to_owned());
    }
    said
}

fn delays(study: &Study, cells: &[Cell<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    for line in [Line::Ethernet, Line::Lte] {
        for cell in cells.iter().filter(|cell| cell.line == line) {
            said.extend(delay(cell));
        }
    }
    for load in loads(study) {
        let network = baseline(study, None, load);
        if let Some(median) = network.percentile(50) {
            said.push(format!(
                "Without an outage{}, a message takes {} ms over the network there and back (median; 99 %: {} ms).",
                beside(load),
                ms(median),
                ms_or(network.percentile(99))
            ));
        }
    }
    said.extend(study.background.iter().map(|it| carried(study, it)));
    said
}

/// What background traffic was, and on which scale.
fn carried(study: &Study, background: &Background) -> String {
    let all = background.clear.sent + background.behind.sent;
    let scale = f64::from(background.each_second) / f64::from(paper::BACKGROUND);
    let honest = match too_much(study, background) {
        true => {
            " That is more than this machine has processors for: what is slower by it is no network's."
        }
        false => "",
    };
    let reckoned = reckoned(background);
    format!(
        "Background traffic of {} messages of {} bytes a second was asked for, {scale:.2} of the paper's {}, from {} substations in turn to {}: {:.0} were sent in \
         each second, {all} in all, and of {} over ways that no outage cut {} were lost. Such a message took {} ms one way (median; 99 %: {}).{honest}{reckoned}",
        background.each_second,
        background.message_bytes,
        paper::BACKGROUND,
        background.substations,
        background.centre,
        background.achieved(),
        background.clear.sent,
        background.clear.lost(),
        ms_or(background.p50_us),
        ms_or(background.p99_us),
    )
}

/// Whether background traffic wanted more of the processors than they had.
fn too_much(study: &Study, background: &Background) -> bool {
    let late = |load: u32| {
        let runs = study.runs.iter().filter(|run| run.background == load);
        let late = Trips::of(runs.flat_map(|run| run.late_us.iter().copied()));
        late.percentile(99).is_some_and(|us| us > LATE_US)
    };
    let share = background.achieved() / f64::from(background.each_second.max(1));
    share < HONEST_SHARE || (late(background.each_second) && !late(0))
}

/// A sentence on one case.
fn delay(cell: &Cell<'_>) -> Option<String> {
    let endless = match cell.endless {
        0 => String::new(),
        endless => format!("; {endless} more did not end"),
    };
    let lost = match cell.lost + cell.lost_while_whole() {
        0 => String::new(),
        _ => format!("; messages through it: {}", cell.losses()),
    };
    let Some(all) = cell.failovers.summary() else {
        return (cell.endless > 0).then(|| {
            format!(
                "{}: {} failovers, and none ended{lost}.",
                cell.title(),
                cell.endless
            )
        });
    };
    let figures = cell
        .transport
        .paper
        .and_then(|row| paper::failover(row, cell.line));
    let theirs = figures.map_or_else(String::new, |it| {
        let factor = all.avg as f64 / 1e3 / it.mean;
        format!(
            "; that is {factor:.1} times the paper's mean of {:.0} ms",
            it.mean
        )
    });
    Some(format!(
        "{}: a failover takes {} ms (mean of {}; median {}, longest {}{endless}){theirs}{lost}.",
        cell.title(),
        ms(all.avg),
        all.count,
        ms(all.p50),
        ms(all.max)
    ))
}

/// What applications ask for, microseconds.
const LIMITS: [(u32, &str); 3] = [
    (LIMIT_US, "10 ms (teleprotection)"),
    (100_000, "100 ms"),
    (500_000, "500 ms"),
];

/// Which of these cases of one backup and load meet a limit.
fn meet(cells: &[&Cell<'_>], (limit, what): (u32, &str)) -> String {
    let meets = |cell: &&&Cell<'_>| {
        let within = cell.failovers.percentile(99).is_some_and(|us| us <= limit);
        within && cell.lost + cell.lost_while_whole() == 0
    };
    let names = cells.iter().filter(meets).map(|cell| cell.transport.title);
    let names: Vec<_> = names.collect();
    let names = match names.is_empty() {
        true => "none".to_owned(),
        false => names.join("; "),
    };
    let (line, load) = cells
        .first()
        .map_or((Line::Ethernet, 0), |it| (it.line, it.load));
    format!(
        "Failovers within {what}, {} backup{}, 99 of 100 and nothing lost: {names}.",
        line_title(line),
        beside(load)
    )
}

fn suited(study: &Study, cells: &[Cell<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    for line in [Line::Ethernet, Line::Lte] {
        for load in loads(study) {
            let of = cells.iter();
            let of: Vec<_> = of.filter(|it| it.line == line && it.load == load).collect();
            if !of.is_empty() {
                said.extend(LIMITS.map(|limit| meet(&of, limit)));
            }
        }
    }
    let promises = promises(study);
    let held = promises.iter().filter(|it| it.held).count();
    if !promises.is_empty() {
        said.push(format!(
            "Of {} promises of ours {held} held.",
            promises.len()
        ));
    }
    if !cells.is_empty() {
        said.push("The paper found one transport that meets 10 ms, MPTCP v0 with its redundant scheduler, which needs a kernel that nobody maintains.".to_owned());
    }
    said
}
