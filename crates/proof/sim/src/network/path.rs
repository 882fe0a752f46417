//! What one path does to datagrams at present: the sum of the faults on it.

use bumpless_base::Random;
use bumpless_wire::{Packet, parse};

use crate::readable::{before_message, message_in};
use crate::script::{Bursts, Class, Field, PathFault};

/// Bits that turn over in a share of a class.
#[derive(Clone, Copy, Debug)]
pub struct Bent {
    share: f64,
    class: Class,
    bit: Option<(Field, u8)>,
}

/// Most bits that turn over at once.
const MOST_BITS: u64 = 4;

impl Bent {
    /// Turns bits of a datagram over, if it is hit.
    pub fn bend(&self, random: &mut Random, bytes: &mut [u8]) {
        if bytes.is_empty() || !random.chance(self.share) || !is_of(self.class, bytes) {
            return;
        }
        if let Some((field, bit)) = self.bit {
            let last = before_message(bytes) + field.offset() + usize::from(field.bits() / 8) - 1;
            if let Some(byte) = bytes.get_mut(last - usize::from(bit / 8)) {
                *byte ^= 1 << (bit % 8);
            }
            return;
        }
        // Far apart or side by side, and none twice.
        let bits = bytes.len() as u64 * 8;
        let mut bit = random.below(bits);
        for _ in 0..=random.below(MOST_BITS) {
            bytes[bit as usize / 8] ^= 1 << (bit % 8);
            bit = (bit + 1 + random.below(bits / MOST_BITS)) % bits;
        }
    }
}

/// The present properties of one direction between two ends of one network.
#[derive(Clone, Debug)]
pub struct Path {
    /// Least time on the way, nanoseconds.
    pub base: u64,
    /// Added at random, at most.
    pub jitter: u64,
    /// Nothing passes.
    pub cut: bool,
    /// Nothing arrives before this.
    pub held: u64,
    /// Passes in the first half of each period.
    pub flap: Option<u64>,
    /// Losses by class.
    pub losses: Vec<(f64, Class)>,
    /// Losses that come in bursts.
    pub bursts: Option<Bursts>,
    /// A burst is on.
    pub in_burst: bool,
    /// Share that comes twice.
    pub duplicate: f64,
    /// Share that is overtaken, and by how much at most.
    pub reorder: (f64, u64),
    /// Share with turned bits.
    pub corrupt: f64,
    /// Turned bits that no checksum notices.
    pub bent: Vec<Bent>,
    /// What is longer is lost.
    pub mtu: usize,
    /// Share that loses its end.
    pub truncate: f64,
    /// Bit/s of the sender's interface; zero: as fast as you like.
    pub bandwidth: u64,
    /// Nothing is wrong with it but that it may be slow.
    pub sound: bool,
    /// When the last datagram that kept its order arrives.
    pub last_arrival: u64,
}

impl Path {
    /// A sound path.
    pub fn new(base: u64, jitter: u64, bandwidth: u64) -> Self {
        Self {
            base,
            jitter,
            cut: false,
            held: 0,
            flap: None,
            losses: Vec::new(),
            bursts: None,
            in_burst: false,
            duplicate: 0.0,
            reorder: (0.0, 0),
            corrupt: 0.0,
            bent: Vec::new(),
            mtu: usize::MAX,
            truncate: 0.0,
            bandwidth,
            sound: true,
            last_arrival: 0,
        }
    }

    /// Returns to the properties of `sound`; what is under way keeps its order.
    pub fn heal(&mut self, sound: &Self) {
        let (last_arrival, in_burst) = (self.last_arrival, self.in_burst);
        *self = sound.clone();
        (self.last_arrival, self.in_burst) = (last_arrival, in_burst);
    }

    /// Adds a fault that ends at `until`.
    pub fn suffer(&mut self, fault: &PathFault, until: u64) {
        self.sound &= matches!(fault, PathFault::Delay { .. } | PathFault::Bandwidth { .. });
        match *fault {
            PathFault::Cut => self.cut = true,
            PathFault::Hold => self.held = self.held.max(until),
            PathFault::Loss { share, class } => self.losses.push((share, class)),
            PathFault::Bursts(bursts) => self.bursts = Some(bursts),
            PathFault::Delay { by, jitter } => {
                self.base += by;
                self.jitter += jitter;
            }
            PathFault::Duplicate { share } => self.duplicate = self.duplicate.max(share),
            PathFault::Reorder { share, by } => {
                self.reorder = (self.reorder.0.max(share), self.reorder.1.max(by));
            }
            PathFault::Corrupt {
                share,
                unnoticed,
                class,
                bit,
            } => match (unnoticed, class) {
                (true, _) => self.bent.push(Bent { share, class, bit }),
                (false, Class::All) => self.corrupt = self.corrupt.max(share),
                // What a checksum finds is lost.
                (false, _) => self.losses.push((share, class)),
            },
            PathFault::Mtu { bytes } => self.mtu = self.mtu.min(bytes),
            PathFault::Truncate { share } => self.truncate = self.truncate.max(share),
            PathFault::Bandwidth { bits } => {
                self.bandwidth = match self.bandwidth {
                    0 => bits,
                    before => before.min(bits),
                };
            }
            PathFault::Flap { period } => self.flap = Some(period.max(2)),
        }
    }

