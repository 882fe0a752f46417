//! What can be wrong with a network, and for how long.

/// Networks that there are.
pub const NETWORKS: usize = 2;
/// Ports of each: the nodes by their position, then the witness.
pub const PORTS: usize = 3;
/// The witness's port.
pub const WITNESS: usize = 2;

/// Ways on which nothing passes, as pairs of ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut([[bool; PORTS]; PORTS]);

impl Cut {
    /// Every way.
    pub fn all() -> Self {
        Self([[true; PORTS]; PORTS])
    }

    /// What `port` sends.
    pub fn from(port: usize) -> Self {
        let mut cut = Self::default();
        cut.0[port] = [true; PORTS];
        cut
    }

    /// What is sent to `port`.
    pub fn to(port: usize) -> Self {
        let mut cut = Self::default();
        cut.0.iter_mut().for_each(|row| row[port] = true);
        cut
    }

    /// One way only.
    pub fn one_way(from: usize, to: usize) -> Self {
        let mut cut = Self::default();
        cut.0[from][to] = true;
        cut
    }

    /// Both ways between two ports.
    pub fn between(one: usize, other: usize) -> Self {
        let mut cut = Self::one_way(one, other);
        cut.0[other][one] = true;
        cut
    }

    /// Whether nothing passes from one port to the other.
    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.0[from][to]
    }
}

/// What befalls each frame. The default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Ways on which nothing passes.
    pub cut: Cut,
    /// Longest IP packet that passes, in bytes; longer ones vanish without a word.
    pub longest: Option<u16>,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that one bit of a datagram is inverted, with a right checksum.
    pub corruption: f64,
    /// Probability that a frame comes twice.
    pub duplication: f64,
    /// Probability that a frame waits until others have overtaken it.
    pub reordering: f64,
    /// How long each frame is on its way, in nanoseconds.
    pub delay_ns: u64,
}

/// Faults on some networks for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// On which networks.
    pub networks: [bool; NETWORKS],
    /// When it begins (nanoseconds of CLOCK_BOOTTIME).
    pub from_ns: u64,
    /// When it is over, whatever becomes of whoever ordered it.
    pub to_ns: u64,
    /// How long the faults come and go within it; `None`: they stay.
    pub flapping: Option<Flapping>,
    /// What is wrong meanwhile.
    pub faults: Faults,
}

/// Faults that come and go; they are there first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flapping {
    /// How long they are there each time, in nanoseconds.
    pub there_ns: u64,
    /// How long they are gone.
    pub gone_ns: u64,
}

impl Episode {
    /// Whether the faults are there.
    pub fn is_active(&self, network: usize, now_ns: u64) -> bool {
        let within = self.networks[network] && (self.from_ns..self.to_ns).contains(&now_ns);
        within
            && self.flapping.is_none_or(|flapping| {
                (now_ns - self.from_ns) % (flapping.there_ns + flapping.gone_ns) < flapping.there_ns
            })
    }

    /// The longest time in a row within `from_ns..to_ns` in which the faults are not there.
    pub fn longest_without(&self, from_ns: u64, to_ns: u64) -> u64 {
        const STEP_NS: u64 = 100_000;
        let (mut longest, mut run) = (0, 0);
        for at in (from_ns..to_ns).step_by(STEP_NS as usize) {
            let active = (0..NETWORKS).all(|network| self.is_active(network, at));
            run = if active { 0 } else { run + STEP_NS };
            longest = longest.max(run);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn flapping() -> Episode {
        Episode {
            networks: [true; 2],
            from_ns: 1_000 * MS,
            to_ns: 2_000 * MS,
            flapping: Some(Flapping {
                there_ns: 15 * MS,
                gone_ns: 15 * MS,
            }),
            faults: Faults::default(),
        }
    }

    #[test]
    fn flapping_faults_come_first_and_go_and_end_in_time() {
        let active = |ms: u64| flapping().is_active(0, ms * MS);
        assert_eq!([999, 1_000, 1_014].map(active), [false, true, true]);
        assert_eq!([1_015, 1_029, 1_030].map(active), [false, false, true]);
        assert_eq!([1_994, 2_000, 2_001].map(active), [true, false, false]);
    }

    #[test]
    fn a_path_is_up_for_as_long_as_one_network_has_no_fault() {
        let up = |episode: Episode, from: u64| episode.longest_without(from * MS, (from + 10) * MS);
        assert_eq!(up(flapping(), 1_000), 0);
        assert_eq!(up(flapping(), 1_010), 5 * MS);
        assert_eq!(up(flapping(), 1_017), 10 * MS);
        let one = Episode {
            networks: [true, false],
            ..flapping()
        };
        assert_eq!(up(one, 1_000), 10 * MS);
    }

    #[test]
    fn a_cut_takes_the_ways_it_names_and_no_other() {
        let ways = |cut: Cut| {
            let all = (0..PORTS).flat_map(|from| (0..PORTS).map(move |to| (from, to)));
            all.filter(|&(from, to)| from != to && cut.is_cut(from, to))
                .collect::<Vec<_>>()
        };
        assert_eq!(ways(Cut::from(0)), [(0, 1), (0, 2)]);
        assert_eq!(ways(Cut::to(0)), [(1, 0), (2, 0)]);
        assert_eq!(ways(Cut::between(1, WITNESS)), [(1, 2), (2, 1)]);
        assert_eq!(ways(Cut::one_way(1, 0)), [(1, 0)]);
        assert_eq!(ways(Cut::all()).len(), 6);
    }
}
