//! Everything that a change needs, made before it is announced: when both nodes have agreed, nothing can
//! be lacking any more.

use bumpless_base::Duration;
use bumpless_config::{self as config, Config};
use bumpless_plan::change::Order;
use bumpless_plan::{Machine, pair};
use bumpless_transfer::{ChannelPlace, Publisher, ReceiverFactory, SenderFactory, Subscriber};

use super::places::Places;
use crate::admission::Admission;
use crate::build::{Parts, Shared};
use crate::data_plane::change::Occupant;
use crate::membership::GroupPlace;
use crate::wiring::Wiring;

/// An application that comes.
pub struct Newcomer {
    /// Its place, which is its number, too.
    pub place: ChannelPlace,
    /// Its settings.
    pub settings: config::Application,
    /// What it shares with the data plane.
    pub shared: Shared,
    /// Its channel's ends.
    pub ends: (Publisher, Subscriber),
}

/// A change that can be made at any moment.
pub struct Prepared {
    /// The next configuration as text.
    pub text: String,
    /// The same as read.
    pub config: Config,
    /// Hash of it.
    pub fingerprint: u64,
    /// What the plan says of it.
    pub admission: Admission,
    /// Places of applications that go.
    pub leavers: Vec<ChannelPlace>,
    /// Who goes on with other settings, in the order that overloads nothing.
    pub tuned: Vec<(ChannelPlace, config::Application)>,
    /// If they go on with them together: those that do not yet, by position in `tuned`.
    pub together: Option<Vec<usize>>,
    /// Who comes.
    pub arrivals: Vec<(ChannelPlace, Occupant)>,
    /// Their executors.
    pub newcomers: Vec<Newcomer>,
    /// For how long states of those that go may still come.
    pub rest: Duration,
    /// The places as they are when the change has been made and those that go are still there.
    pub places: Places,
}

/// What a change is prepared with.
pub struct Workshop {
    /// What executors and data plane share.
    pub parts: Parts,
    /// Makes channels.
    pub senders: SenderFactory,
    /// Makes channels.
    pub receivers: ReceiverFactory,
}

impl Prepared {
    /// Prepares the change from `old` to `text`, which is of the file `file`.
    ///
    /// # Errors
    /// Why the pair does not change to it, a line for each reason.
    pub fn new(
        (old, places): (&Config, &Places),
        (new, text, file): (Config, &str, &str),
        workshop: &Workshop,
    ) -> Result<Self, String> {
        let said = |problems: Vec<config::Problem>| {
            let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
            lines.join("\n")
        };
        let change = config::Change::between(old, &new, file).map_err(said)?;
        let admission = Admission::of(&new)?;
        let (tuned, together) = in_order(old, &new, &change);
        let mut prepared = Self {
            text: text.to_owned(),
            fingerprint: new.fingerprint(),
            admission,
            leavers: Vec::new(),
            tuned: Vec::new(),
            together: together.then(|| (0..tuned.len()).collect()),
            arrivals: Vec::new(),
            newcomers: Vec::new(),
            rest: Duration::ZERO,
            places: places.clone(),
            config: new,
        };
        prepared.leavers(old, &change)?;
        for name in tuned {
            prepared.tune(&name)?;
        }
        for &at in &change.added {
            prepared.arrive(at, workshop)?;
        }
        Ok(prepared)
    }

    /// Those that are left to change together and whose group `counts`; by position in `tuned`.
    pub fn left_together(&self, counts: impl Fn(GroupPlace) -> bool) -> Vec<usize> {
        let left = self.together.iter().flatten().copied();
        let counted = |at: &usize| {
            let slot = self.places.slots().get(self.tuned[*at].0);
            slot.and_then(Option::as_ref)
                .is_some_and(|slot| counts(slot.membership.group))
        };
        left.filter(counted).collect()
    }

    /// These have changed.
    pub fn changed_together(&mut self, those: &[usize]) {
        if let Some(left) = &mut self.together {
            left.retain(|at| !those.contains(at));
        }
    }

