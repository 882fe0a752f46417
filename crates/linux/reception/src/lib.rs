//! Reception under load on Linux: frames are classified and budgeted at the driver, before the kernel makes buffers of them.
//!
//! `spec/reception.md` has the clauses (V-50 and further). The setup is that of `bumpless_guard`, and so is the answer to every frame: the
//! core is the slow twin with which the program is compared. What Linux has instead of the core's queues and its overall budget are
//! sockets with their buffers and priorities, and NAPI, which polls under load by itself.
//!
//! | module | owns |
//! |---|---|
//! | `layout` | what program and process share, from the setup of a guard |
//! | `program` | the program at the driver |
//! | `filter` | a program with its maps, for one interface |
//! | `named` | flows with names and budgets for the rest, as a setup |
//! | `occupant` | whether an interface is of Ethernet, and who else has a program on it |
//! | `rights` | what the kernel permits, and how more is granted |
//! | `reception` | filters on a host's interfaces for as long as the process lives |

mod filter;
mod layout;
mod named;
mod occupant;
mod program;
mod reception;
mod rights;

pub use bumpless_bpf::{Link, Mode};
pub use bumpless_net_linux::capabilities::Missing;
pub use filter::{Counts, Filter, LoadError};
pub use layout::{CAPACITY_MAX, PERIOD_MIN};
pub use named::{NamedFlow, Rest, in_words, name_of_rest, rates, setup, terms_of};
pub use occupant::Occupant;
pub use reception::{AttachError, InterfaceReport, Reception, StartError, Wanted, survey};
pub use rights::{missing, remedy};
