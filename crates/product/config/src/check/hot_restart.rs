//! How old a state may be that is gone on from, beside how long a failover takes.

use bumpless_base::Duration;

use super::draft::Draft;
use super::timing::ms;
use crate::file::File;
use crate::model::{AfterHotRestart, Config, Timing};
use crate::reader::Reader;

/// A backup that takes over must still find its state young enough.
pub(crate) fn check(reader: &mut Reader, file: &File, drafts: &[Draft], timing: Option<&Timing>) {
    let Some(timing) = timing else { return };
    for (at, given) in file.groups.iter().enumerate() {
        let Some(Some(hot_restart)) = given.hot_restart else {
            continue;
        };
        let of_group = drafts.iter().filter(|draft| draft.group == Some(at));
        let needs = of_group.filter_map(|draft| {
            let least = timing.least_expiry(draft.period?, draft.deadline?);
            Some((least, draft.name.clone()?))
        });
        let Some((least, name)) = needs.max() else {
            continue;
        };
        if hot_restart < least {
            let wrong = format!(
                "{} ms is shorter than a failover of {name:?} takes: 2 periods, the deadline and the failover \
                 time, together {} ms",
                ms(hot_restart),
                ms(least)
            );
            let right = format!("give at least {}, or leave it out", ms(least));
            reader.wrong(&given.place, "hot_restart_ms", wrong, right);
        }
    }
}

/// Where the file says nothing, at least this long.
const USUAL: Duration = Duration::from_secs(5);
/// And at least as many expiries.
const EXPIRIES: u64 = 3;

/// For how long an application with this expiry may be gone on with where the file says nothing.
pub(crate) fn usual(expiry: Duration) -> Duration {
    USUAL.max(expiry * EXPIRIES)
}

/// Gives each application what its group says, or what is usual.
pub(crate) fn spread(config: &mut Config) {
    for application in &mut config.applications {
        let group = &config.groups[application.group];
        application.hot_restart = group.hot_restart.unwrap_or(usual(application.expiry));
        application.begins_anew = group.after_hot_restart == AfterHotRestart::Cold;
    }
}
