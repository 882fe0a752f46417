//! What is said of a test stream, to people and as JSON.

use bumpless_iprp_daemon::{Came, Carried, Ending, Heard, Report, SendPlan, Sent};
use serde_json::{Value, json};

use crate::output;

/// What is to be said of a stream that was sent.
pub fn warnings(plan: &SendPlan, sent: &Sent) -> Vec<String> {
    let SendPlan { host, port, .. } = plan;
    let mut all = Vec::new();
    if sent.sent < plan.count {
        all.push(format!(
            "ended early: {} of {} datagrams were sent",
            sent.sent, plan.count
        ));
    }
    if !sent.is_monitored {
        all.push(format!(
            "UDP port {port} is not monitored in the file of {host}, so the stream went over one network: add [[monitor]] with protocol = \"udp\" \
             and port = {port} there, then `bumpless iprp reload` there"
        ));
    } else if !sent.is_replicated {
        all.push(format!(
            "no session with {host} began, so the stream went over one network: `bumpless iprp status` on both hosts names what keeps them \
             apart, and `bumpless iprp ping` tries the way"
        ));
    } else if sent.networks.len() < 2 {
        all.push(format!("both hosts share one network only: `bumpless iprp status` here and at {host} shows which each one has"));
    }
    if sent.report.is_none() {
        all.push(format!(
            "the report of {host} did not come back: what arrived stands there"
        ));
    }
    all
}

/// Copies that a network was given and that did not come.
fn lost(it: &Carried, report: Option<&Report>) -> Option<u64> {
    let came = came(it.ind, report?)?;
    Some(it.sent.saturating_sub(came.all()))
}

/// What came on a network; a network on which nothing has ever come is not in the report.
fn came(ind: u8, report: &Report) -> Option<Came> {
    let nothing = (!report.networks.is_empty()).then(|| Came {
        ind,
        ..Came::default()
    });
    report
        .networks
        .iter()
        .find(|it| it.ind == ind)
        .copied()
        .or(nothing)
}

/// `bumpless.iprp.test/1` of the sender.
pub fn sent_json(plan: &SendPlan, sent: &Sent, warnings: &[String]) -> Value {
    let report = sent.report.as_ref();
    let network = |it: &Carried| {
        let came = report.and_then(|report| came(it.ind, report));
        json!({
            "ind": it.ind,
            "to": it.to,
            "sent": it.sent,
            "again": it.again,
            "came": came.map(|it| it.all()),
            "first": came.map(|it| it.first),
            "wrong_network": came.map(|it| it.wrong_network),
            "lost": lost(it, report),
        })
    };
    json!({
        "schema": "bumpless.iprp.test/1",
        "role": "sender",
        "host": plan.host.to_string(),
        "port": plan.port,
        "bytes": plan.bytes,
        "asked": plan.count,
        "ended": sent.sent == plan.count,
        "sent": sent.sent,
        "not_taken": sent.not_taken,
        "took_s": sent.took.as_secs_f64(),
        "monitored": sent.is_monitored,
        "replicated": sent.is_replicated,
        "stream": report.map(|it| stream(it, sent.sent)),
        "networks": sent.networks.iter().map(network).collect::<Vec<_>>(),
        "warnings": warnings,
    })
}

fn stream(report: &Report, total: u32) -> Value {
    json!({
        "arrived": report.arrived,
        "lost": total.saturating_sub(report.arrived),
        "doubled": report.doubled,
        "reordered": report.reordered,
        "delay_spread_us": report.spread.map(|it| json!({"median": it.median_us, "p99": it.p99_us, "most": it.most_us})),
    })
}

/// What is to be said of a stream that was heard.
fn warning(heard: &Heard) -> Option<String> {
    let Heard { asked, total, .. } = heard;
    match heard.ending {
        Ending::Whole => None,
        Ending::Early => Some(format!(
            "the sender was ended early: of {asked} datagrams it has sent {total}"
        )),
        Ending::Silent => Some(
            "the sender fell silent before its end, so what it has not sent counts as lost"
                .to_owned(),
        ),
        Ending::Interrupted => Some(format!(
            "ended early: of {asked} datagrams the sender had sent {total} by then, as far as is known here"
        )),
    }
}

/// `bumpless.iprp.test/1` of the listener.
pub fn heard_json(
    port: u16,
    heard: &Heard,
    is_monitored: bool,
    mut warnings: Vec<String>,
) -> Value {
    warnings.extend(warning(heard));
    let is_whole = heard.ending == Ending::Whole;
    let network = |it: &Came| {
        json!({
            "ind": it.ind,
            "came": it.all(),
            "first": it.first,
            "duplicate": it.duplicate,
            "very_late": it.very_late,
            "wrong_network": it.wrong_network,
        })
    };
    json!({
        "schema": "bumpless.iprp.test/1",
        "role": "listener",
        "port": port,
        "from": heard.from.to_string(),
        "asked": heard.asked,
        "ended": is_whole,
        "whole": is_whole,
        "monitored": is_monitored,
        "stream": stream(&heard.report, heard.total),
        "networks": heard.report.networks.iter().map(network).collect::<Vec<_>>(),
        "warnings": warnings,
    })
}

fn print_stream(report: &Report, total: u32) {
    output::print_line(format_args!(
        "{total} datagrams: {} arrived, {} lost, {} doubled, {} reordered",
        report.arrived,
        total.saturating_sub(report.arrived),
        report.doubled,
        report.reordered
    ));
    if let Some(it) = report.spread {
        output::print_line(format_args!(
            "delay beyond the fastest one's: median {:.0}, 99 % {:.0}, most {:.0} us",
            it.median_us, it.p99_us, it.most_us
        ));
    }
}

/// Tells people what came of a stream that was sent.
pub fn print_sent(sent: &Sent, warnings: &[String]) {
    match &sent.report {
        Some(report) => print_stream(report, sent.sent),
        None => output::print_line(format_args!("{} datagrams sent", sent.sent)),
    }
    if sent.not_taken > 0 {
        output::print_line(format_args!(
            "{} of them the system did not take",
            sent.not_taken
        ));
    }
    let report = sent.report.as_ref();
    for it in &sent.networks {
        let first = report
            .and_then(|report| came(it.ind, report))
            .map_or("?".into(), |it| it.first.to_string());
        let lost = lost(it, report).map_or("?".into(), |lost| lost.to_string());
        output::print_line(format_args!(
            "  network {} to {}: {} copies, {lost} lost, {first} of them the first to arrive",
            it.ind, it.to, it.sent
        ));
    }
    warnings
        .iter()
        .for_each(|it| output::print_line(format_args!("warning: {it}")));
}

/// Tells people what came of a stream that was heard.
pub fn print_heard(heard: &Heard) {
    output::print_line(format_args!("stream from {}", heard.from));
    print_stream(&heard.report, heard.total);
    for it in &heard.report.networks {
        output::print_line(format_args!(
            "  network {}: {} first, {} duplicate, {} very late, {} on another network",
            it.ind, it.first, it.duplicate, it.very_late, it.wrong_network
        ));
    }
    if let Some(words) = warning(heard) {
        output::print_line(format_args!("warning: {words}"));
    }
}
