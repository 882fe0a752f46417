//! Who is set against whom: each carries the same stream between the same hosts.

mod iprp;
mod mptcp;
mod program;
mod prp;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::TortureOptions;
use super::known::{Contestant, Failure, Row, Trouble};
use crate::iprp::LabError;

/// Between two looks at whether it was told to stop.
const LOOK: Duration = Duration::from_millis(10);

/// Those that run in namespaces of this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Iprp,
    Srt,
    Knet,
    Mptcp,
}

/// In the table's order.
pub const WHO: [Who; 4] = [Who::Iprp, Who::Srt, Who::Knet, Who::Mptcp];

impl Who {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iprp => "iPRP",
            Self::Srt => "SRT, broadcast group",
            Self::Knet => "kronosnet, active links",
            Self::Mptcp => "MPTCP v1, two subflows",
        }
    }

    /// What becomes of the stream; the inner error says why it cannot be had here.
    ///
    /// # Errors
    /// The machine does not permit it, or it was told to stop.
    pub fn attempt(
        self,
        options: &TortureOptions,
        trouble: Trouble,
    ) -> Result<Result<Contestant, String>, LabError> {
        match self {
            Self::Iprp => match iprp::attempt(options, trouble) {
                Ok(it) => Ok(Ok(it)),
                Err(LabError::Stopped) => Err(LabError::Stopped),
                // It is here, so that is a failure and no absence.
                Err(LabError::Impossible(why)) => Ok(Ok(Contestant {
                    name: self.name().into(),
                    note: why,
                    ..Contestant::default()
                })),
            },
            Self::Srt => or_absent(program::attempt(
                (self.name(), program::SRT),
                options,
                trouble,
            )),
            Self::Knet => or_absent(program::attempt(
                (self.name(), program::KNET),
                options,
                trouble,
            )),
            Self::Mptcp => or_absent(mptcp::attempt(options, trouble)),
        }
    }
}

/// What one of the others cannot do here is no reason to end everything.
fn or_absent(
    seen: Result<Result<Contestant, String>, LabError>,
) -> Result<Result<Contestant, String>, LabError> {
    match seen {
        Err(LabError::Impossible(why)) => Ok(Err(why)),
        other => other,
    }
}

/// Runs the rows whose names are wanted, and adds them to `done`.
///
/// # Errors
/// It was told to stop.
pub fn run(
    options: &TortureOptions,
    rows: &[Failure],
    done: &mut Vec<Row>,
    mut tell: impl FnMut(String),
) -> Result<(), LabError> {
    let prp = prp::linux_prp(options, rows, &mut tell)?;
    for row in rows {
        let mut it = Row::of(row);
        for who in WHO {
            tell(format!("{}: {}", row.id, who.name()));
            it.take(who.name(), who.attempt(options, row.trouble)?);
        }
        it.take("Linux PRP", prp.of(row.id));
        done.push(it);
    }
    Ok(())
}

/// Lets time pass until `stop`.
fn sleep(time: Duration, stop: &Arc<AtomicBool>) -> Result<(), LabError> {
    let until = Instant::now() + time;
    loop {
        if stop.load(Ordering::Acquire) {
            return Err(LabError::Stopped);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(LOOK));
    }
}
