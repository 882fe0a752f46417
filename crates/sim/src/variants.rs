//! Configurations between which a pair changes while it runs. All applications that there ever are stand in
//! one of them, and checkers know an application by its position there.

use std::sync::Arc;

use bumpless_base::ChannelId;
use bumpless_config::{Application, Config};

use crate::script::{Fault, Timed};

/// Applications that come and go.
const GUESTS: usize = 16;
/// Of them, so many at a time.
const AT_A_TIME: usize = 2;
/// The last number that a configuration has; 0 is the one with which nodes start.
pub const LAST: usize = GUESTS - AT_A_TIME + 1;

/// `config` with all that ever come, if `faults` change it.
pub fn with_guests(config: &Arc<Config>, faults: &[Timed]) -> Arc<Config> {
    let changes = |timed: &Timed| matches!(timed.fault, Fault::Apply { .. });
    if !faults.iter().any(changes) {
        return Arc::clone(config);
    }
    let mut all = Config::clone(config);
    let channels = config.applications.iter().map(|app| app.channel.get());
    let highest = channels.max().unwrap_or_default();
    for guest in 0..GUESTS {
        // Like those that are there, of each kind.
        let like = &config.applications[guest % config.applications.len()];
        let Some(channel) = ChannelId::new(highest + 1 + guest as u16) else {
            break;
        };
        all.applications.push(Application {
            name: format!("guest-{guest}"),
            channel,
            ..like.clone()
        });
    }
    // What it is about here is not whether it fits.
    all.plan.run_although_refused = true;
    Arc::new(all)
}

/// Number `number` of the configurations that are made of `all`, of whose applications the first `stay`
/// never go: guests in turn, and with every second number some that stay are tuned.
pub fn variant(all: &Config, stay: usize, number: usize) -> Config {
    let mut config = all.clone();
    let guests = match number {
        0 => 0..0,
        number => number - 1..number - 1 + AT_A_TIME,
    };
    let mut at = 0;
    config.applications.retain(|_| {
        let kept = at < stay || guests.contains(&(at - stay));
        at += 1;
        kept
    });
    if number % 2 == 1 {
        for application in config.applications.iter_mut().take(stay) {
            // The deadline stays: checkers know one for each application.
            application.period = application.period * 2;
        }
    }
    config
}
