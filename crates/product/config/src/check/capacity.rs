//! What states need against what packets, networks and memory give.
//!
//! These are necessary conditions by simple sums. Whether every deadline is met with its
//! retransmissions, interference and blocking is the planner's question.

use bumpless_base::{LinkSet, NodeId, Unsent, frame};
use bumpless_transfer::BUFFERS_PER_SIDE;

use super::addresses::Map;
use super::draft::Draft;
use super::timing::ms;
use super::{Room, groups, link, node};
use crate::file::File;
use crate::model::ENVELOPE_MAX;
use crate::model::{ApplicationKind, Distribution, IpVersion, Transfer, WireVersion};
use crate::reader::Reader;

/// Buffers of one state in the application.
const BUFFERS_OF_APPLICATION: u128 = 2;

/// Buffers of one state on its way to the disk: two between the executor and the thread that writes, and the file.
const BUFFERS_TO_DISK: u128 = 3;

/// Buffers of one state in which it is opened.
const BUFFERS_TO_OPEN: u128 = 1;

/// What an application has buffers for besides those that all have.
#[derive(Clone, Copy)]
pub(crate) struct Kinds {
    /// Its state is written to the disk.
    pub(crate) persist: bool,
    /// It is a program of a user, of which one state is kept to go back to.
    pub(crate) program: bool,
    /// Its states are sealed by themselves, and opened before they are read.
    pub(crate) sealed: bool,
    /// What becomes of its states that wait.
    pub(crate) unsent: Unsent,
}

/// Bytes of state buffers that a process can have at all; `None`: more than any `memory_max`. The kernel leaves it 2 to 4 GiB of
/// its 32-bit addresses, and program, stacks and what is not one piece take theirs.
pub(crate) const ADDRESSABLE: Option<u64> = if cfg!(target_pointer_width = "32") {
    Some(1 << 31)
} else {
    None
};

/// Bytes of all buffers on one node for states of `size` bytes that it exchanges with the other of so many
/// `candidates`, with what its `kinds` of buffers add.
pub(crate) fn buffers(size: u32, candidates: usize, kinds: Kinds) -> u128 {
    let partners = candidates.saturating_sub(1) as u128;
    let to_disk = BUFFERS_TO_DISK * u128::from(kinds.persist);
    let to_open = BUFFERS_TO_OPEN * u128::from(kinds.sealed);
    let of_application = BUFFERS_OF_APPLICATION + to_disk + to_open + u128::from(kinds.program);
    // To send it and to receive it.
    let per_partner = u128::from(kinds.unsent.buffers() + BUFFERS_PER_SIDE);
    u128::from(size) * (per_partner * partners + of_application)
}

/// What the sums need of one network.
#[derive(Clone, Copy)]
struct Path {
    /// Bit/s; zero: not paced.
    bandwidth: u128,
    /// Bytes per packet beyond the payload of the data packet.
    overhead: u128,
}

struct Capacity<'a> {
    version: WireVersion,
    payload: u128,
    paths: Vec<Option<Path>>,
    drafts: &'a [Draft],
    groups: &'a [groups::Draft],
}

pub(crate) fn check(
    reader: &mut Reader,
    file: &File,
    drafts: &[Draft],
    groups: &[groups::Draft],
    (map, protection): (&Map, Option<u16>),
    room: Room,
) -> Option<Transfer> {
    let given = &file.transfer;
    memory(reader, file, drafts, groups);
    let version = given.wire_version?;
    let headers = version.header_len() + protection?;
    let payload = payload_size(file, drafts, map, headers)?;
    let paths = (0..file.networks.len()).map(|i| {
        let ip = (*map.versions.get(i)?)?;
        let overhead = u64::from(headers + ip.frame_overhead());
        let bandwidth = file.networks[i].bandwidth?;
        Some(Path {
            bandwidth: bandwidth.into(),
            overhead: overhead.into(),
        })
    });
    let paths = paths.collect();
    let capacity = Capacity {
        version,
        payload: payload.into(),
        paths,
        drafts,
        groups,
    };
    for draft in drafts {
        capacity.packet_numbers(reader, draft);
        capacity.expiry(reader, draft);
    }
    if room == Room::Needed {
        capacity.room(reader, file);
    }
    Some(Transfer {
        version,
        in_flight_max: u32::try_from(given.in_flight_max?).ok()?,
        payload_size: payload,
        memory_max: given.memory_max?,
    })
}

