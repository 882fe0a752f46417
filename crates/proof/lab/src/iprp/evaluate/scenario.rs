//! The six scenarios of the paper's table II, and its figures.

use crate::iprp::relay::{Burst, Delay, Fault, Loss};

const MS: u64 = 1_000_000;
/// Z: none.
const Z: Delay = Delay {
    least_ns: 0,
    spread_ns: 0,
};
/// S: uniform, 10 ms ± 5 ms.
const S: Delay = Delay {
    least_ns: 5 * MS,
    spread_ns: 10 * MS,
};
/// L: uniform, 1 s ± 0.2 s.
const L: Delay = Delay {
    least_ns: 800 * MS,
    spread_ns: 400 * MS,
};
/// IL: 5 % independent.
const IL: Loss = Loss::Independent(0.05);
/// BL: 5 % bursty, p = 0.01, r = 0.19, 1 - k = 0.01, 1 - h = 0.81.
const BL: Loss = Loss::Bursty(Burst {
    to_bad: 0.01,
    to_good: 0.19,
    in_good: 0.01,
    in_bad: 0.81,
});

/// A row of table II, with that of table III.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Its number in the paper.
    pub number: usize,
    /// What is wrong with each network, as the paper writes it.
    pub networks: &'static [(&'static str, Delay, Loss)],
    /// The paper's losses, per cent: of each network, with iPRP, in theory.
    pub paper: (&'static [f64], f64, f64),
}

impl Scenario {
    /// What the networks do.
    pub fn faults(&self) -> Vec<Fault> {
        let networks = self.networks.iter();
        networks
            .map(|&(_, delay, loss)| Fault {
                delay,
                loss,
                ..Fault::default()
            })
            .collect()
    }

    /// The longest that a copy is on its way, nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        let delays = self.networks.iter();
        let delays = delays.map(|(_, delay, _)| delay.least_ns + delay.spread_ns);
        delays.max().unwrap_or(0)
    }
}

/// All of them.
pub const ALL: [Scenario; 6] = [
    Scenario {
        number: 0,
        networks: &[("S:IL", S, IL), ("S:IL", S, IL), ("S:IL", S, IL)],
        paper: (&[5.061, 4.913, 5.1537], 0.0126, 0.0128),
    },
    Scenario {
        number: 1,
        networks: &[("Z:IL", Z, IL), ("S:IL", S, IL)],
        paper: (&[5.057, 5.002], 0.253, 0.254),
    },
    Scenario {
        number: 2,
        networks: &[("Z:BL", Z, BL), ("S:BL", S, BL)],
        paper: (&[5.132, 5.059], 0.259, 0.254),
    },
    Scenario {
        number: 3,
        networks: &[("Z:IL", Z, IL), ("L:IL", L, IL)],
        paper: (&[5.014, 5.013], 0.251, 0.249),
    },
    Scenario {
        number: 4,
        networks: &[("Z:BL", Z, BL), ("L:BL", L, BL)],
        paper: (&[5.022, 4.981], 0.247, 0.249),
    },
    Scenario {
        number: 5,
        networks: &[("S:IL", S, IL), ("S:IL", S, IL)],
        paper: (&[5.051, 5.002], 0.251, 0.253),
    },
];

/// Per cent of a processor that both daemons take: the sender's, the receiver's.
pub type Share = (f64, f64);

/// A row of table IV.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Sessions.
    pub sessions: usize,
    /// With 1,000 packets a second in all.
    pub together: Share,
    /// With 10 packets a second for each session.
    pub each: Share,
}

const fn row(sessions: usize, together: Share, each: Share) -> Row {
    Row {
        sessions,
        together,
        each,
    }
}

/// The paper's table IV.
pub const PAPER_COST: [Row; 6] = [
    row(0, (3.7, 0.9), (3.7, 0.9)),
    row(1, (14.5, 11.8), (4.5, 2.2)),
    row(2, (14.1, 11.9), (5.6, 2.4)),
    row(4, (15.0, 11.3), (5.7, 2.3)),
    row(10, (15.0, 12.0), (7.3, 3.2)),
    row(20, (15.0, 12.0), (10.0, 5.2)),
];
