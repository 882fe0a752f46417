//! A daemon's status in lines for people, with rates beside the totals where [`super::rates`] has added them.

use serde_json::Value;

/// All of it; with `all` the counters that are zero, too.
pub fn status(status: &Value, all: bool) -> Vec<String> {
    let mut lines = vec![format!(
        "iPRP, process {}, up {:.0} s",
        status["pid"],
        status["uptime_s"].as_f64().unwrap_or_default()
    )];
    for it in list(&status["networks"]) {
        lines.push(format!(
            "  network {}: {} on {}; {} datagrams came, {} not taken by the system{}",
            it["ind"],
            text(&it["address"]),
            text(&it["interface"]),
            count(it, "came"),
            count(it, "not_taken"),
            match it["segments"].as_str() {
                Some("refused") => "; refuses segments, so copies leave one by one",
                _ => "",
            }
        ));
    }
    lines.push(capture(&status["capture"]));
    lines.extend(security(&status["security"]));
    lines.extend(list(&status["groups"]).iter().map(group));
    lines.extend(sending(status));
    lines.extend(sessions_received(status));
    lines.extend(numbers("counters", status, "counters", all));
    lines.extend(numbers("discarded", status, "discarded", all));
    lines.extend(numbers(
        "control messages refused",
        status,
        "control_refused",
        all,
    ));
    lines.extend(weaknesses(status));
    lines
}

/// By which way captured packets come.
fn capture(capture: &Value) -> String {
    match capture["why_not_ring"].as_str() {
        Some(why) => format!("  captures by a queue: {why}"),
        None => format!(
            "  captures datagrams by a ring in the kernel, all else by a queue; {} left as they were since the ring was full",
            count(capture, "passed_by")
        ),
    }
}

/// With which hosts there are sessions, if they have certificates.
fn security(security: &Value) -> Vec<String> {
    if security["kind"] != "certificates" {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "  is {} by its certificate, until {}",
        text(&security["name"]),
        text(&security["ends"])
    )];
    lines.extend(list(&security["hosts"]).iter().map(|it| {
        let state = match (it["connected"] == true, it["has_key"] == true) {
            (true, _) => "in session",
            (false, true) => "no session, the key goes on",
            (false, false) => "no session, no key",
        };
        let problem = it["problem"].as_str();
        let problem = problem.map_or(String::new(), |why| format!(": {why}"));
        format!(
            "    with {} at {}: {state}, {} keys so far{problem}",
            text(&it["with"]),
            text(&it["at"]),
            it["keys_agreed"]
        )
    }));
    lines.extend(list(&security["unanswered"]).iter().map(|it| {
        format!(
            "    nobody answered at {}, TCP: {}",
            text(&it["at"]),
            text(&it["why"])
        )
    }));
    lines
}

/// Who is in a group, and where this host has joined it.
fn group(group: &Value) -> String {
    let joined = list(&group["joined"]).iter().map(|it| {
        let sources = list(&it["sources"]).iter().map(text);
        let from = match it["any_source"] == true {
            true => String::new(),
            false => format!(" from {}", sources.collect::<Vec<_>>().join(", ")),
        };
        format!("{}{from}", it["ind"])
    });
    let joined: Vec<_> = joined.collect();
    let on = match joined.is_empty() {
        true => "joined on no network".to_owned(),
        false => format!("joined on network {}", joined.join(" and ")),
    };
    format!(
        "  group {}: {} sockets of programs are members; {on}",
        text(&group["address"]),
        group["members"]
    )
}

/// What this host sends.
pub fn sending(status: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for it in list(&status["sending"]) {
        let state = match it["suspended"] == true {
            true => "suspended, packets leave as they are",
            false => text(&it["mode"]),
        };
        lines.push(format!("  sends {}: {state}", text(&it["flow"])));
        lines.extend(list(&it["networks"]).iter().map(path));
    }
    lines
}

fn path(path: &Value) -> String {
    let trip = path["round_trip_us"].as_f64();
    let trip = trip.map_or(String::new(), |us| format!(", round trip {us:.0} us"));
    let unanswered = path["unanswered_ms"].as_u64();
    let unanswered = unanswered.map_or(String::new(), |ms| {
        format!(", answers nothing for {} s", ms / 1000)
    });
    let note = |holds: bool, words: &'static str| if holds { words } else { "" };
    format!(
        "    network {} to {}: {} copies, {} of them again{trip}{unanswered}{}{}{}",
        path["ind"],
        text(&path["to"]),
        count(path, "sent"),
        count(path, "again"),
        note(path["carries"] == true, ", carries"),
        note(path["silent"] == true, ", silent"),
        note(path["usable"] != true, ", not on this host"),
    )
}

/// What this host receives.
pub fn receiving(status: &Value) -> Vec<String> {
    let mut lines = sessions_received(status);
    lines.extend(numbers("discarded", status, "discarded", false));
    lines.extend(weaknesses(status));
    lines
}

fn sessions_received(status: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for it in list(&status["receiving"]) {
        let state = match it["replicated"] == true {
            true => "replicated",
            false => "not replicated: the sender has not answered",
        };
        lines.push(format!(
            "  receives {} from {}: {state}, last {} ms ago",
            text(&it["flow"]),
            text(&it["source"]),
            it["last_ms"]
        ));
        for came in list(&it["networks"]) {
            lines.push(format!(
                "    network {}: {} first, {} duplicate, {} very late, {} on another network",
                came["ind"],
                count(came, "first"),
                count(came, "duplicate"),
                count(came, "very_late"),
                count(came, "wrong_network")
            ));
        }
    }
    lines
}

fn numbers(title: &str, status: &Value, name: &str, all: bool) -> Vec<String> {
    let numbers = status[name].as_object().into_iter().flatten();
    let rates = &status[format!("{name}_per_s")];
    let shown: Vec<_> = numbers
        .filter(|(_, value)| all || **value != 0)
        .map(|(name, value)| format!("{name} {value}{}", rate(&rates[name])))
        .collect();
    let line = |part: &[String]| format!("  {title}: {}", part.join(", "));
    shown.chunks(6).map(line).collect()
}

fn weaknesses(status: &Value) -> Vec<String> {
    let all = list(&status["weaknesses"]).iter();
    all.map(|it| format!("  weakness: {}", text(it))).collect()
}

/// A counter, and how fast it grows, if that is known.
fn count(of: &Value, name: &str) -> String {
    format!("{}{}", of[name], rate(&of["per_s"][name]))
}

fn rate(per_s: &Value) -> String {
    match per_s.as_f64() {
        Some(rate) if rate >= 10.0 => format!(" ({rate:.0}/s)"),
        Some(rate) if rate > 0.0 => format!(" ({rate:.1}/s)"),
        Some(_) => " (0/s)".to_owned(),
        None => String::new(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}