/// Payload of a data packet whose own headers take so many bytes: the smallest over the networks in use.
fn payload_size(file: &File, drafts: &[Draft], map: &Map, headers: u16) -> Option<u16> {
    let all = LinkSet::first(file.networks.len());
    let used = drafts.iter().fold(LinkSet::EMPTY, |used, draft| {
        used.union(draft.networks.unwrap_or(all))
    });
    let used = if used.is_empty() { all } else { used };
    let size = |(i, network): (usize, &crate::schema::Network)| -> Option<u64> {
        let ip: IpVersion = (*map.versions.get(i)?)?;
        let headers = u64::from(headers + ip.header_len() + frame::UDP);
        network.mtu?.checked_sub(headers)
    };
    let of_used = file
        .networks
        .iter()
        .enumerate()
        .filter(|(i, _)| used.contains(link(*i)));
    let sizes: Option<Vec<u64>> = of_used.map(size).collect();
    u16::try_from(sizes?.into_iter().min()?).ok()
}

impl Capacity<'_> {
    fn packets(&self, size: u32) -> u128 {
        u128::from(size).div_ceil(self.payload.max(1)).max(1)
    }

    /// Bits on the wire of network `path` for one state.
    fn bits(&self, size: u32, path: Path) -> u128 {
        (u128::from(size) + self.packets(size) * path.overhead) * 8
    }

    fn packet_numbers(&self, reader: &mut Reader, draft: &Draft) {
        let Some(size) = draft.state_max else { return };
        let (packets, most) = (self.packets(size), u128::from(self.version.max_packets()));
        if packets > most {
            let number = self.version.number();
            let payload = self.payload;
            let wrong = format!(
                "a state of {size} bytes, {ENVELOPE_MAX} of them the executor's, needs {packets} packets of {payload} bytes, version \
                 {number} numbers {most}"
            );
            let limit = most * payload - u128::from(ENVELOPE_MAX);
            let right = format!("give at most {limit} bytes, or set wire_version = 2");
            reader.wrong(&draft.place, "size", wrong, right);
        }
    }

    fn expiry(&self, reader: &mut Reader, draft: &Draft) {
        let Some(expiry) = draft.expiry else { return };
        let most = self.version.max_expiry();
        if expiry > most {
            let key = if draft.place.has("expiry_ms") {
                "expiry_ms"
            } else {
                "period_ms"
            };
            let number = self.version.number();
            let wrong = format!(
                "an expiry of {} ms does not fit in a version {number} header, which ends at {} ms",
                ms(expiry),
                ms(most)
            );
            let right = match self.version {
                WireVersion::V1 => "shorten it, or set wire_version = 2",
                WireVersion::V2 => "shorten it",
            };
            reader.wrong(&draft.place, key, wrong, right);
        }
    }

    /// The paths of an application; `None` where one is unknown.
    fn paths_of(&self, draft: &Draft) -> Option<Vec<(usize, Path)>> {
        let position = |id: bumpless_base::LinkId| {
            let i = usize::from(id.0);
            self.paths.get(i).copied().flatten().map(|path| (i, path))
        };
        draft.networks?.iter().map(position).collect()
    }

    /// Whether the networks carry each state alone, and all together.
    fn room(&self, reader: &mut Reader, file: &File) {
        for draft in self.drafts {
            self.alone(reader, draft);
        }
        for (i, network) in file.networks.iter().enumerate() {
            self.utilisation(reader, file, i, &network.place);
        }
    }

    /// A state that misses its deadline with the networks to itself.
    fn alone(&self, reader: &mut Reader, draft: &Draft) {
        let (Some(size), Some(deadline), Some(paths), Some(distribution)) = (
            draft.state_max,
            draft.deadline,
            self.paths_of(draft),
            draft.distribution,
        ) else {
            return;
        };
        let bandwidths = || paths.iter().map(|(_, path)| path.bandwidth);
        if paths.is_empty() || bandwidths().any(|bandwidth| bandwidth == 0) {
            return;
        }
        let bandwidth = match distribution {
            Distribution::Replicate => bandwidths().max().unwrap_or(1),
            Distribution::Spread => bandwidths().sum(),
        };
        let bits = paths
            .iter()
            .map(|&(_, path)| self.bits(size, path))
            .min()
            .unwrap_or(0);
        let nanos = (bits * 1_000_000_000).div_ceil(bandwidth);
        if nanos > u128::from(deadline.as_nanos()) {
            let needed = u64::try_from(nanos).unwrap_or(u64::MAX);
            let wrong = format!(
                "a state of {size} bytes needs {:.1} ms at {} Mbit/s, the deadline is {} ms",
                needed as f64 / 1e6,
                bandwidth as f64 / 1e6,
                ms(deadline)
            );
            let right = "lengthen period and deadline, shrink the state, or use a faster network";
            let key = if draft.place.has("deadline_ms") {
                "deadline_ms"
            } else {
                "period_ms"
            };
            reader.wrong(&draft.place, key, wrong, right);
        }
    }

    /// Bit/s that `draft` puts on network `i`, for each partner.
    fn load(&self, draft: &Draft, i: usize) -> Option<u128> {
        let paths = self.paths_of(draft)?;
        let (_, path) = *paths.iter().find(|(position, _)| *position == i)?;
        let period = u128::from(draft.period?.as_nanos()).max(1);
        let rate = (self.bits(draft.state_max?, path) * 1_000_000_000).div_ceil(period);
        let unpaced = paths.iter().any(|(_, path)| path.bandwidth == 0);
        Some(match draft.distribution? {
            Distribution::Replicate => rate,
            Distribution::Spread if unpaced => rate.div_ceil(paths.len() as u128),
            Distribution::Spread => {
                let all: u128 = paths.iter().map(|(_, path)| path.bandwidth).sum();
                (rate * path.bandwidth).div_ceil(all.max(1))
            }
        })
    }

    /// The partners to which `id` sends the state of `draft` when it is primary.
    fn partners(&self, draft: &Draft, id: NodeId) -> u128 {
        let group = draft.group.and_then(|i| self.groups.get(i));
        let candidates = group
            .and_then(|group| group.candidates.as_deref())
            .unwrap_or_default();
        if candidates.contains(&id) {
            candidates.len() as u128 - 1
        } else {
            0
        }
    }

    /// The sum of loads on network `i`, when the busiest node is primary for all its groups.
    fn utilisation(
        &self,
        reader: &mut Reader,
        file: &File,
        i: usize,
        place: &crate::reader::Place,
    ) {
        let Some(path) = self.paths.get(i).copied().flatten() else {
            return;
        };
        let sum = |id: NodeId| -> u128 {
            let load = |draft: &Draft| {
                self.load(draft, i)
                    .unwrap_or(0)
                    .saturating_mul(self.partners(draft, id))
            };
            self.drafts.iter().map(load).fold(0, u128::saturating_add)
        };
        let worst = (0..file.nodes.len())
            .map(|n| (sum(node(n)), n))
            .max_by_key(|&(sum, n)| {
                // Of equal loads the first node's is named.
                (sum, std::cmp::Reverse(n))
            });
        let Some((load, n)) = worst else { return };
        if path.bandwidth == 0 || load <= path.bandwidth {
            return;
        }
        let name = file.nodes[n].name.as_deref().unwrap_or("?");
        let percent = load as f64 / path.bandwidth as f64 * 100.0;
        let wrong = format!(
            "the states of node {name:?} need {:.1} Mbit/s with headers, {percent:.0} % of this \
             network's {} Mbit/s",
            load as f64 / 1e6,
            path.bandwidth as f64 / 1e6
        );
        let right = "lengthen periods, shrink states, spread them over networks, or raise it";
        reader.wrong(place, "bandwidth_mbit", wrong, right);
    }
}

