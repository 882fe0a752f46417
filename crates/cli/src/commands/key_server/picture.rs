//! The status of a key server for people.

use serde_json::Value;

/// What is said of an address of `listen` that the computer does not have.
pub fn absent(address: &str) -> String {
    format!("{address} is no address of this computer: nobody reaches the server there until it is")
}

/// The lines of `status`.
pub fn lines(status: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let mut lines = vec![format!(
        "{} of site {}: {} connections, {} that have not shown who they are, {} refused",
        text(&status["name"]),
        text(&status["site"]),
        status["connections"],
        status["unknown_connections"],
        status["refused"],
    )];
    if let Some(last) = status["refused_last"].as_str() {
        lines.push(format!("refused last: {last}"));
    }
    if let Some(problem) = status["problem"].as_str() {
        lines.push(format!("problem: {problem}"));
    }
    let cares = status["cares"].as_array().into_iter().flatten();
    lines.extend(cares.map(|care| format!("needs care: {}", text(care))));
    let absent = status["absent_addresses"].as_array();
    let absent = absent.into_iter().flatten();
    lines.extend(absent.map(|address| self::absent(&text(address))));
    for group in status["groups"].as_array().into_iter().flatten() {
        let name = text(&group["group"]);
        match (group["number"].as_u64(), group["ends_in_s"].as_f64()) {
            (Some(number), Some(left)) => lines.push(format!(
                "group '{name}': seals with key {}, number {number}; {} keys are given, which last for {left:.0} s",
                text(&group["key"]),
                group["keys"],
            )),
            _ => lines.push(format!("group '{name}': has no keys")),
        }
        if group["leads"] != true {
            let from = group["follows"]["server"]
                .as_str()
                .unwrap_or("nobody at present");
            lines.push(format!("  takes them from {from}"));
            for it in group["follows"]["problems"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let (server, problem) = (text(&it["server"]), text(&it["problem"]));
                lines.push(format!("  server {server}: {problem}"));
            }
        }
        for member in group["members"].as_array().into_iter().flatten() {
            let stands = match (member["connected"] == true, member["has_keys"] == true) {
                (true, _) => "is there",
                (false, true) => "is not there, and has keys",
                (false, false) => "has not asked",
            };
            lines.push(format!("  {} {stands}", text(&member["member"])));
        }
    }
    lines
}
