//! One group: its keys, who has them, and when they are rolled.

mod drawer;
mod kept;
mod status;

use std::sync::Arc;

use bumpless_base::{Duration, Instant};
use bumpless_keys::Member;
use bumpless_pki::rustls::pki_types::CertificateDer;
use bumpless_pki::{Identity, NodeName};
use bumpless_secure::group::{Grant, Issuer, Place, Schedule};
use bumpless_sessions::Identities;
use rustix::event::PollFd;

use crate::config;
use crate::store::{Holder, StoreError, hex, unhex};
use drawer::Drawer;

/// Certificates of one member that are known; renewed ones take the places of the oldest.
const CERTIFICATES: usize = 4;
/// Between two tries to keep what is to hold.
const RETRY: Duration = Duration::from_secs(1);

/// A group of this server.
#[derive(Debug)]
pub struct Group {
    settings: config::Group,
    source: Source,
    holders: Vec<Holder>,
    /// The keys are to be rolled: somebody who has them must not have the next ones.
    roll: bool,
    /// How often keys were rolled before their time.
    rolls: u64,
    /// The keys that members were told last.
    told: Vec<Place>,
    /// When it has something to do by itself.
    due: Instant,
}

/// Where keys come from.
#[derive(Debug)]
enum Source {
    /// This server makes them.
    Leads(Box<Issuer>),
    /// Another one does.
    Follows(Box<Member>),
}

/// What is to be kept on disk before it holds.
pub struct Next {
    source: Option<Issuer>,
    holders: Vec<Holder>,
    roll: bool,
    rolls: u64,
}

impl Group {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Who is a member, as NODE.PAIR.
    pub fn members(&self) -> &[String] {
        &self.settings.members
    }

    /// Whether `name` is a member.
    pub fn has(&self, name: &NodeName) -> bool {
        self.settings.members.iter().any(|it| it == name.short())
    }

    fn schedule(&self) -> &Schedule {
        match &self.source {
            Source::Leads(issuer) => issuer.schedule(),
            Source::Follows(member) => member.schedule(),
        }
    }

    /// What members are told at `now`.
    pub fn grant(&self, now: Instant) -> Option<Grant> {
        self.schedule().grant(now)
    }

