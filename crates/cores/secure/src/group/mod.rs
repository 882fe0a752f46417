//! Keys that a group of computers takes from a key server (`spec/security.md`, N-80 and further), in the manner of the
//! security key service of OPC UA (Part 14): each key is sealed with for a while, and opened with for longer.
//!
//! The server has an [`Issuer`], which makes keys and says when each is used. A member has a [`Schedule`], which it takes over
//! from what a server says, a [`Grant`]. A grant has durations alone, so that nobody's clock needs to show the right time.
//!
//! | module | owns |
//! |---|---|
//! | `key` | one key, and its place in the order of all |
//! | `grant` | what a server says, and when it is refused |
//! | `schedule` | which key seals and which open at a moment; taking over a grant |
//! | `issuer` | making keys in time, rolling them before their time |

mod grant;
mod issuer;
mod key;
mod schedule;

pub use grant::{Grant, GrantError, GrantedKey};
pub use issuer::{Issuer, Numbers, Terms};
pub use key::{GroupKey, Place};
pub use schedule::{Held, Schedule};

use bumpless_base::Duration;

/// Most keys that are given in advance.
pub const FUTURE_MAX: usize = 64;
/// Most keys of a grant: those in advance, the one that seals, and two of before that are opened with still.
pub const KEYS_MAX: usize = FUTURE_MAX + 3;

/// How long a key is opened with after it was sealed with, at most: as far as two members may be apart.
const OVERLAP_MAX: Duration = Duration::from_secs(30);
/// How long before it is sealed with a key is given that nobody expects.
const NOTICE: Duration = Duration::from_millis(500);
/// How long one is opened with still that such a key replaces.
const CUT_SHORT: Duration = Duration::from_millis(400);
/// How long keys that a server does not name any more are kept by who has them.
const WITHDRAWN_FOR: Duration = Duration::from_millis(1000);
/// The same, and the notice, where a server begins without the keys of before: members come one after the other.
const FRESH_NOTICE: Duration = Duration::from_secs(3);
