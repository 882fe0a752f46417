//! Whether a node may go on from a file that an earlier process has left.

use std::fmt;

use bumpless_base::Duration;
use bumpless_config as config;
use bumpless_controller::Application;
use bumpless_controller::state::{Envelope, Progress};

use super::format::{FormatError, StateFile, VERSION, parse};
use crate::program::build_while;

/// A file may be so much younger than the clock says: the clock may have been set since.
const AHEAD: Duration = Duration::from_secs(1);

/// A state that may be gone on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// As it was published, envelope included.
    pub state: Vec<u8>,
    /// How far it had come.
    pub progress: Progress,
    /// For how much longer it is young enough.
    pub usable_for: Duration,
}

/// The retained variables that a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftRecord {
    /// How far the state had come of which they are.
    pub progress: Progress,
    /// Their record.
    pub record: Vec<u8>,
}

/// What a file is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The state, or why it is not gone on from.
    pub state: Result<Restored, Refusal>,
    /// What is retained of it, however old it is and whatever version of the program it is of (K-16).
    pub retained: Option<LeftRecord>,
}

impl Judged {
    /// Nothing is made of it.
    pub const fn refused(refusal: Refusal) -> Self {
        Self {
            state: Err(refusal),
            retained: None,
        }
    }
}

/// Why a file is not gone on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be read; what the system says.
    Unreadable(String),
    /// It is no file of a state at all.
    NoState,
    /// Its layout has another version.
    Version(u16),
    /// It was not written whole, or has changed since.
    Torn,
    /// It is of another pair.
    OtherPair,
    /// It is of another application.
    OtherApplication(String),
    /// The application's program was another one.
    OtherProgram,
    /// It is older than the process permits.
    Old {
        /// Its age.
        age: Duration,
        /// What the process permits.
        hot_restart: Duration,
    },
    /// It is from the future by so much: the clock was set back, or does not keep the time while it is off.
    Future(Duration),
    /// The application does not take the state, for this reason.
    Unloadable(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(cause) => write!(f, "unreadable: {cause}"),
            Self::NoState => f.write_str("it is no file of a state"),
            Self::Version(found) => {
                write!(
                    f,
                    "unknown version {found} of its layout; this program reads 1 to {VERSION}"
                )
            }
            Self::Torn => f.write_str("torn: it was not written whole, or has changed since"),
            Self::OtherPair => f.write_str("foreign: it is of another pair"),
            Self::OtherApplication(name) => {
                write!(f, "foreign: it is of the application {name:?}")
            }
            Self::OtherProgram => {
                f.write_str("it is of another program (kind, or size of its state)")
            }
            Self::Old { age, hot_restart } => write!(
                f,
                "too old: {} ms, and hot_restart_ms is {}",
                age.as_nanos() / 1_000_000,
                hot_restart.as_nanos() / 1_000_000
            ),
            Self::Future(ahead) => write!(
                f,
                "from the future by {} ms: the computer's clock was set back",
                ahead.as_nanos() / 1_000_000
            ),
            Self::Unloadable(cause) => write!(f, "the application does not take it: {cause}"),
        }
    }
}

/// Judges the file of the application `settings` of `pair`, at `wall_ns` since 1970. A program is started to try the state: it is given up
/// where that is not wanted any more.
pub fn judge(
    bytes: &[u8],
    (pair, settings): (u32, &config::Application),
    wall_ns: u64,
    wanted: &dyn Fn() -> bool,
) -> Judged {
    let file = match own(bytes, (pair, settings)) {
        Ok(file) => file,
        Err(refusal) => return Judged::refused(refusal),
    };
    let retained = (!file.retained.is_empty()).then(|| LeftRecord {
        progress: file.progress,
        record: file.retained.bytes().to_vec(),
    });
    Judged {
        state: restored(&file, settings, wall_ns, wanted),
        retained,
    }
}

/// The file, if it is whole and one of this application.
fn own<'a>(
    bytes: &'a [u8],
    (pair, settings): (u32, &config::Application),
) -> Result<StateFile<'a>, Refusal> {
    let file = parse(bytes).map_err(|error| match error {
        FormatError::Foreign => Refusal::NoState,
        FormatError::Version(version) => Refusal::Version(version),
        FormatError::Torn => Refusal::Torn,
    })?;
    if file.pair != pair {
        return Err(Refusal::OtherPair);
    }
    if file.application != settings.name {
        return Err(Refusal::OtherApplication(file.application.to_owned()));
    }
    Ok(file)
}

fn restored(
    file: &StateFile<'_>,
    settings: &config::Application,
    wall_ns: u64,
    wanted: &dyn Fn() -> bool,
) -> Result<Restored, Refusal> {
    if file.program != settings.program() {
        return Err(Refusal::OtherProgram);
    }
    let usable_for = usable_for(file.published_ns, settings.hot_restart, wall_ns)?;
    let application = build_while(settings, None, wanted).map_err(|error| error.to_string());
    let loaded = application.and_then(|mut it| try_load(it.as_mut(), file.state, file.progress));
    loaded.map_err(Refusal::Unloadable)?;
    Ok(Restored {
        state: file.state.to_vec(),
        progress: file.progress,
        usable_for,
    })
}

fn usable_for(published_ns: u64, hot_restart: Duration, wall_ns: u64) -> Result<Duration, Refusal> {
    let ahead = Duration::from_nanos(published_ns.saturating_sub(wall_ns));
    if ahead > AHEAD {
        return Err(Refusal::Future(ahead));
    }
    let age = Duration::from_nanos(wall_ns.saturating_sub(published_ns));
    if age >= hot_restart {
        return Err(Refusal::Old { age, hot_restart });
    }
    Ok(Duration::from_nanos(
        hot_restart.as_nanos() - age.as_nanos(),
    ))
}

fn try_load(
    application: &mut dyn Application,
    state: &[u8],
    progress: Progress,
) -> Result<(), String> {
    let envelope = Envelope::parse(state).map_err(|error| error.to_string())?;
    if envelope.progress != progress || envelope.output_count() != application.outputs() {
        return Err("what it says of itself is not what it holds".into());
    }
    let loaded = application.load(envelope.application);
    loaded.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
