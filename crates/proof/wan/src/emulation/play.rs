//! Outages by script, on a network that is up (`spec/wan.md`, U-40).

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::outage::{cut, heal};
use super::place::Running;
use crate::script::{Script, Step};
use crate::topology::Topology;

/// Between two looks at whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// How a script went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// It came to its end.
    pub complete: bool,
    /// When each of its steps was done, from the beginning on, in their order.
    pub done: Vec<Duration>,
}

/// Cuts and heals links as `script` says, from this moment on, until its end or until `stop`. When it returns, whatever
/// it has cut is whole again; after a kill it is not. `told` hears of each step when that is done.
///
/// # Errors
/// The kernel refuses, or the network has ended.
pub fn play(
    (running, topology): (&Running, &Topology),
    script: &Script,
    stop: &dyn Fn() -> bool,
    mut told: impl FnMut(&Step),
) -> io::Result<Played> {
    let began = Instant::now();
    let mut cut_here: Vec<usize> = Vec::new();
    let mut done = Vec::new();
    let mut result = Ok(());
    for step in script.steps() {
        if !wait(began + step.at, stop) {
            break;
        }
        // Noted first: what is cut in part is healed, too.
        cut_here.extend(&step.cut);
        result =
            cut(running, topology, &step.cut).and_then(|()| heal(running, topology, &step.heal));
        if result.is_err() {
            break;
        }
        cut_here.retain(|link| !step.heal.contains(link));
        done.push(began.elapsed());
        told(step);
    }
    let healed = heal(running, topology, &cut_here);
    result.and(healed)?;
    Ok(Played {
        complete: done.len() == script.steps().len(),
        done,
    })
}

/// Waits until then; `false`: it was stopped.
fn wait(until: Instant, stop: &dyn Fn() -> bool) -> bool {
    while !stop() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LOOK));
    }
    false
}
