//! A group and what is kept of it on disk.

use bumpless_base::Instant;
use bumpless_keys::{Member, Server};
use bumpless_secure::group::{Issuer, Schedule};

use super::drawer::{fresh, seen};
use super::{Group, Next, Source};
use crate::config;
use crate::store::KeptGroup;

impl Group {
    /// The group with these `settings`, which takes its keys from `follow` if any, and what was kept of it at `since`.
    ///
    /// # Errors
    /// What was kept contradicts itself.
    pub fn new(
        settings: config::Group,
        follow: Vec<Server>,
        (kept, since): (Option<KeptGroup>, Option<Instant>),
        now: Instant,
    ) -> Result<Self, String> {
        let name = settings.name.clone();
        let mut group = Self {
            source: Source::Leads(Box::new(Issuer::new(
                settings.terms,
                Schedule::default(),
                fresh(None),
            ))),
            settings,
            holders: Vec::new(),
            roll: false,
            rolls: 0,
            told: Vec::new(),
            due: now,
        };
        let mut numbers = None;
        let mut schedule = Schedule::default();
        if let Some(kept) = kept {
            group.holders = kept.holders;
            group.roll = kept.roll;
            let led = (kept.leads && follow.is_empty())
                .then_some(kept.grant.as_ref())
                .flatten();
            if let Some(grant) = led {
                let terms = group.settings.terms;
                let issuer = Issuer::restore(terms, grant, kept.numbers, since, now);
                let issuer = issuer.map_err(|error| format!("group '{name}': {error}"))?;
                group.source = Source::Leads(Box::new(issuer));
                return Ok(group);
            }
            if let Some(grant) = &kept.grant {
                let taken = schedule.take(grant, since.unwrap_or(now), now);
                taken.map_err(|error| format!("group '{name}': {error}"))?;
            }
            numbers = Some((kept.numbers, kept.leads));
        }
        group.source = match follow.is_empty() {
            false => {
                let member = Member::new(name, follow, schedule, now);
                Source::Follows(Box::new(member))
            }
            true => {
                let numbers = match numbers {
                    // All of its keys are over.
                    Some((numbers, true)) => numbers,
                    Some((numbers, false)) => fresh(Some((numbers, schedule.era()))),
                    None => fresh(None),
                };
                let terms = group.settings.terms;
                Source::Leads(Box::new(Issuer::new(terms, schedule, numbers)))
            }
        };
        Ok(group)
    }

    /// What is kept of it if `next` holds, or as it is.
    pub fn kept(&self, next: Option<&Next>, now: Instant) -> KeptGroup {
        let issuer = match (&self.source, next.and_then(|next| next.source.as_ref())) {
            (_, Some(issuer)) => Some(issuer),
            (Source::Leads(issuer), None) => Some(&**issuer),
            (Source::Follows(_), None) => None,
        };
        let schedule = issuer.map_or(self.schedule(), Issuer::schedule);
        let numbers = issuer.map_or_else(|| seen(schedule), Issuer::numbers);
        KeptGroup {
            name: self.settings.name.clone(),
            leads: issuer.is_some(),
            numbers,
            roll: next.map_or(self.roll, |next| next.roll),
            grant: schedule.grant(now),
            holders: next.map_or(&self.holders, |next| &next.holders).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bumpless_base::Duration;
    use bumpless_secure::group::Terms;

    use super::*;

    /// A server may end between two groups: what is kept for the first one has what the second one waits for.
    #[test]
    fn a_roll_that_waits_is_kept_and_comes_back() {
        let settings = config::Group {
            name: "tank".into(),
            members: vec!["left.tank".into()],
            terms: Terms {
                lifetime: Duration::from_secs(3600),
                future: 2,
            },
        };
        let now = Instant::ZERO;
        let begin = |kept| Group::new(settings.clone(), Vec::new(), (kept, None), now).unwrap();
        let mut group = begin(None);
        assert!(!group.kept(None, now).roll);
        group.order_roll().unwrap();
        let kept = group.kept(None, now);
        assert!(kept.roll && begin(Some(kept)).roll);
    }
}
