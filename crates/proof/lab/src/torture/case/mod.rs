//! The cases: what is done to the pair, and what must come of it. One file for each kind.

mod black_hole;
mod configuration;
mod crash;
mod delay;
mod device;
mod flip;
mod one_way;
mod outage;

use super::TortureError;
use super::configuration::Wrong;
use super::judge::Fault;
use super::result::{CaseResult, Said, Trial};
use super::stage::{Finding, Stage};
use super::watch::Heard;
use crash::Crash;
use flip::Target;
use one_way::Way;

/// Lengths of the outages of every path, in microseconds, and which of them the short run has.
const OUTAGES_US: [(u64, bool); 9] = [
    (8_000, false),
    (8_500, true),
    (10_000, true),
    (15_000, false),
    (20_000, false),
    (30_000, true),
    (40_000, false),
    (60_000, true),
    (100_000, false),
];
/// Most answers of the nodes that a trial keeps.
const SAID_MAX: usize = 14;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Nothing: what the machine itself does to the figures.
    Quiet,
    /// Every path silent for so many microseconds.
    Outage(u64),
    /// The primary does not run for a while.
    Stall,
    /// Both networks come and go.
    Flapping,
    /// Most frames are lost.
    Loss,
    /// The backup comes back with a wrong file.
    Wrong(Wrong),
    /// Some ways are cut.
    Cut(Way),
    /// A bit is inverted.
    Flip(Target),
    /// Full packets no longer pass.
    BlackHole,
    /// The field device dies.
    Device,
    /// Every answer comes late.
    Delay,
    /// A computer or its role goes.
    Crash(Crash),
}

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name.
    pub id: String,
    kind: Kind,
    /// Whether the short run has it.
    pub is_quick: bool,
}

/// One repetition's promises kept or not, as [`Kind`]'s files give it.
type Done = Result<(Finding, Fault), TortureError>;

impl Case {
    fn new(id: impl Into<String>, kind: Kind, is_quick: bool) -> Self {
        Self {
            id: id.into(),
            kind,
            is_quick,
        }
    }

    /// Whether `name` means this case: its name, or the beginning of it up to a hyphen.
    pub fn is_called(&self, name: &str) -> bool {
        let rest = self.id.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// Every case, in the order of the table.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::new("quiet", Kind::Quiet, false)];
        all.extend(OUTAGES_US.map(|(us, is_quick)| {
            let id = format!("outage-{}ms", us as f64 / 1e3);
            Self::new(id, Kind::Outage(us), is_quick)
        }));
        all.push(Self::new("stall", Kind::Stall, true));
        all.push(Self::new("flapping", Kind::Flapping, true));
        all.push(Self::new("loss-80", Kind::Loss, true));
        all.extend(Wrong::ALL.map(|wrong| {
            let id = format!("wrong-{}", wrong.name());
            Self::new(id, Kind::Wrong(wrong), wrong == Wrong::Period)
        }));
        all.extend(Way::ALL.map(|way| Self::new(way.name(), Kind::Cut(way), way == Way::Deaf)));
        all.extend(Target::ALL.map(|target| {
            let id = format!("flip-{}", target.name());
            Self::new(id, Kind::Flip(target), target != Target::Witness)
        }));
        all.push(Self::new("black-hole", Kind::BlackHole, true));
        all.push(Self::new("device-dead", Kind::Device, true));
        all.push(Self::new("delay-12ms", Kind::Delay, true));
        all.extend(Crash::ALL.map(|crash| Self::new(crash.name(), Kind::Crash(crash), true)));
        all
    }

    /// What is done, for people.
    pub fn title(&self) -> String {
        match self.kind {
            Kind::Quiet => "nothing for a second".into(),
            Kind::Outage(us) => format!("every path silent for {} ms", us as f64 / 1e3),
            Kind::Stall => "the primary stands still for 9 to 29 ms".into(),
            Kind::Flapping => "both networks 15 ms down, 15 ms up".into(),
            Kind::Loss => "80 % of everything lost".into(),
            Kind::Wrong(wrong) => format!("the backup comes back with {}", wrong.title()),
            Kind::Cut(way) => way.title().into(),
            Kind::Flip(target) => target.title().into(),
            Kind::BlackHole => "full packets do not pass A, then B is cut, too".into(),
            Kind::Device => "the field device dies and comes back".into(),
            Kind::Delay => "12 ms more on both networks, each way".into(),
            Kind::Crash(crash) => crash.title().into(),
        }
    }

