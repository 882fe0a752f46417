//! Several applications that go on with other settings at one moment, or none of them does: the thread that asks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bumpless_config as config;
use bumpless_transfer::ChannelPlace;

use super::{LOOK, Made, Running, RunningApplication, TIMEOUT, not_here};
use crate::applications::{Participant, Together};

impl Running {
    /// Has the applications at these places go on with these settings, all before their next cycle, or none. Everything that takes
    /// its time is done beforehand.
    ///
    /// # Errors
    /// Why none does, in words.
    pub fn tune_together(
        &mut self,
        all: &[(ChannelPlace, config::Application)],
    ) -> Result<(), String> {
        let changed = self.try_together(all);
        changed.map_err(|why| {
            let names: Vec<_> = all.iter().map(|it| format!("'{}'", it.1.name)).collect();
            let names = names.join(", ");
            format!("{names} change together and go on as they were: {why}")
        })
    }

    fn try_together(&mut self, all: &[(ChannelPlace, config::Application)]) -> Result<(), String> {
        let mut made = Vec::new();
        for (place, settings) in all {
            made.push((*place, self.make_tried(*place, settings)?));
        }
        let together = Arc::new(self.together(all)?);
        let mut asked = Vec::new();
        for (place, it) in made {
            let Made {
                mut tuning,
                next,
                opened,
            } = it;
            if let Some(running) = self.threads.get(&place)
                && let Some(at) = together.number_of(&running.mailbox)
            {
                tuning.change_with(&together, at);
                running.tuning.ask(tuning);
                asked.push((place, next, opened));
            }
        }
        together.begin();
        let places = asked.iter().map(|it| it.0);
        let running: Vec<_> = places.filter_map(|at| self.threads.get(&at)).collect();
        let result = await_all(&running, &together, &self.common.stop);
        if together.is_off() {
            return Err(together.why_not());
        }
        for (place, next, opened) in asked {
            self.follow(place, next, opened);
        }
        result
    }

    /// As [`make`](Self::make), tried with a copy of the newest state, so that hardly anything is left that can fail.
    fn make_tried(
        &self,
        place: ChannelPlace,
        settings: &config::Application,
    ) -> Result<Made, String> {
        let running = self.threads.get(&place).ok_or_else(|| not_here(settings))?;
        let state = match running.version.is_another(settings) {
            true => running.newest_state()?,
            false => None,
        };
        self.make(place, settings, state.as_deref())
    }

    fn together(&self, all: &[(ChannelPlace, config::Application)]) -> Result<Together, String> {
        let participant = |(place, settings): &(ChannelPlace, config::Application)| {
            let running = self.threads.get(place).ok_or_else(|| not_here(settings))?;
            let before = &running.version.settings;
            let times = (before.period, before.deadline, before.expiry);
            let mailbox = Arc::clone(&running.mailbox);
            Ok(Participant::new(settings.name.clone(), times, mailbox))
        };
        let participants: Result<_, String> = all.iter().map(participant).collect();
        Ok(Together::new(participants?, self.common.failover))
    }
}

/// Waits until all have answered. One that does not come in time has all go on as they were, and so has the end of the node. Returns
/// what is wrong with one that has changed.
fn await_all(
    all: &[&RunningApplication],
    together: &Together,
    stop: &AtomicBool,
) -> Result<(), String> {
    let settings = all.iter().map(|running| &running.version.settings);
    let longest = settings.map(|it| it.period * 2 + it.deadline).max();
    // Those with shorter periods are called when those with longer ones stand still.
    let wait = longest.unwrap_or_default().to_std() * 2 + TIMEOUT;
    let (begun, mut left) = (Instant::now(), all.to_vec());
    let mut result = Ok(());
    while !left.is_empty() {
        left.retain(|running| match running.tuning.answer() {
            Some(answer) => {
                if answer.is_err() {
                    result = answer;
                }
                false
            }
            None => true,
        });
        if stop.load(Ordering::Acquire) {
            together.call_off(|| "this node ends".into());
            break;
        }
        if begun.elapsed() > wait && !together.is_off() {
            together.call_off_late();
        }
        if begun.elapsed() > wait * 2 {
            break;
        }
        std::thread::sleep(LOOK);
    }
    result
}

#[cfg(test)]
mod tests {
    use bumpless_base::Duration;

    use super::*;
    use crate::running::tests::silent;

    /// The end of a node does not wait for executors that do not come.
    #[test]
    fn nobody_waits_for_all_where_the_node_ends() {
        let running = silent();
        let times = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let mailbox = Arc::clone(&running.mailbox);
        let participant = Participant::new("it".into(), times, mailbox);
        let together = Together::new(vec![participant], Duration::ZERO);
        let stop = AtomicBool::new(true);
        assert_eq!(await_all(&[&running], &together, &stop), Ok(()));
        assert_eq!(together.why_not(), "this node ends");
        running.end();
    }
}
