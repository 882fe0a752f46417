//! Configurations: those between which a pair changes while it runs, and those with which a node comes back although
//! they are wrong. All applications that there ever are stand in one of them, and checkers know an application by its
//! position there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bumpless_base::ChannelId;
use bumpless_config::{Application, Config, FieldDevices, FieldIo, OnFailure, ReferenceKind};

use crate::script::{Fault, Timed, Wrong};

/// Applications that come and go.
const GUESTS: usize = 16;
/// Of them, so many at a time.
const AT_A_TIME: usize = 2;
/// The application that somebody has added to one node's configuration only.
const STRANGER: &str = "stranger";
/// Another field device's address.
const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77)), 502);
const DEVICE_ELSEWHERE: FieldDevices = FieldDevices::Tank {
    address: ELSEWHERE,
    security: None,
};
/// The last number that a configuration has; 0 is the one with which nodes start.
pub const LAST: usize = GUESTS - AT_A_TIME + 1;

/// What a process runs with, as far as it is for two of them to agree on. Of those between which a pair changes, each
/// is the right one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Configuration {
    /// The one in force.
    #[default]
    Right,
    /// One that has since been changed.
    Old,
    /// One that somebody has got wrong.
    Wrong(Wrong),
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Right => "the configuration of the pair",
            Self::Old => "a configuration that has since been changed",
            Self::Wrong(Wrong::Period) => "a configuration with another period",
            Self::Wrong(Wrong::Application) => "a configuration with one application more",
            Self::Wrong(Wrong::References) => "a configuration with other reference points",
            Self::Wrong(Wrong::Field) => "a configuration with another field address",
        })
    }
}

/// Everybody who ever comes.
#[derive(Clone, Debug)]
pub struct Everybody {
    /// All applications there ever are.
    pub config: Arc<Config>,
    /// So many of them stay: the first.
    pub stay: usize,
    /// So many come and go: those behind.
    pub guests: usize,
}

impl Everybody {
    /// Those of `config`, and who comes with `faults`: guests, with changes, and an application that somebody has added
    /// to one node's configuration only.
    pub fn of(config: &Arc<Config>, faults: &[Timed]) -> Self {
        let stay = config.applications.len();
        let any = |wanted: fn(&Fault) -> bool| faults.iter().any(|timed| wanted(&timed.fault));
        let changes = any(|fault| matches!(fault, Fault::Apply { .. }));
        let guests = if changes { GUESTS } else { 0 };
        let stranger = any(|fault| {
            let Fault::WrongConfiguration { what, .. } = fault else {
                return false;
            };
            *what == Wrong::Application
        });
        if guests == 0 && !stranger {
            let config = Arc::clone(config);
            return Self {
                config,
                stay,
                guests,
            };
        }
        let mut all = Config::clone(config);
        let names = (0..guests).map(|guest| format!("guest-{guest}"));
        for (at, name) in names.chain(stranger.then(|| STRANGER.into())).enumerate() {
            add(&mut all, (at, stay), name);
        }
        // What it is about here is not whether it fits.
        all.plan.run_although_refused = true;
        Self {
            config: Arc::new(all),
            stay,
            guests,
        }
    }
}

/// Adds the `at`-th that comes, like one of those that `stay`, of each kind in turn.
fn add(all: &mut Config, (at, stay): (usize, usize), name: String) {
    let channels = all.applications.iter().map(|app| app.channel.get());
    let highest = channels.max().unwrap_or_default();
    if let Some(channel) = ChannelId::new(highest.saturating_add(1))
        && channel.get() > highest
    {
        let like = all.applications[at % stay].clone();
        all.applications.push(Application {
            name,
            channel,
            ..like
        });
    }
}

/// `config` with `what` wrong in it; `all` has the application that is one too many.
pub fn wrong(config: &Config, all: &Config, what: Wrong) -> Config {
    let mut wrong = config.clone();
    match what {
        Wrong::Period => {
            if let Some(application) = wrong.applications.first_mut() {
                application.period = application.period + application.period / 10;
            }
        }
        Wrong::Application => {
            let stranger = all.applications.iter().find(|app| app.name == STRANGER);
            wrong.applications.extend(stranger.cloned());
            wrong.plan.run_although_refused = true;
        }
        Wrong::References => {
            // What is left has nothing in common with what the partner may have agreed on.
            for group in &mut wrong.groups {
                match group.references[..] {
                    [] => {}
                    [only] => wrong.references[only].kind = ReferenceKind::Witness(ELSEWHERE),
                    [..] => drop(group.references.remove(0)),
                }
            }
        }
        Wrong::Field => {
            for application in &mut wrong.applications {
                let timeout = application.period;
                let field = application.field.get_or_insert(FieldIo {
                    devices: DEVICE_ELSEWHERE,
                    check_epoch: true,
                    on_failure: OnFailure::Hold,
                    timeout,
                    round_trip_max: timeout,
                    certificates: None,
                });
                field.devices = DEVICE_ELSEWHERE;
            }
        }
    }
    wrong
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
