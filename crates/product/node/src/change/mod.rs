//! Changing the applications of a running pair (spec/apply.md).
//!
//! | file | owns |
//! |---|---|
//! | `changer` | the order of the steps, without I/O: daemon and simulator run it |
//! | `jobs` | what is left to do, and the step that each of it takes |
//! | `places` | which application has which place |
//! | `prepared` | everything that a change needs, made before it is announced |
//! | `store` | the configuration's file, and the one beside it |
//! | `thread` | taking the steps in a daemon |

pub mod changer;
mod jobs;
mod places;
mod prepared;
pub mod store;
mod thread;

pub use changer::{Changer, Step};
pub use places::{MemberSlot, Places};
pub use prepared::Newcomer;
pub use thread::{ChangeRequest, RunningChanges, Tools};