    /// What to wait for.
    pub fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let member = match &self.source {
            Source::Leads(_) => None,
            Source::Follows(member) => Some(member),
        };
        member.into_iter().flat_map(|member| member.polls())
    }

    /// When it has something to do by itself.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        match &self.source {
            Source::Leads(_) => Some(self.due),
            Source::Follows(member) => member.schedule().next_change(now),
        }
    }

    /// What it was to hold could not be kept: it is tried again after a while.
    pub fn put_off(&mut self, now: Instant) {
        self.due = now + RETRY;
    }

    /// Whether members are to be told of the keys, since there are others than when this was asked last.
    pub fn take_news(&mut self) -> bool {
        let keys = self.schedule().keys().iter();
        let places: Vec<_> = keys.map(|key| key.place).collect();
        let later = places.iter().any(|place| !self.told.contains(place));
        self.told = places;
        later
    }

    /// Follows the time and, if it follows another server, that one. `Some`: to be kept, and then to be put in force.
    pub fn turn(&mut self, identities: &mut Identities, now: Instant) -> Option<Next> {
        let (roll, rolls) = (self.roll, self.rolls);
        match &mut self.source {
            Source::Follows(member) => {
                let before = member.schedule().keys().last().map(|it| it.place);
                member.drive(identities, now);
                let after = member.schedule().keys().last().map(|it| it.place);
                // It is for the server that makes keys to roll them: it has the same list.
                self.roll = false;
                (before != after).then(|| self.same())
            }
            Source::Leads(issuer) => {
                if now < self.due {
                    return None;
                }
                let mut next = Issuer::clone(issuer);
                let mut drawer = Drawer::new(issuer.schedule());
                let made = next.refill(&mut || drawer.draw(), now);
                let rolled = roll && next.roll(&mut || drawer.draw(), now);
                let later = roll && !rolled && next.numbers().rolls_again;
                if !(made || rolled || later) {
                    issuer.refill(&mut || None, now);
                    self.due = issuer.poll_timeout(now).unwrap_or(now + RETRY);
                    return None;
                }
                Some(Next {
                    source: Some(next),
                    holders: self.holders.clone(),
                    roll: roll && !rolled && !later,
                    rolls: rolls + u64::from(rolled || later),
                })
            }
        }
    }

    /// The keys are to be rolled.
    ///
    /// # Errors
    /// This server does not make them.
    pub fn order_roll(&mut self) -> Result<(), String> {
        match &self.source {
            Source::Leads(_) => {
                (self.roll, self.due) = (true, Instant::ZERO);
                Ok(())
            }
            Source::Follows(_) => Err(format!(
                "this server takes the keys of group '{}' from another one: order it there",
                self.name()
            )),
        }
    }

    /// A member says which key it seals with, after a restart of this server that does not know how late it is.
    pub fn catch_up(&mut self, place: Place, now: Instant) {
        if let Source::Leads(issuer) = &mut self.source {
            // What is kept is earlier, and is caught up again if need be.
            issuer.catch_up(place, now);
        }
    }

    /// Somebody is to be given the keys by the certificate that it has `shown`. `Some`: to be kept before that.
    pub fn lend(&self, name: &NodeName, shown: &[CertificateDer<'_>]) -> Option<Next> {
        let holder = Holder {
            name: name.short().to_owned(),
            shown: shown.iter().map(|it| hex(it)).collect(),
        };
        if self.holders.contains(&holder) {
            return None;
        }
        let mut next = self.same();
        let earlier = next
            .holders
            .iter()
            .filter(|it| it.name == holder.name)
            .count();
        if earlier >= CERTIFICATES
            && let Some(at) = next.holders.iter().position(|it| it.name == holder.name)
        {
            next.holders.remove(at);
        }
        next.holders.push(holder);
        Some(next)
    }

    /// Who has keys and must not have the next ones: it is revoked, or no member any more. They are rolled.
    pub fn judge(&mut self, identity: &Identity) -> Vec<(String, &'static str)> {
        if let Source::Follows(member) = &mut self.source {
            member.judge(identity);
        }
        let mut given_up = Vec::new();
        let members = &self.settings.members;
        self.holders.retain(|holder| {
            let why = if is_revoked(holder, identity) {
                "revoked"
            } else if !members.contains(&holder.name) {
                "no member any more"
            } else {
                return true;
            };
            given_up.push((holder.name.clone(), why));
            false
        });
        if !given_up.is_empty() {
            (self.roll, self.due) = (true, Instant::ZERO);
        }
        given_up
    }

    fn same(&self) -> Next {
        Next {
            source: None,
            holders: self.holders.clone(),
            roll: self.roll,
            rolls: self.rolls,
        }
    }

    /// What was kept holds.
    pub fn put_in_force(&mut self, next: Next) {
        if let Some(issuer) = next.source {
            self.due = Instant::ZERO;
            self.source = Source::Leads(Box::new(issuer));
        }
        (self.holders, self.roll, self.rolls) = (next.holders, next.roll, next.rolls);
    }

    /// Ends sessions with other servers.
    pub fn close(&mut self) {
        if let Source::Follows(member) = &mut self.source {
            member.close();
        }
    }

    /// The number and the identifier of the key that is sealed with.
    pub fn sealing(&self, now: Instant) -> Option<(u64, u16)> {
        let sealing = self.schedule().sealing(now)?;
        Some((sealing.place.token, sealing.key.id()))
    }
}

fn is_revoked(holder: &Holder, identity: &Identity) -> bool {
    let shown: Option<Vec<_>> = holder.shown.iter().map(|it| unhex(it)).collect();
    let shown: Vec<_> = shown
        .into_iter()
        .flatten()
        .map(CertificateDer::from)
        .collect();
    identity.has_revoked(&shown)
}

/// The whole names of all members of `groups` at `site`.
pub fn expected(groups: &[Group], site: &str) -> Arc<[NodeName]> {
    let names = groups.iter().flat_map(Group::members);
    let names = names.filter_map(|name| NodeName::at_site(name, site).ok());
    let mut all: Vec<_> = names.collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// That keys were not kept, in words.
pub fn not_kept(error: &StoreError) -> String {
    format!(
        "{error}; until this is mended no other keys are made or given, and members go on with those that they have"
    )
}
