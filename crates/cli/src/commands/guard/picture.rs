//! A guard's status in words, and rates between two of them.

use serde_json::{Value, json};

/// Adds `per_s` to each flow that was there before: by how much its counts have grown in a second. Of a daemon that has been started
/// again nothing is said.
pub fn add_rates(now: &mut Value, before: &Value) {
    let uptime = |status: &Value| status["uptime_s"].as_f64().unwrap_or_default();
    let seconds = uptime(now) - uptime(before);
    if now["pid"] != before["pid"] || seconds <= 0.0 {
        return;
    }
    let named = |all: &Value, name: &Value| {
        let mut all = all.as_array().into_iter().flatten();
        all.find(|it| it["name"] == *name).cloned()
    };
    for interface in now["interfaces"].as_array_mut().into_iter().flatten() {
        let Some(earlier) = named(&before["interfaces"], &interface["name"]) else {
            continue;
        };
        for flow in interface["flows"].as_array_mut().into_iter().flatten() {
            let Some(earlier) = named(&earlier["flows"], &flow["name"]) else {
                continue;
            };
            let grown = |now: &Value, before: &Value| {
                let grown = now
                    .as_u64()
                    .unwrap_or(0)
                    .saturating_sub(before.as_u64().unwrap_or(0));
                (grown as f64 / seconds).round()
            };
            let of_cause = |cause: &str| grown(&flow["dropped"][cause], &earlier["dropped"][cause]);
            flow["per_s"] = json!({
                "passed": grown(&flow["passed"], &earlier["passed"]),
                "dropped": {"capacity": of_cause("capacity"), "closed": of_cause("closed")},
            });
        }
    }
}

/// All of it, a line each.
pub fn lines(status: &Value) -> Vec<String> {
    let uptime = status["uptime_s"].as_f64().unwrap_or_default();
    let load = status["budgets_percent_of_processor"]
        .as_f64()
        .unwrap_or_default();
    let mut lines = vec![format!(
        "guards for {uptime:.0} s; all budgets together take {load:.1} % of a processor at most"
    )];
    for interface in status["interfaces"].as_array().into_iter().flatten() {
        let mode = interface["mode"].as_str().unwrap_or("not guarded");
        let name = interface["name"].as_str().unwrap_or_default();
        lines.push(format!("{name}: {mode}"));
        let with_rates = interface["flows"][0]["per_s"].is_object();
        lines.push(heading(with_rates));
        let flows = interface["flows"].as_array().into_iter().flatten();
        lines.extend(flows.map(|flow| row(flow, with_rates)));
    }
    lines.push(registration(&status["registration"]));
    let weaknesses = status["weaknesses"].as_array().into_iter().flatten();
    let weaknesses = weaknesses.filter_map(Value::as_str);
    lines.extend(weaknesses.map(|weakness| format!("weakness: {weakness}")));
    lines
}

/// Who may register sockets, how much is left, and what was refused.
fn registration(told: &Value) -> String {
    if told["allowed"] != true {
        return "programs may not register sockets of theirs".to_owned();
    }
    let refused: Vec<_> = told["refused"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, count)| **count != 0)
        .map(|(cause, count)| format!("{cause} {count}"))
        .collect();
    format!(
        "registered by programs: {} of {} sockets, {:.1} of {} % of a processor; group {} may, at {}; refused: {}",
        told["flows"],
        told["flows_max"],
        told["percent_of_processor"].as_f64().unwrap_or_default(),
        told["percent_of_processor_max"],
        told["group"].as_str().unwrap_or_default(),
        told["socket"].as_str().unwrap_or_default(),
        if refused.is_empty() {
            "none".to_owned()
        } else {
            refused.join(", ")
        }
    )
}

fn heading(with_rates: bool) -> String {
    let rates = if with_rates {
        "   passed/s  dropped/s"
    } else {
        ""
    };
    format!(
        "  {:<32} {:>16} {:>12} {:>14} {:>12} {:>12}{rates}",
        "flow", "budget", "passed", "beyond budget", "closed", "socket full"
    )
}

fn row(flow: &Value, with_rates: bool) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let budget = match (flow["capacity"].as_u64(), flow["period_ms"].as_f64()) {
        (Some(capacity), Some(period)) => format!("{capacity} in {period} ms"),
        _ => "closed".to_owned(),
    };
    // Of what passed; where no socket is open, it is lost otherwise.
    let lost = flow["socket"]["lost"].as_u64();
    let lost = lost.map_or("-".to_owned(), |lost| lost.to_string());
    let rates = match with_rates {
        true => {
            let per_s = &flow["per_s"];
            let dropped =
                number(&per_s["dropped"]["capacity"]) + number(&per_s["dropped"]["closed"]);
            format!(" {:>10.0} {dropped:>10.0}", number(&per_s["passed"]))
        }
        false => String::new(),
    };
    format!(
        "  {:<32} {budget:>16} {:>12} {:>14} {:>12} {lost:>12}{rates}",
        flow["name"].as_str().unwrap_or_default(),
        number(&flow["passed"]),
        number(&flow["dropped"]["capacity"]),
        number(&flow["dropped"]["closed"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(pid: u32, uptime: f64, passed: u64, beyond: u64) -> Value {
        json!({"pid": pid, "uptime_s": uptime, "budgets_percent_of_processor": 3.0, "weaknesses": ["none to speak of"],
            "registration": {"allowed": true, "flows": 1, "flows_max": 32, "percent_of_processor": 0.4, "percent_of_processor_max": 10.0,
                "group": "control", "socket": "/run/g.sock", "refused": {"taken": 0, "budget": 3}},
            "interfaces": [{"name": "a", "mode": "native", "flows": [
                {"name": "x", "capacity": 10, "period_ms": 100.0, "passed": passed, "dropped": {"capacity": beyond, "closed": 0},
                    "socket": {"waiting_bytes": 768, "lost": 4321}},
                {"name": "y", "capacity": 0, "period_ms": null, "passed": 0, "dropped": {"capacity": 0, "closed": 7}}]}]})
    }

    #[test]
    fn rates_are_by_how_much_counts_have_grown() {
        let mut now = status(1, 12.0, 300, 1000);
        add_rates(&mut now, &status(1, 10.0, 100, 0));
        let flow = &now["interfaces"][0]["flows"][0];
        assert_eq!(
            flow["per_s"],
            json!({"passed": 100.0, "dropped": {"capacity": 500.0, "closed": 0.0}})
        );
        let shown = lines(&now).join("\n");
        for part in [
            "a: native",
            "10 in 100 ms",
            "closed",
            "500",
            "4321",
            "weakness: none to speak of",
            "1 of 32 sockets",
            "group control may, at /run/g.sock; refused: budget 3",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        let mut other = status(2, 12.0, 300, 0);
        add_rates(&mut other, &status(1, 10.0, 100, 0));
        assert!(other["interfaces"][0]["flows"][0]["per_s"].is_null());
    }
}
