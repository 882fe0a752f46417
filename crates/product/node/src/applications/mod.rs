//! The application threads: building each from the configuration, running and tuning it, telling the log.

mod follow_up;
mod thread;
mod together;
mod tuning;

pub use follow_up::{FollowUp, Reporter};
pub use thread::ApplicationThread;
pub use together::{Participant, Together};
pub use tuning::{Tuning, TuningSlots};
