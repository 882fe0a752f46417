//! Which packets and acknowledgements fall: of each state at most its budget, where it hurts.

use bumpless_base::Random;
use bumpless_plan::{Distribution, Scenario};
use bumpless_wire::{Ack, DataHeader, packet_count};

/// Where a state is hit. Each goes on until the budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Nowhere.
    Nothing,
    /// The first packets.
    First,
    /// The last packet, and whatever repeats it.
    Last,
    /// The last packets, each once.
    Tail,
    /// One packet in the middle, and whatever repeats it.
    One,
    /// Packets here and there.
    Scattered,
    /// Acknowledgements that say that all is there.
    Answers,
}

impl Pattern {
    /// All that lose something.
    pub const ALL: [Self; 6] = [
        Self::First,
        Self::Last,
        Self::Tail,
        Self::One,
        Self::Scattered,
        Self::Answers,
    ];
}

/// How channels are hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Each channel always in its way.
    ByChannel(Vec<Pattern>),
    /// Each state in a way of its own.
    Drawn,
}

/// One channel's open state.
#[derive(Clone, Copy, Debug)]
struct Open {
    cycle: u32,
    pattern: Pattern,
    /// Losses so far, by network; of a state whose packets share the networks, all in the first place.
    lost: [u32; 2],
}

/// What falls.
#[derive(Debug)]
pub struct Losses {
    plan: Plan,
    budgets: Vec<u32>,
    shared: Vec<bool>,
    payload: u16,
    open: Vec<Open>,
    random: Random,
}

impl Losses {
    /// On the channels of `scenario`.
    pub fn new(scenario: &Scenario, plan: Plan, random: Random) -> Self {
        let channels = &scenario.channels;
        let none = Open {
            cycle: 0,
            pattern: Pattern::Nothing,
            lost: [0; 2],
        };
        Self {
            plan,
            budgets: channels.iter().map(|channel| channel.budget).collect(),
            shared: channels
                .iter()
                .map(|channel| channel.distribution == Distribution::Spread)
                .collect(),
            payload: scenario.packets.payload as u16,
            open: vec![none; channels.len()],
            random,
        }
    }

    /// Whether a packet falls on `link`.
    pub fn packet(&mut self, link: usize, header: &DataHeader) -> bool {
        let channel = usize::from(header.channel.get()) - 1;
        let pattern = self.pattern(channel, header.cycle);
        let packets = packet_count(header.total_size, self.payload);
        let (sequence, budget) = (header.sequence, self.budgets[channel]);
        let hit = match pattern {
            Pattern::Nothing | Pattern::Answers => false,
            Pattern::First => true,
            Pattern::Last => sequence + 1 == packets,
            Pattern::Tail => !header.retransmission && sequence + budget >= packets,
            Pattern::One => sequence == packets / 2,
            Pattern::Scattered => self.random.below(3) == 0,
        };
        hit && self.take(channel, link)
    }

    /// Whether an acknowledgement falls on `link`.
    pub fn answer(&mut self, link: usize, ack: &Ack<'_>, packets: u32) -> bool {
        let channel = usize::from(ack.channel.get()) - 1;
        if self.open[channel].cycle != ack.cycle {
            // Of the state before: nobody waits for it.
            return false;
        }
        let hit = match self.pattern(channel, ack.cycle) {
            Pattern::Answers => ack.received == Some(packets),
            Pattern::Scattered => self.random.below(6) == 0,
            _ => false,
        };
        hit && self.take(channel, link)
    }

    fn pattern(&mut self, channel: usize, cycle: u32) -> Pattern {
        if self.open[channel].cycle != cycle {
            let pattern = match &self.plan {
                Plan::ByChannel(patterns) => patterns[channel],
                Plan::Drawn => Pattern::ALL[self.random.below(Pattern::ALL.len() as u64) as usize],
            };
            self.open[channel] = Open {
                cycle,
                pattern,
                lost: [0; 2],
            };
        }
        self.open[channel].pattern
    }

    /// Takes one loss from the budget, if it has one left.
    fn take(&mut self, channel: usize, link: usize) -> bool {
        let place = if self.shared[channel] { 0 } else { link };
        let lost = &mut self.open[channel].lost[place];
        let left = *lost < self.budgets[channel];
        *lost += u32::from(left);
        left
    }
}
