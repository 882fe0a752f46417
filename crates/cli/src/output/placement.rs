//! Where this computer works off the packets of its interfaces, and what is to be said against it, as `check` and `guard check` tell it.

use bumpless_config::Config;
use bumpless_node::reception::placement::{Seen, seen};
use bumpless_placement::{Advice, Found, Place, Thread};
use serde_json::{Value, json};

/// Of each interface of this computer with an address of a node's, as JSON (V-99).
pub fn of_nodes(config: &Config) -> Value {
    let one = |it: &Seen<'_>| {
        let mut told = json(&it.found, &it.advice);
        told["node"] = it.node.into();
        told
    };
    seen(config).iter().map(one).collect()
}

/// The same in lines; none where the computer has no address of a node's.
pub fn lines(config: &Config) -> Vec<String> {
    let all = seen(config);
    all.iter()
        .flat_map(|it| of_one(&it.found, &it.advice))
        .collect()
}

/// An interface, as JSON.
pub fn json(found: &Found, advice: &[Advice]) -> Value {
    let place = found.place.as_ref();
    let interrupt = |it: &bumpless_placement::Interrupt| json!({"number": it.number, "cpus": it.processors.to_string()});
    let thread = |it: &Thread| json!({"pid": it.number, "priority": it.priority, "cpus": it.processors.to_string()});
    let interrupts = place.map(|it| it.interrupts.iter().map(interrupt).collect::<Vec<_>>());
    let threads = place.and_then(|it| it.threads.as_ref());
    let advice = advice.iter();
    json!({
        "interface": found.name,
        "ring": found.ring.map(|it| it.packets),
        "ring_max": found.ring.map(|it| it.most),
        "interrupts": interrupts,
        "rps_cpus": place.map(|it| it.rps.to_string()),
        "napi_threads": threads.map(|all| all.iter().map(thread).collect::<Vec<_>>()),
        "advice": advice.map(|it| json!({"about": it.topic.name(), "words": it.words})).collect::<Vec<_>>(),
    })
}

/// An interface, in lines.
pub fn of_one(found: &Found, advice: &[Advice]) -> Vec<String> {
    let name = &found.name;
    let mut parts = Vec::new();
    parts.extend(
        found
            .ring
            .map(|it| format!("a ring of {} packets, {} at most", it.packets, it.most)),
    );
    parts.extend(found.place.as_ref().map(placed));
    let mut lines = Vec::new();
    if !parts.is_empty() {
        lines.push(format!(
            "Interface {name} of this computer: {}",
            parts.join("; ")
        ));
    }
    lines.extend(
        advice
            .iter()
            .map(|it| format!("advice: interface {name} {}", it.words)),
    );
    lines
}

fn placed(place: &Place) -> String {
    let interrupts: Vec<_> = place
        .interrupts
        .iter()
        .map(|it| format!("{} at {}", it.number, it.processors))
        .collect();
    let interrupts = match interrupts.is_empty() {
        true => "no interrupts of its own".to_owned(),
        false => format!("interrupts {}", interrupts.join(", ")),
    };
    let rps = match place.rps.is_empty() {
        true => "packets are handed on to no other processor".to_owned(),
        false => format!("packets are handed on to processors {}", place.rps),
    };
    let threads = match &place.threads {
        None => "no threads of its own".to_owned(),
        Some(all) => {
            let all: Vec<_> = all
                .iter()
                .map(|it| {
                    format!(
                        "{} with priority {} at {}",
                        it.number, it.priority, it.processors
                    )
                })
                .collect();
            format!("threads {}", all.join(", "))
        }
    };
    format!("{interrupts}; {rps}; {threads}")
}
