//! How long states were under way.

/// Recent cycles whose transits are known; of two that share a place, the later.
const CYCLES: usize = 1024;

/// The quickest packet of one cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Transit {
    channel: u16,
    session: u32,
    cycle: u32,
    took: u64,
}

/// How long the quickest packet of each recent cycle was under way until the data plane took it,
/// nanoseconds of true time.
#[derive(Debug)]
pub struct Transits(Box<[Transit]>);

impl Default for Transits {
    fn default() -> Self {
        Self(vec![Transit::default(); CYCLES].into())
    }
}

impl Transits {
    fn place(channel: u16, cycle: u32) -> usize {
        let spread = u32::from(channel).wrapping_mul(0x9e37_79b1) >> 16;
        (spread.wrapping_add(cycle) as usize) % CYCLES
    }

    /// A packet of this cycle was under way for `took`.
    pub fn note(&mut self, channel: u16, session: u32, cycle: u32, took: u64) {
        let known = &mut self.0[Self::place(channel, cycle)];
        if (known.channel, known.session, known.cycle) == (channel, session, cycle) {
            known.took = known.took.min(took);
        } else {
            *known = Transit {
                channel,
                session,
                cycle,
                took,
            };
        }
    }

    /// Of whatever session: one may end in the turn in which its last state became whole.
    pub fn of(&self, channel: u16, cycle: u32) -> Option<u64> {
        let known = &self.0[Self::place(channel, cycle)];
        ((known.channel, known.cycle) == (channel, cycle)).then_some(known.took)
    }
}
