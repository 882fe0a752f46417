//! The application threads: building each from the configuration, running and tuning it, telling the log.

mod counter_board;
mod follow_up;
mod from_configuration;
mod thread;
mod tuning;

pub use counter_board::CounterBoard;
pub use follow_up::{FollowUp, Reporter};
pub use from_configuration::{build, executor_settings};
pub use thread::ApplicationThread;
pub use tuning::{Tuning, TuningSlots};