/// The sum of state buffers on the node that has most.
fn memory(reader: &mut Reader, file: &File, drafts: &[Draft], groups: &[groups::Draft]) {
    let Some(most) = file.transfer.memory_max else {
        return;
    };
    let need = |id: NodeId| -> u128 {
        let of = |draft: &Draft| -> Option<u128> {
            let candidates = groups.get(draft.group?)?.candidates.as_deref()?;
            let kinds = Kinds {
                persist: draft.persist?.is_some(),
                program: matches!(draft.kind.as_ref()?, ApplicationKind::Program(_)),
                sealed: !draft.security.as_ref()?.is_none(),
                unsent: draft.unsent?,
            };
            candidates
                .contains(&id)
                .then_some(buffers(draft.state_max?, candidates.len(), kinds))
        };
        drafts.iter().filter_map(of).sum()
    };
    let needed = (0..file.nodes.len())
        .map(|n| need(node(n)))
        .max()
        .unwrap_or(0);
    if needed > u128::from(most) {
        let wrong = format!("the states need {needed} bytes of buffers, the limit is {most}");
        let right = "raise it if the computers have that memory free, or shrink the states";
        reader.wrong(&file.transfer.place, "memory_max", wrong, right);
    } else if let Some(most) = ADDRESSABLE.filter(|&most| needed > u128::from(most)) {
        let wrong = format!(
            "the states need {needed} bytes of buffers, and this is the 32-bit program, which has addresses for {most}"
        );
        let right = "shrink the states, or run the pair on 64-bit computers";
        reader.wrong(&file.transfer.place, "memory_max", wrong, right);
    }
}
