//! The application threads: building each from the configuration, running and tuning it, telling the log.

mod follow_up;
mod thread;
mod tuning;

pub use follow_up::{FollowUp, Reporter};
pub use thread::ApplicationThread;
pub use tuning::{Tuning, TuningSlots};
