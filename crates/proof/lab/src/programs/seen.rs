//! What the control centres saw of the substations.

use std::collections::BTreeSet;
use std::fmt::Write;

/// A question, an order or a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The substation.
    pub site: usize,
    /// When it was sent, nanoseconds of CLOCK_BOOTTIME.
    pub sent: u64,
    /// When it was answered, or a frame came; none if that never happened.
    pub done: Option<u64>,
}

/// What one centre saw by one protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Everything that was sent.
    pub exchanges: Vec<Exchange>,
    /// Values that substations reported by themselves: substation and when.
    pub reports: Vec<(usize, u64)>,
    /// Connections that came up or were gone: substation, when, which.
    pub connections: Vec<(usize, u64, bool)>,
    /// When the program crashed, and began again; the connections that it had then are among those that were gone at that instant.
    pub crashes: Vec<u64>,
    /// Lines that are none of the script's: what a program says for people.
    pub words: String,
}

/// Most bytes of words that are kept.
const WORDS_MAX: usize = 2_000;

impl Seen {
    /// What the script `grid.py` has written.
    pub fn read(text: &str) -> Self {
        let mut seen = Self::default();
        for line in text.lines() {
            if seen.line(line).is_none() && seen.words.len() < WORDS_MAX {
                let _ = writeln!(seen.words, "{line}");
            }
        }
        seen
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (kind, numbers) = line.split_once(' ')?;
        let numbers: Option<Vec<u64>> = numbers.split(' ').map(|it| it.parse().ok()).collect();
        match (kind, &numbers?[..]) {
            ("q", &[site, sent, done, ok @ (0 | 1)]) => self.exchanges.push(Exchange {
                site: site as usize,
                sent,
                done: (ok == 1).then_some(done),
            }),
            ("r", &[site, at]) => self.reports.push((site as usize, at)),
            ("s", &[site, at, up @ (0 | 1)]) => {
                self.connections.push((site as usize, at, up == 1));
            }
            ("x", &[at, _signal]) => {
                let gone = self.up().into_iter().map(|site| (site, at, false));
                self.connections.extend(gone.collect::<Vec<_>>());
                self.crashes.push(at);
            }
            _ => return None,
        }
        Some(())
    }

    /// The substations that are connected.
    fn up(&self) -> BTreeSet<usize> {
        let mut up = BTreeSet::new();
        for &(site, _, is_up) in &self.connections {
            match is_up {
                true => up.insert(site),
                false => up.remove(&site),
            };
        }
        up
    }

    /// How many substations of so many are connected.
    pub fn connected(&self, sites: usize) -> usize {
        self.up().range(..sites).count()
    }

    /// For each substation, when it was heard, in order.
    pub fn heard(&self, sites: usize) -> Vec<Vec<u64>> {
        let mut heard = vec![Vec::new(); sites];
        let answers = self.exchanges.iter();
        let answers = answers.filter_map(|it| Some((it.site, it.done?)));
        for (site, at) in answers.chain(self.reports.iter().copied()) {
            if let Some(times) = heard.get_mut(site) {
                times.push(at);
            }
        }
        heard.iter_mut().for_each(|times| times.sort_unstable());
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_script_are_read_and_words_are_kept_apart() {
        let text = "s 0 5 1\ns 1 6 1\nq 1 10 14 1\nq 0 11 15 0\nFailed to connect\nr 0 12\ns 1 20 0\nq 1 2\n";
        let seen = Seen::read(text);
        let exchange = |site, sent, done| Exchange { site, sent, done };
        assert_eq!(
            seen.exchanges,
            [exchange(1, 10, Some(14)), exchange(0, 11, None)]
        );
        assert_eq!(seen.connected(2), 1);
        assert_eq!(seen.heard(2), [vec![12], vec![14]]);
        assert_eq!(seen.words, "Failed to connect\nq 1 2\n");
    }

    #[test]
    fn a_crash_takes_the_connections_that_there_were() {
        let seen = Seen::read("s 0 5 1\ns 1 6 1\ns 1 7 0\nx 9 11\ns 1 12 1\n");
        assert_eq!(seen.crashes, [9]);
        let (up, gone) = (true, false);
        let all = [
            (0, 5, up),
            (1, 6, up),
            (1, 7, gone),
            (0, 9, gone),
            (1, 12, up),
        ];
        assert_eq!(seen.connections, all);
        assert_eq!((seen.connected(2), seen.connected(1)), (1, 0));
    }
}
