//! Changing the applications of a running pair (spec/apply.md).
//!
//! | file | owns |
//! |---|---|
//! | `changer` | the order of the steps, without I/O: daemon and simulator run it |
//! | `job` | what can be left to do, and the steps |
//! | `places` | which application has which place |
//! | `prepared` | everything that a change needs, made before it is announced |
//! | `proposals` | changes for which the partner asks |
//! | `request` | what a node is asked for |
//! | `store` | the configuration's file, and the one beside it |
//! | `thread` | taking the steps in a daemon |
//! | `tools` | what that thread works with |
//! | `unmade` | settings that applications did not take, which are tried again |

pub mod changer;
mod job;
mod places;
mod prepared;
mod proposals;
mod request;
pub mod store;
mod thread;
mod tools;
mod unmade;

pub use changer::Changer;
pub use job::Step;
pub use places::Places;
pub use prepared::{Newcomer, changes_together};
pub use proposals::Proposals;
pub use request::ChangeRequest;
pub use thread::RunningChanges;
pub use tools::Tools;
