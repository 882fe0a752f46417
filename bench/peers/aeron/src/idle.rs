//! What an agent does while there is nothing to do: Aeron's backoff strategy, with the values that Agrona
//! and Aeron have by default, or for the tuned form with short parks.

use std::thread;
use std::time::Duration;

const SPINS: u32 = 10;
const YIELDS: u32 = 20;
const FIRST_PARK: Duration = Duration::from_micros(1);
const LONGEST_PARK: Duration = Duration::from_millis(1);
const TUNED_LONGEST_PARK: Duration = Duration::from_micros(20);

/// An idle strategy and where it stands.
pub struct Idle {
    longest: Duration,
    turns: u32,
    park: Duration,
}

impl Idle {
    /// The strategy of a form.
    pub fn new(tuned: bool) -> Self {
        Self {
            longest: if tuned {
                TUNED_LONGEST_PARK
            } else {
                LONGEST_PARK
            },
            turns: 0,
            park: FIRST_PARK,
        }
    }

    /// After a turn of the agent: begins anew if it did something, and waits otherwise.
    pub fn idle(&mut self, worked: bool) {
        if worked {
            self.turns = 0;
            self.park = FIRST_PARK;
            return;
        }
        self.turns = self.turns.saturating_add(1);
        if self.turns <= SPINS {
            std::hint::spin_loop();
        } else if self.turns <= SPINS + YIELDS {
            thread::yield_now();
        } else {
            thread::park_timeout(self.park);
            self.park = (self.park * 2).min(self.longest);
        }
    }
}
