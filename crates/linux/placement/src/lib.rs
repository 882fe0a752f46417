//! Where on a computer an interface's packets are worked off, and how many of them wait (spec/reception.md, V-95 and further).
//!
//! An interface interrupts processors; the kernel works packets off there, or in threads that belong to the interface (threaded NAPI),
//! or hands them on to other processors (RPS). Who shares a processor with that is delayed by it, and a thread of a higher priority delays
//! it in turn. This crate says how it is, what is to be said against it, and changes it for as long as somebody holds the change.
//!
//! | module | owns |
//! |---|---|
//! | `tree` | the kernel's files on interfaces and interrupts |
//! | `device` | what the kernel says of an interface at a socket: its ring, its hardware address |
//! | `survey` | how it is |
//! | `advice` | what is to be said against it |
//! | `setting` | one thing that can be changed: how it is read and written |
//! | `record` | what there was before, for whoever has to put it back |
//! | `held` | changes that last for as long as they are held |

mod advice;
mod device;
mod held;
mod record;
mod setting;
mod survey;
mod thread;
mod tree;

pub use advice::{Advice, Surroundings, Topic, advice};
pub use device::Ring;
pub use held::{FOLDER, Placement, Restored, Wanted, is_left, restore};
pub use survey::{Found, Interrupt, Place, has_irqbalance, online, survey};
pub use thread::Thread;
pub use tree::Tree;
