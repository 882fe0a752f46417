//! What goes wrong in a world and when: drawn by the seed, or written by hand.

mod assumptions;
mod attack;
mod entry;
mod fault;
mod forms;
mod kinds;
mod outages;
mod overlap;
mod places;
mod scenario;
mod storm;

pub use self::assumptions::{borne, broken_assumptions};
pub use self::attack::attack_now_and_then;
pub use self::fault::{
    Aim, Bursts, Class, End, Fault, Field, Junk, Lie, PathFault, Paths, Timed, Wrong,
};
pub use self::kinds::words;
pub use self::scenario::{Complaint, Scenario};
pub use self::storm::{change_now_and_then, flood_now_and_then, storm};
