//! Faults drawn from the seed.

use super::{End, MS, World};

impl World {
    /// Runs for `span` under random faults, then ends all of them.
    pub fn storm(&mut self, span: u64) {
        let end = self.now + span;
        while self.now < end {
            self.fault();
            let pause = MS + self.random.below(60 * MS);
            self.run_for(pause);
        }
        self.calm();
    }

    /// Ends every fault.
    pub fn calm(&mut self) {
        self.cuts.clear();
        (self.loss, self.duplicates, self.delay) = (0.0, 0.0, (50_000, 150_000));
        self.transfer_loss = 0.0;
        for reference in 0..self.witnesses.len() {
            if self.witnesses[reference].is_none() {
                self.start_witness(reference);
            }
        }
        for node in 0..2 {
            if self.nodes[node].core.is_none() {
                self.start(node);
            } else if self.nodes[node].paused {
                self.resume(node);
            }
        }
    }

    fn fault(&mut self) {
        let node = self.random.below(2) as End;
        match self.random.below(15) {
            0 => self.random_cut(false),
            1 => self.random_cut(true),
            2 => self.split(),
            3..=5 => self.cuts.clear(),
            6 => self.loss = [0.0, 0.05, 0.3, 0.7][self.random.below(4) as usize],
            7 => {
                let most = [5, 30, 300][self.random.below(3) as usize] * MS;
                let span = self.random.below(1 + most);
                self.pause(node, span);
            }
            8 if self.nodes[node].core.is_some() => self.kill(node),
            8 | 9 => {
                if !self.nodes[node].paused {
                    self.kill(node);
                    self.start(node);
                }
            }
            10 => self.random_witness(),
            11 => {
                if self.nodes[node].core.is_some() && !self.nodes[node].paused {
                    let _ = self.command_switchover(node);
                }
            }
            13 => self.transfer_loss = [0.0, 0.3, 0.9][self.random.below(3) as usize],
            12 => {
                let high = [150_000, 2 * MS, 8 * MS, 40 * MS][self.random.below(4) as usize];
                self.delay = (50_000, high);
            }
            _ => {
                self.duplicates = [0.0, 0.2][self.random.below(2) as usize];
                for node in 0..2 {
                    if self.nodes[node].core.is_none() {
                        self.start(node);
                    }
                }
            }
        }
    }

    /// One network, one pair of ends; in one direction or both.
    fn random_cut(&mut self, both: bool) {
        let link = self.random.below(self.plan.links.into()) as u8;
        let from = self.random.below(2) as End;
        let to = match self.random.below(2) {
            0 => 1 - from,
            _ => 2 + usize::from(link),
        };
        self.cuts.insert((from, to, link));
        if both || self.random.chance(0.5) {
            self.cuts.insert((to, from, link));
        }
    }

    fn random_witness(&mut self) {
        if self.witnesses.is_empty() {
            return;
        }
        let reference = self.random.below(self.witnesses.len() as u64) as usize;
        if self.witnesses[reference].is_some() && self.random.chance(0.6) {
            self.witnesses[reference] = None;
        } else {
            self.start_witness(reference);
        }
    }
}
