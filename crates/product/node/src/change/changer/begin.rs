//! Which step each job of a change takes.

use bumpless_base::{Duration, Instant};
use bumpless_transfer::ChannelPlace;

use super::Changer;
use crate::change::job::{Begun, Job, LAPSE, Step};
use crate::change::prepared::Prepared;
use crate::data_plane::change::{ChangeBoard, ChangeOrder, Occupant};

/// Between two attempts at what has failed.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// How often backups that change together are asked before the partner is told that this node has changed.
const ATTEMPTS: u32 = 5;

impl Changer {
    pub(in crate::change) fn begin(
        &mut self,
        job: Job,
        board: &ChangeBoard,
        now: Instant,
    ) -> Begun {
        if let Some(order) = self.order(&job, board) {
            return Begun::Waits(job, Some(Step::Order(order)));
        }
        let Some(prepared) = &mut self.prepared else {
            return match job {
                Job::Free(leavers) => Begun::Step(Step::Free(leavers)),
                Job::Tell(words) => Begun::Step(Step::Tell(words)),
                _ => Begun::Over,
            };
        };
        match job {
            Job::Keep => Begun::Waits(job, Some(Step::Keep(prepared.text.clone()))),
            Job::Agree { .. } if board.take_due() => {
                self.make();
                Begun::Over
            }
            Job::Agree { since } if board.take_withdrawn() || now >= since + LAPSE => {
                self.give_up();
                Begun::Over
            }
            Job::Forget => {
                self.prepared = None;
                let words = "the prepared change was given up; the configuration stays as it is";
                self.jobs.push_front(Job::Tell(words.into()));
                Begun::Step(Step::Forget)
            }
            Job::Pause { until } => waited(until, now + RETRY, now, |until| Job::Pause { until }),
            Job::Rest { until } => {
                waited(until, now + prepared.rest, now, |until| Job::Rest { until })
            }
            Job::MakeLast => Begun::Waits(job, Some(Step::MakeLast)),
            Job::Follow if board.take_followed() => Begun::Over,
            Job::Stop(place) => Begun::Waits(job, Some(Step::Stop(place))),
            Job::Tune(_) | Job::TuneBackups { .. } | Job::TuneRest => self.tune(job, now),
            Job::Start => match prepared.newcomers.pop() {
                Some(newcomer) => {
                    self.jobs.push_front(Job::Start);
                    Begun::Step(Step::Start(Box::new(newcomer)))
                }
                None => Begun::Over,
            },
            Job::Free(leavers) => Begun::Step(Step::Free(leavers)),
            Job::Tell(words) => Begun::Step(Step::Tell(words)),
            // What is not over waits; the others are orders.
            _ => Begun::Waits(job, None),
        }
    }

    /// Gives executors their next settings: one, or all at once that are to change together.
    fn tune(&self, job: Job, now: Instant) -> Begun {
        let Some(prepared) = &self.prepared else {
            return Begun::Over;
        };
        let (job, step) = match job {
            Job::Tune(at) => {
                let (place, settings) = prepared.tuned[at].clone();
                (job, Some(Step::Tune(place, Box::new(settings))))
            }
            Job::TuneBackups { not_before, .. } if now < not_before => {
                return Begun::Waits(job, None);
            }
            Job::TuneBackups {
                attempts,
                not_before,
                ..
            } => {
                let parts = &self.workshop.parts;
                let asked = prepared.left_together(|group| !parts.is_primary(group));
                let step = together(prepared, &asked, false);
                let job = Job::TuneBackups {
                    attempts,
                    not_before,
                    asked,
                };
                (job, step)
            }
            _ => {
                let step = together(prepared, &prepared.left_together(|_| true), true);
                (job, step)
            }
        };
        step.map_or(Begun::Over, |step| Begun::Waits(job, Some(step)))
    }