    fn place(&self, name: &str) -> Result<ChannelPlace, String> {
        let place = self.places.of(name);
        place.ok_or_else(|| format!("'{name}' has no place on this node; restart it"))
    }

    fn leavers(&mut self, old: &Config, change: &config::Change) -> Result<(), String> {
        for &at in &change.removed {
            let application = &old.applications[at];
            let place = self.place(&application.name)?;
            self.leavers.push(place);
            // The partner's executor ends at most a cycle later, and its last state takes that long.
            let last = (application.period + application.deadline) * 2;
            self.rest = self.rest.max(last + Duration::from_millis(100));
        }
        Ok(())
    }

    fn tune(&mut self, name: &str) -> Result<(), String> {
        let mut applications = self.config.applications.iter();
        if let Some(settings) = applications.find(|application| application.name == name) {
            self.tuned.push((self.place(name)?, settings.clone()));
        }
        Ok(())
    }

    fn arrive(&mut self, at: usize, workshop: &Workshop) -> Result<(), String> {
        let settings = self.config.applications[at].clone();
        let name = &settings.name;
        if self.places.was_used(settings.channel.get()) {
            return Err(format!(
                "application '{name}': packets of an application that had channel {} may still be \
                 under way; give it a channel that was not used since the nodes started",
                settings.channel
            ));
        }
        let group = workshop
            .parts
            .group(settings.group)
            .ok_or_else(|| format!("application '{name}': its group is not on this node"))?;
        let (place, slot) = self.places.take(name, group).ok_or_else(|| {
            format!("application '{name}': all places are taken; restart both nodes to make room")
        })?;
        self.places.use_channel(settings.channel.get());
        let wiring = Wiring::new(&self.config, workshop.parts.node());
        let setups = wiring.channel(&self.config, &settings);
        let setups = setups.ok_or_else(|| format!("application '{name}': it has no partner"))?;
        let refused = |error: &dyn std::fmt::Display| format!("application '{name}': {error}");
        let (sender, publisher) = workshop
            .senders
            .prepare(place, &setups.0)
            .map_err(|error| refused(&error))?;
        let (receiver, subscriber) = workshop
            .receivers
            .prepare(place, &setups.1)
            .map_err(|error| refused(&error))?;
        let (shared, runtime, member) =
            workshop
                .parts
                .newcomer(slot.number, slot.membership, (&settings).into());
        let occupant = Occupant {
            sender: Some(sender),
            receiver: Some(receiver),
            runtime: Some(runtime),
            member: Some(member),
        };
        self.arrivals.push((place, occupant));
        self.newcomers.push(Newcomer {
            place,
            settings,
            shared,
            ends: (publisher, subscriber),
        });
        Ok(())
    }
}

/// Whether those that `change` from `old` to `new` has go on with other settings do so at one moment, or none of them.
pub fn changes_together(old: &Config, new: &Config, change: &config::Change) -> bool {
    in_order(old, new, change).1
}

/// The names of those who go on with other settings, in an order that overloads no network on the way;
/// in that of the file where the plan is not a yes for both ends. With it, whether they do so together, since the file says so or there
/// is no such order.
fn in_order(old: &Config, new: &Config, change: &config::Change) -> (Vec<String>, bool) {
    let name = |tuned: &config::Tuned| new.applications[tuned.to].name.clone();
    let all: Vec<_> = change.tuned.iter().map(name).collect();
    if all.len() < 2 {
        // Who goes goes before anybody comes: every set on the way is part of the old one or of the new one.
        return (all, false);
    }
    if new.change.together {
        return (all, true);
    }
    // No order is looked for where the plan is not a yes for both ends; it was permitted to run all the same.
    match pair::change(old, new, Machine::default()).order {
        Some(Order::Steps { steps }) => {
            let mut ordered: Vec<_> = steps.into_iter().map(|step| step.channel).collect();
            ordered.retain(|name| all.contains(name));
            let rest = all.into_iter().filter(|name| !ordered.contains(name));
            let rest: Vec<_> = rest.collect();
            ordered.extend(rest);
            (ordered, false)
        }
        Some(Order::Atomic { .. }) => (all, true),
        None => (all, false),
    }
}