    /// Whether nothing passes at `now`.
    pub fn is_cut(&self, now: u64) -> bool {
        self.cut || self.flap.is_some_and(|period| now % period >= period / 2)
    }
}

/// Whether `bytes` are of `class`.
pub fn is_of(class: Class, bytes: &[u8]) -> bool {
    if class == Class::All {
        return true;
    }
    match (parse(message_in(bytes)), class) {
        (Ok(Packet::Data { header, .. }), Class::First) => header.sequence == 0,
        (Ok(Packet::Data { header, payload }), Class::Last) => is_last(&header, payload),
        (Ok(Packet::Data { header, payload }), Class::Middle) => {
            header.sequence != 0 && !is_last(&header, payload)
        }
        (Ok(Packet::Ack(_)), Class::Acknowledgements)
        | (Ok(Packet::Heartbeat(_)), Class::Heartbeats)
        | (Ok(Packet::WitnessRequest(_) | Packet::WitnessReply(_)), Class::Witness) => true,
        _ => false,
    }
}

/// All packets but the last are equally long, so the last is the one that reaches the end.
fn is_last(header: &bumpless_wire::DataHeader, payload: &[u8]) -> bool {
    let total = u64::from(header.total_size);
    let len = payload.len() as u64;
    let before = total.saturating_sub(len);
    let sequence = u64::from(header.sequence);
    sequence == 0 && len == total
        || sequence > 0 && before.is_multiple_of(sequence) && {
            let each = before / sequence;
            each >= len && each > 0
        }
}

#[cfg(test)]
mod tests {
    use bumpless_base::{Epoch, LinkId, NodeId};
    use bumpless_wire::{
        GroupEntry, GroupFlags, HeartbeatHeader, MAX_HEARTBEAT_LEN, Role, encode_heartbeat,
    };

    use super::*;

    /// A heartbeat with one group entry.
    fn heartbeat(sent_at: u64, lease_echo: u64, epoch: u32) -> Vec<u8> {
        let header = HeartbeatHeader {
            pair: 1,
            fingerprint: 2,
            from: NodeId(0),
            to: NodeId(1),
            link: LinkId(0),
            session: 3,
            challenge: 4,
            echo_session: 5,
            echo_challenge: 6,
            sent_at,
            echo_sent_at: 8,
            echo_delay: 9,
            lease_echo,
            next: 0,
            full_echo: 0,
            padded: false,
        };
        let entry = GroupEntry {
            group: 0,
            role: Role::Primary,
            epoch: Epoch(epoch),
            flags: GroupFlags::EMPTY,
            reference: 0,
            reference_version: 0,
            used: Epoch(0),
            token: 0,
        };
        let mut bytes = [0; MAX_HEARTBEAT_LEN];
        let len = encode_heartbeat(&header, [entry], &mut bytes);
        bytes[..len].to_vec()
    }

    #[test]
    fn a_turned_bit_of_a_field_makes_it_another_value_and_leaves_the_rest() {
        let plain = heartbeat(7, 10, 2);
        for (field, bit, turned) in [
            (Field::SentAt, 0, heartbeat(6, 10, 2)),
            (Field::SentAt, 61, heartbeat(7 | 1 << 61, 10, 2)),
            (Field::LeaseEcho, 9, heartbeat(7, 10 | 1 << 9, 2)),
            (Field::Epoch, 31, heartbeat(7, 10, 2 | 1 << 31)),
        ] {
            let bent = Bent {
                share: 1.0,
                class: Class::Heartbeats,
                bit: Some((field, bit)),
            };
            let mut bytes = plain.clone();
            bent.bend(&mut Random::new(1), &mut bytes);
            // The checksum stays what it was.
            let mut turned = turned;
            turned[97..101].copy_from_slice(&plain[97..101]);
            assert_eq!(bytes, turned, "{field:?} {bit}");
        }
    }

    #[test]
    fn one_to_four_bits_of_the_class_that_is_meant_turn_over() {
        let bent = |class| Bent {
            share: 1.0,
            class,
            bit: None,
        };
        let mut random = Random::new(1);
        let plain = heartbeat(7, 10, 2);
        for _ in 0..1000 {
            let mut bytes = plain.clone();
            bent(Class::Witness).bend(&mut random, &mut bytes);
            assert_eq!(bytes, plain);
            bent(Class::Heartbeats).bend(&mut random, &mut bytes);
            let turned = bytes.iter().zip(&plain).map(|(a, b)| (a ^ b).count_ones());
            assert!((1..=4).contains(&turned.sum::<u32>()));
        }
    }
}