    /// What is promised, for people, beside what all cases promise.
    pub fn promised(&self) -> &'static str {
        match self.kind {
            Kind::Quiet => "outputs within two periods",
            Kind::Outage(_) | Kind::Stall => "outputs again within the outage and two periods",
            Kind::Flapping | Kind::Loss => {
                "outputs in half of the cycles in which a path was up for 5 ms"
            }
            Kind::Wrong(_) => {
                "the primary notices nothing; the newcomer writes nothing and says why"
            }
            Kind::Cut(way) => way.promised(),
            Kind::Flip(_) => "the value is discarded, or outlived in a second",
            Kind::BlackHole => "degraded within a second, with the cause; states go on over B",
            Kind::Device => "the device is named as the cause; outputs again when it answers",
            Kind::Delay => "says that answers come too late, and which setting that exceeds",
            Kind::Crash(crash) => crash.promised(),
        }
    }

    /// Whether a state that fills packets is needed beside the tank's.
    pub fn needs_full_packets(&self) -> bool {
        self.kind == Kind::BlackHole
    }

    /// Whether the pair's messages are open.
    pub fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Flip(target) if target.is_open())
    }

    /// About how long one repetition takes, in milliseconds, if all goes well.
    pub fn planned_ms(&self, quick: bool) -> u64 {
        const AROUND: u64 = 1_100;
        AROUND
            + match self.kind {
                Kind::Quiet => 1_000,
                Kind::Outage(us) => us / 1_000,
                Kind::Stall => 30,
                Kind::Flapping | Kind::Loss => outage::long_ns(quick) / 1_000_000,
                Kind::Wrong(_) => 5_000,
                Kind::Cut(_) => one_way::LENGTH_MS,
                Kind::Flip(_) => 1_000,
                Kind::BlackHole => black_hole::LENGTH_MS,
                Kind::Device => 1_500,
                Kind::Delay => delay::length_ms(quick),
                Kind::Crash(_) => 3_000,
            }
    }

    /// Does it once; `number` counts from 1, of `count`.
    ///
    /// # Errors
    /// Whatever keeps it from being judged.
    pub fn run(
        &self,
        stage: &mut Stage<'_>,
        (number, count): (u32, u32),
        into: &mut CaseResult,
    ) -> Result<(), TortureError> {
        let (finding, fault) = match self.kind {
            Kind::Quiet => outage::quiet(stage),
            Kind::Outage(us) => outage::silence(stage, us * 1_000),
            Kind::Stall => outage::stall(stage, number, count),
            Kind::Flapping => outage::flapping(stage),
            Kind::Loss => outage::loss(stage),
            Kind::Wrong(wrong) => configuration::run(stage, wrong),
            Kind::Cut(way) => one_way::run(stage, way),
            Kind::Flip(target) => flip::run(stage, target, number),
            Kind::BlackHole => black_hole::run(stage),
            Kind::Device => device::run(stage),
            Kind::Delay => delay::run(stage),
            Kind::Crash(crash) => crash::run(stage, crash),
        }?;
        let (mut trial, heard) = finding.into_trial(&fault);
        trial.number = number;
        keep_words(&mut trial, heard, fault.from_ns, &mut into.said);
        into.trials.push(trial);
        Ok(())
    }
}

/// The names of all cases.
pub fn names() -> Vec<String> {
    Case::all().into_iter().map(|case| case.id).collect()
}

/// Puts what the nodes said into the trial, each different answer once into the case's list.
fn keep_words(trial: &mut Trial, heard: Vec<Heard>, origin_ns: u64, list: &mut Vec<Said>) {
    trial.said_more = heard.len().saturating_sub(SAID_MAX) as u64;
    for Heard { at_ns, said } in heard.into_iter().take(SAID_MAX) {
        let position = list.iter().position(|one| *one == said).unwrap_or_else(|| {
            list.push(said);
            list.len() - 1
        });
        let ms = (at_ns as f64 - origin_ns as f64) / 1e6;
        trial.said.push(((ms * 10.0).round() / 10.0, position));
    }
}

/// Everything that nodes said between two moments, and when: in status, and in their logs.
fn words(finding: &Finding, from_ns: u64, to_ns: u64) -> Vec<(u64, String)> {
    let within = |at: u64| (from_ns..to_ns).contains(&at);
    let heard = finding.heard.iter().filter(|heard| within(heard.at_ns));
    let statuses = heard.flat_map(|heard| {
        let said = &heard.said;
        let texts = std::iter::once(&said.cause).chain(&said.weaknesses);
        texts.map(|text| (heard.at_ns, text.clone()))
    });
    let events = finding.evidence.events.iter();
    let events = events.filter(|event| within(event.time_ns));
    let events = events.map(|event| {
        let text = format!("{} {}", event.text("event"), event.text("cause"));
        (event.time_ns, text)
    });
    statuses
        .chain(events)
        .filter(|(_, text)| !text.is_empty())
        .collect()
}
