//! The primary dies, hands over on order, or loses its power together with the backup.

use super::Done;
use super::one_way::FAILOVER_NS;
use crate::torture::judge::{Fault, Limits};
use crate::torture::pair::NodeEvent;
use crate::torture::result::Want;
use crate::torture::stage::{MS, Scene, Stage};
use crate::torture::{TortureError, now_ns};
use bumpless_node::control::{self, Request};

/// How long the primary is dead before it is started again.
const DEAD_MS: u64 = 1_000;
/// For how long a switchover is ordered that is refused, and how often.
const ORDER_MS: u64 = 1_000;
const ORDER_AGAIN_MS: u64 = 60;
/// How long both are without power.
const POWERLESS_MS: u64 = 500;
/// Longest gap of an ordered switchover (spec/demo.md, D-14).
const SWITCHOVER_NS: u64 = 30 * MS;
/// Within this a node that was started again is a synchronised backup, and a pair writes again that knows
/// nothing any more.
const RETURN_NS: u64 = 3_000 * MS;

/// What goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The primary's process.
    Kill,
    /// Its role, on order.
    Switchover,
    /// Both nodes.
    PowerCut,
}

impl Crash {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Kill, Self::Switchover, Self::PowerCut];

    /// The case's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Switchover => "switchover",
            Self::PowerCut => "power-cut",
        }
    }

    /// What people read.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Kill => "the primary is killed and started again",
            Self::Switchover => "the roles change on order",
            Self::PowerCut => "both nodes are killed and started again",
        }
    }

    /// What is promised.
    pub const fn promised(self) -> &'static str {
        match self {
            Self::Kill => "outputs again within 40 ms, from the newest state",
            Self::Switchover => "outputs again within 30 ms, from the newest state",
            Self::PowerCut => "one cold start within 3 s of the power's return; epochs go on",
        }
    }
}

/// Does it.
pub fn run(stage: &mut Stage<'_>, crash: Crash) -> Done {
    let scene = stage.open()?;
    match crash {
        Crash::Kill => kill(stage, scene),
        Crash::Switchover => switch_over(stage, scene),
        Crash::PowerCut => power_cut(stage, scene),
    }
}

fn returning(gap_ns: u64) -> Limits {
    Limits {
        heal_ns: RETURN_NS,
        ..Limits::gap(gap_ns)
    }
}

fn kill(stage: &mut Stage<'_>, scene: Scene) -> Done {
    let primary = scene.primary;
    let from_ns = stage.pair.kill_node(primary);
    stage.waiter.ms(DEAD_MS)?;
    let config = stage.pair.config();
    stage.pair.start_node(primary, &config)?;
    let fault = Fault {
        from_ns,
        to_ns: now_ns(),
    };
    let finding = stage.close(scene, fault, &returning(FAILOVER_NS))?;
    Ok((finding, fault))
}

fn switch_over(stage: &mut Stage<'_>, scene: Scene) -> Done {
    let (from_ns, refused) = order(stage, scene.primary)?;
    let fault = Fault {
        from_ns,
        to_ns: now_ns(),
    };
    let mut finding = stage.close(scene, fault, &Limits::gap(SWITCHOVER_NS))?;
    let changed = handed_over(&finding.evidence.events, from_ns);
    finding.trial.wants.push(Want::strict(
        "switched-over",
        "the order is taken and the roles change",
        changed,
        match refused {
            Some(error) => format!("refused for {ORDER_MS} ms, last: {error}"),
            None => format!("taken; roles changed: {changed}"),
        },
    ));
    Ok((finding, fault))
}

/// Orders the switchover of whichever node is primary, and again while it is refused because the backup is not ready at
/// that moment, as an operator would: the computers may have stood still. Returns which node was ordered, when,
/// and what the last refusal said if it was never taken.
fn order(stage: &mut Stage<'_>, mut primary: usize) -> Result<(u64, Option<String>), TortureError> {
    let until_ns = now_ns() + ORDER_MS * MS;
    loop {
        let order = Request::Switchover {
            group: None,
            to: None,
        };
        let from_ns = now_ns();
        let reply = control::request(&stage.pair.control(primary), &order)
            .map_err(|error| TortureError::system("an ordered switchover", error))?;
        let Some(error) = reply["error"].as_str() else {
            return Ok((from_ns, None));
        };
        if now_ns() >= until_ns {
            return Ok((from_ns, Some(error.to_owned())));
        }
        stage.waiter.ms(ORDER_AGAIN_MS)?;
        primary = stage.pair.redundant(from_ns).unwrap_or(primary);
    }
}

/// Whether a node has become primary at or after `from_ns` because the other one handed over. Who is primary at the end does
/// not tell it: on a machine that stalls, the backup may have taken over once more meanwhile. Nor does who was primary when
/// the trial began: either node takes the order.
fn handed_over(events: &[NodeEvent], from_ns: u64) -> bool {
    events.iter().any(|it| {
        (it.text("event"), it.text("to")) == ("role", "primary")
            && it.text("cause") == "the partner handed over"
            && it.time_ns >= from_ns
    })
}

fn power_cut(stage: &mut Stage<'_>, scene: Scene) -> Done {
    let from_ns = stage.pair.kill_node(scene.primary);
    stage.pair.kill_node(1 - scene.primary);
    stage.waiter.ms(POWERLESS_MS)?;
    let config = stage.pair.config();
    (0..2).try_for_each(|node| stage.pair.start_node(node, &config))?;
    let fault = Fault {
        from_ns,
        to_ns: now_ns(),
    };
    let limits = Limits {
        memory_lost: true,
        ..returning(fault.length_ns() + RETURN_NS)
    };
    let finding = stage.close(scene, fault, &limits)?;
    Ok((finding, fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn role(node: usize, time_ns: u64, to: &str, cause: &str) -> NodeEvent {
        NodeEvent {
            node,
            time_ns,
            line: json!({"event": "role", "to": to, "cause": cause}),
        }
    }

    #[test]
    fn an_order_is_carried_out_by_a_hand_over_after_it_and_by_nothing_else() {
        let word = "the partner handed over";
        assert!(handed_over(&[role(1, 5, "primary", word)], 5));
        // Nor does it undo what was carried out that the roles changed once more, without an order.
        let back = role(0, 9, "primary", "the partner is silent");
        assert!(handed_over(&[role(1, 5, "primary", word), back], 5));
        for not in [
            role(1, 4, "primary", word),
            role(1, 6, "backup", word),
            role(1, 6, "primary", "the partner is silent"),
        ] {
            assert!(!handed_over(&[not], 5));
        }
    }
}
