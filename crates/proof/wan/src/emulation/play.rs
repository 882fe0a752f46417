//! Outages and impairments by script, on a network that is up (`spec/wan.md`, U-40).

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::impairment::{impair, impairments};
use super::outage::{cut, heal};
use super::place::Running;
use crate::impairment::Impairment;
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

/// Cuts, heals and impairs links as `script` says, from this moment on, until its end or until `stop`. When it returns, whatever
/// it has cut is whole again, and what it has impaired is as before; after a kill it is not. `told` hears of each step when that
/// is done.
///
/// # Errors
/// The kernel refuses, or the network has ended.
pub fn play(
    (running, topology): (&Running, &Topology),
    script: &Script,
    stop: &dyn Fn() -> bool,
    mut told: impl FnMut(&Step),
) -> io::Result<Played> {
    let before = match script.steps().iter().any(|step| !step.impair.is_empty()) {
        true => impairments(running, topology)?.into_iter().collect(),
        false => BTreeMap::new(),
    };
    let mut player = Player {
        running,
        topology,
        before,
        cut: Vec::new(),
        impaired: Vec::new(),
    };
    let began = Instant::now();
    let mut done = Vec::new();
    let mut result = Ok(());
    for step in script.steps() {
        if !wait(running, began + step.at, stop) {
            break;
        }
        result = player.step(step);
        if result.is_err() {
            break;
        }
        done.push(began.elapsed());
        told(step);
    }
    let ended = player.end();
    result.and(ended)?;
    Ok(Played {
        complete: done.len() == script.steps().len(),
        done,
    })
}

struct Player<'a> {
    running: &'a Running,
    topology: &'a Topology,
    /// How links are impaired that are so without the script.
    before: BTreeMap<usize, Impairment>,
    /// What the script has cut, and what it has impaired.
    cut: Vec<usize>,
    impaired: Vec<usize>,
}

impl Player<'_> {
    fn step(&mut self, step: &Step) -> io::Result<()> {
        // Noted first: what is cut in part is healed, too.
        self.cut.extend(&step.cut);
        self.impaired
            .extend(step.impair.iter().map(|(link, _)| link));
        cut(self.running, self.topology, &step.cut)?;
        // What is healed at the same moment carries nothing unimpaired.
        self.impair(&step.impair)?;
        heal(self.running, self.topology, &step.heal)?;
        self.cut.retain(|link| !step.heal.contains(link));
        let is_back = |link: &usize| step.impair.contains(&(*link, None));
        self.impaired.retain(|link| !is_back(link));
        Ok(())
    }

    /// Impairs links, those that become alike at once.
    fn impair(&self, links: &[(usize, Option<Impairment>)]) -> io::Result<()> {
        let mut alike: Vec<(Impairment, Vec<usize>)> = Vec::new();
        for &(link, wanted) in links {
            let before = self.before.get(&link).copied().unwrap_or_default();
            let wanted = wanted.unwrap_or(before);
            match alike.iter_mut().find(|(it, _)| *it == wanted) {
                Some((_, links)) => links.push(link),
                None => alike.push((wanted, vec![link])),
            }
        }
        alike
            .iter()
            .try_for_each(|(it, links)| impair(self.running, self.topology, links, *it))
    }

    /// Makes everything as it was before.
    fn end(&self) -> io::Result<()> {
        let back: Vec<_> = self.impaired.iter().map(|&link| (link, None)).collect();
        let impaired = self.impair(&back);
        heal(self.running, self.topology, &self.cut).and(impaired)
    }
}

/// Waits until then, or until the network has ended, which the next step finds; `false`: it was stopped.
fn wait(running: &Running, until: Instant, stop: &dyn Fn() -> bool) -> bool {
    while !stop() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || running.has_ended() {
            return true;
        }
        thread::sleep(left.min(LOOK));
    }
    false
}
