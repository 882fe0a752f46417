//! The load that grows: each try of each step, and how far a peer gets.

use super::table::Table;
use super::units::millis;
use crate::result::Run;
use crate::run::cyclic::Applications;

/// What of misses is the machine's.
pub const MACHINES: &str = "machine's: missed because the machine stood still between release and acknowledgement, \
                        for at least as long as the state was late; foreign programs do not tell when they miss";

/// The ramp of one peer.
pub struct Ramp<'a> {
    /// Its steps, each with all of its tries.
    steps: Vec<Vec<&'a Applications>>,
}

fn is_clean(result: &Applications) -> bool {
    result.own_misses() == 0 && result.error.is_none()
}

fn percent(step: &[&Applications]) -> f64 {
    step.first()
        .map_or(0.0, |result| result.utilisation * 100.0)
}

impl<'a> Ramp<'a> {
    /// The steps of `peer`.
    pub fn of(run: &'a Run, peer: &str, connection: &str) -> Self {
        let mut steps: Vec<Vec<&Applications>> = Vec::new();
        let own = |result: &&Applications| result.peer == peer && result.connection == connection;
        for result in run.of_case("ramp").filter(own) {
            match steps.last_mut() {
                Some(tries) if tries[0].utilisation == result.utilisation => tries.push(result),
                _ => steps.push(vec![result]),
            }
        }
        Self { steps }
    }

    /// Whether nothing was measured.
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The highest utilisation up to which no try of any step missed a deadline, percent: the worst of the tries
    /// counts.
    pub fn without_miss(&self) -> f64 {
        let clean = |step: &&Vec<&Applications>| step.iter().all(|result| is_clean(result));
        let clean = self.steps.iter().take_while(clean);
        clean.last().map_or(0.0, |step| percent(step))
    }

    /// The same with the steps that were tried more than once.
    pub fn told(&self) -> String {
        let mut told = format!("{:.1}", self.without_miss());
        let mut again = self.steps.iter().filter(|step| step.len() > 1).peekable();
        if again.peek().is_none() {
            told.push_str("; one try of each step");
        }
        for step in again {
            let missed = step.iter().filter(|result| !is_clean(result)).count();
            let (percent, tries) = (percent(step), step.len());
            told.push_str(&format!(
                "; at {percent:.1} {missed} of {tries} tries missed"
            ));
        }
        told
    }
}

/// Every try.
pub fn table(run: &Run) -> Table {
    let mut table = Table::new(
        "Growing load: table 20 with larger states, missed deadlines by payload utilisation",
        &[
            "peer",
            "connection",
            "utilisation",
            "try",
            "sent",
            "missed",
            "machine's",
            "longest stall (ms)",
        ],
    );
    table.note = format!("paper: none missed at 74.3 %, the most that it tried; {MACHINES}");
    let mut ramps: Vec<(&str, &str)> = Vec::new();
    for result in run.of_case("ramp") {
        let ramp = (result.peer.as_str(), result.connection.as_str());
        if !ramps.contains(&ramp) {
            ramps.push(ramp);
        }
    }
    for (peer, connection) in ramps {
        for step in Ramp::of(run, peer, connection).steps {
            for (at, result) in step.iter().enumerate() {
                table.row(row(result, format!("{} of {}", at + 1, step.len())));
            }
        }
    }
    table
}

fn row(result: &Applications, attempt: String) -> [String; 8] {
    let missed = result.missed.to_string();
    [
        result.peer.clone(),
        result.connection.clone(),
        format!("{:.1} %", result.utilisation * 100.0),
        attempt,
        result.sent.to_string(),
        result.error.clone().unwrap_or(missed),
        result.missed_standing_still.to_string(),
        millis(result.jitter.longest_ns),
    ]
}
