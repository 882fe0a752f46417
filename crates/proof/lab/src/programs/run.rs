//! Both passes: everything begins, what dies dies, and what was seen is gathered.

use std::sync::atomic::Ordering;

use bumpless_base::Duration;
use bumpless_net_linux::{Clock, realtime};

use super::ProgramsOptions;
use super::analysis::{self, Dead, View};
use super::outside::{Conversation, Outside};
use super::phasors::Streams;
use super::plan::{Outage, Plan};
use super::protocol::Protocol;
use super::result::{Course, Pass, Row};
use super::seen::Seen;
use super::stage::Stage;
use crate::study::daemons::Daemons;

const LOOK: Duration = Duration::from_millis(50);
/// How long programs have to connect, and for each substation besides.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_EACH: Duration = Duration::from_millis(300);
/// From the last message of an outage that is counted until everything carries again: whoever holds one up for less, a busy daemon or
/// its sender, sends it while the way is still dead.
const HELD_UP: Duration = Duration::from_millis(200);
/// From when all are connected until it begins.
const SETTLE: Duration = Duration::from_secs(3);

/// The real-time priority of programs that are not ours: the lowest.
const PROGRAMS: u8 = 1;
/// That of the network, of daemons and of what measures: in a grid, programs take no processor from them.
pub const NETWORK: u8 = 2;

/// Gives the calling thread a real-time priority, and what it starts from here on, where that is granted.
pub fn urgent(priority: u8) {
    let _ = realtime::set_fifo(priority);
}

/// What a pass came to.
#[derive(Debug, Default)]
pub struct Passed {
    /// What each centre saw.
    pub rows: Vec<Row>,
    /// The same over time.
    pub courses: Vec<Course>,
    /// Whether it went to its end.
    pub complete: bool,
}

/// Processes of a pass; when one ends, so does the pass.
#[derive(Debug, Default)]
struct Processes {
    conversations: Vec<Conversation>,
    // They end last.
    daemons: Option<Daemons>,
}

impl Processes {
    fn stood(&mut self) -> Result<(), String> {
        self.daemons.as_ref().map_or(Ok(()), Daemons::stood)?;
        let mut all = self.conversations.iter_mut();
        all.try_for_each(Conversation::check)
    }
}

/// Everything that a pass has.
#[derive(Debug)]
pub struct Scene<'a> {
    /// What was asked for.
    pub options: &'a ProgramsOptions,
    /// Who takes part, and what dies.
    pub plan: &'a Plan,
    /// The network.
    pub stage: &'a Stage,
    /// Programs that are not ours.
    pub outside: &'a Outside,
    /// What is spoken: that for which there are programs.
    pub protocols: &'a [Protocol],
}