    /// What the data plane is to do for `job`, if that is all there is to it.
    fn order(&mut self, job: &Job, board: &ChangeBoard) -> Option<ChangeOrder> {
        let prepared = self.prepared.as_mut()?;
        Some(match *job {
            Job::Prepare { resumed } => {
                // What was told before is of a change before.
                let _ = (
                    board.take_due(),
                    board.take_withdrawn(),
                    board.take_followed(),
                );
                let next = prepared.fingerprint;
                ChangeOrder::Prepare { next, resumed }
            }
            Job::Withdraw => ChangeOrder::Withdraw,
            Job::NotMade => ChangeOrder::NotMade,
            Job::Switch => ChangeOrder::Switch {
                arrivals: std::mem::take(&mut prepared.arrivals),
            },
            Job::Discount => ChangeOrder::Discount {
                places: prepared.leavers.clone(),
            },
            Job::Dismiss => {
                let leavers = prepared.leavers.iter();
                let leavers = leavers.map(|&place| (place, Occupant::default()));
                let leavers = leavers.collect();
                ChangeOrder::Dismiss { leavers }
            }
            Job::Retime(at) => {
                let (place, settings) = &prepared.tuned[at];
                ChangeOrder::Retime {
                    place: *place,
                    times: settings.into(),
                    expect_within: settings.period + settings.deadline,
                }
            }
            Job::Clear => {
                let vacant = |&place: &ChannelPlace| {
                    let nobody = Occupant {
                        sender: Some(self.workshop.senders.vacant()),
                        receiver: Some(self.workshop.receivers.vacant()),
                        ..Occupant::default()
                    };
                    (place, nobody)
                };
                let leavers = prepared.leavers.iter().map(vacant).collect();
                ChangeOrder::Clear { leavers }
            }
            _ => return None,
        })
    }

    /// Both nodes are ready.
    fn make(&mut self) {
        let Some(prepared) = &self.prepared else {
            return;
        };
        self.jobs.clear();
        self.jobs.push_back(Job::MakeLast);
        if prepared.together.is_some() {
            // Before the partner is told that this node has changed: whoever takes over from a primary that has changed has done so, too.
            self.jobs.push_back(Job::TuneBackups {
                attempts: ATTEMPTS,
                not_before: Instant::ZERO,
                asked: Vec::new(),
            });
        }
        self.jobs.extend([Job::Switch, Job::Follow]);
        if !prepared.leavers.is_empty() {
            self.jobs.push_back(Job::Discount);
            let stops = prepared.leavers.iter().map(|&place| Job::Stop(place));
            self.jobs.extend(stops);
            self.jobs.push_back(Job::Dismiss);
        }
        let tuned = 0..prepared.tuned.len();
        if prepared.together.is_some() {
            self.jobs.push_back(Job::TuneRest);
            self.jobs.extend(tuned.map(Job::Retime));
        } else {
            let each = tuned.flat_map(|at| [Job::Tune(at), Job::Retime(at)]);
            self.jobs.extend(each);
        }
        self.jobs.push_back(Job::Start);
        if !prepared.leavers.is_empty() {
            self.jobs.extend([Job::Rest { until: None }, Job::Clear]);
        }
    }
}

/// A job that waits: from its beginning on until `then`, which is over by `until`.
fn waited(
    until: Option<Instant>,
    then: Instant,
    now: Instant,
    job: impl FnOnce(Option<Instant>) -> Job,
) -> Begun {
    match until {
        None => Begun::Waits(job(Some(then)), None),
        Some(until) if now >= until => Begun::Over,
        Some(_) => Begun::Waits(job(until), None),
    }
}

/// Has those at these positions in `tuned` change together, if there are any.
fn together(prepared: &Prepared, asked: &[usize], last: bool) -> Option<Step> {
    let all: Vec<_> = asked.iter().map(|&at| prepared.tuned[at].clone()).collect();
    (!all.is_empty()).then_some(Step::TuneTogether { all, last })
}