impl Scene<'_> {
    /// Makes a pass; `told` hears what happens, for people.
    ///
    /// # Errors
    /// What did not start, or ended.
    pub fn pass(&self, pass: Pass, told: &(dyn Fn(&str) + Sync)) -> Result<Passed, String> {
        if self.stopped() {
            return Ok(Passed::default());
        }
        urgent(NETWORK);
        let mut processes = Processes::default();
        if pass == Pass::Protected {
            let (binary, stop) = (&self.options.binary, &self.options.stop);
            processes.daemons = Some(self.stage.protect(binary, stop)?);
        }
        urgent(PROGRAMS);
        let ends = (&self.stage.centres[..], &self.stage.sites[..]);
        let others = self.protocols.iter().filter(|it| it.module().is_some());
        for &protocol in others {
            let every = self.options.every_ms;
            let begun = self.outside.begin(protocol, ends, every)?;
            processes.conversations.push(begun);
        }
        self.connected(&mut processes)?;
        let rate = self.options.frames_each_second;
        urgent(NETWORK);
        let streams = Streams::begin(ends.0, ends.1, rate)
            .map_err(|error| format!("cannot have a port for phasors: {error}"))?;
        self.wait(SETTLE, &mut processes)?;
        let began = Clock.now().as_nanos();
        let dead = self.outages(&mut processes, told);
        let phasors = streams.end();
        let mut seen: Vec<_> = std::mem::take(&mut processes.conversations)
            .into_iter()
            .map(|it| (it.protocol, it.end()))
            .collect();
        seen.push((Protocol::Phasors, phasors));
        drop(processes);
        Ok(self.judged(pass, (began, &dead?), &seen))
    }

    fn stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }

    /// Waits so long, or until somebody wants to stop.
    ///
    /// # Errors
    /// Something ended that is to last.
    fn wait(&self, long: Duration, processes: &mut Processes) -> Result<(), String> {
        let until = Clock.now() + long;
        while Clock.now() < until && !self.stopped() {
            processes.stood()?;
            self.stage.stood()?;
            Clock.sleep_until(until.min(Clock.now() + LOOK));
        }
        Ok(())
    }

    /// Waits until every centre has a connection to every substation.
    fn connected(&self, processes: &mut Processes) -> Result<(), String> {
        let sites = self.stage.sites.len();
        let patience = PATIENCE + PATIENCE_EACH * sites as u64;
        let until = Clock.now() + patience;
        loop {
            self.wait(Duration::from_millis(500), processes)?;
            let lacking = processes.conversations.iter().find_map(|it| {
                let seen = it.seen();
                let connected = seen.iter().map(|it| it.connected(sites)).min()?;
                (connected < sites).then(|| (it.protocol, connected, it.words()))
            });
            let Some((protocol, connected, words)) = lacking else {
                return Ok(());
            };
            if self.stopped() {
                return Ok(());
            }
            if Clock.now() > until {
                return Err(format!(
                    "{protocol}: {connected} of {sites} substations were connected after {} s; on this machine fewer would do (--substations). {}",
                    patience.as_nanos() / 1_000_000_000,
                    words.trim()
                ));
            }
        }
    }

    /// Has everything die that dies, one after the other.
    fn outages(
        &self,
        processes: &mut Processes,
        told: &(dyn Fn(&str) + Sync),
    ) -> Result<Vec<Dead>, String> {
        let lasts = Duration::from_secs(self.options.seconds);
        let mut all: Vec<Dead> = Vec::new();
        for outage in Outage::ALL {
            if self.stopped() {
                break;
            }
            match self.plan.names(outage) {
                [] => told(outage.title()),
                [first] => told(&format!("{} ({first})", outage.title())),
                [first, .., last] => told(&format!("{} ({first} to {last})", outage.title())),
            }
            let cutting = self.stage.cut(self.plan, outage);
            let cut = Clock.now().as_nanos();
            let waited = cutting.and_then(|()| self.wait(lasts, processes));
            let last = Clock.now().as_nanos();
            let waited = waited.and_then(|()| self.wait(HELD_UP, processes));
            let healed = Clock.now().as_nanos();
            self.stage.heal(self.plan, outage)?;
            waited?;
            if outage != Outage::None {
                self.wait(lasts * 2, processes)?;
            }
            all.push(Dead {
                outage,
                cut,
                last,
                healed,
                next: Clock.now().as_nanos(),
            });
            // What was sent until then is answered before the next outage, or lost by this one.
            self.wait(HELD_UP, processes)?;
        }
        Ok(all)
    }

    fn judged(
        &self,
        pass: Pass,
        (began, dead): (u64, &[Dead]),
        seen: &[(Protocol, Vec<Seen>)],
    ) -> Passed {
        let mut passed = Passed {
            complete: !self.stopped(),
            ..Passed::default()
        };
        for (protocol, by_centre) in seen {
            let centres = self.stage.centres.iter().zip(self.plan.centres);
            for ((centre, node), seen) in centres.zip(by_centre) {
                let view = View {
                    pass,
                    protocol: *protocol,
                    centre: &centre.name,
                    sites: self.stage.sites.len(),
                    seen,
                };
                for dead in dead {
                    let reached = self.plan.reached(&self.stage.topology, dead.outage, node);
                    passed.rows.extend(analysis::rows(&view, dead, &reached));
                }
                let every_ms = match protocol {
                    Protocol::Phasors => 1_000 / u64::from(self.options.frames_each_second),
                    _ => self.options.every_ms,
                };
                passed
                    .courses
                    .push(analysis::course(&view, (began, dead), every_ms));
            }
        }
        passed
    }
}
