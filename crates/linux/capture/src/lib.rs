//! Packets of unmodified programs: taken out of the host's output, seen on their way in, and given back to the host.
//!
//! | module | owns |
//! |---|---|
//! | `firewall` | the host's rules that are ours, in two tables of their own: what is queued, what is shown, the MSS |
//! | `holder` | which process has a table, a queue or a group already |
//! | `queue` | packets that wait for a verdict (NFQUEUE): outgoing ones, or all that come in |
//! | `diversion` | datagrams handed over by programs in the kernel, without a queue (eBPF) |
//! | `decide` | what is decided on captured packets, by either way |
//! | `datagram` | datagrams of UDP of which the kernel has left some work to network cards |
//! | `sighting` | heads of incoming packets, which go on without waiting (NFLOG) |
//! | `packet` | IP packets read, and made with their checksums |
//! | `injector` | packets given to the host as if they had arrived |
//! | `groups` | of which groups programs of the host are members; being one for them; packets given to members |
//! | `ports` | UDP sockets of one port on several networks, which know on which one a datagram came |
//! | `departures` | copies that wait for the end of a turn, so that those that go the same way leave in one call |
//! | `interfaces`, `neighbours` | addresses and MTUs of the host; next hops that can be reached |
//! | `rights` | what the kernel permits, and how more is granted |
//! | `netlink` | messages to the kernel, of any of its parts |
//!
//! The kernel is spoken to by netlink and not by `iptables` or `nft`, which a host may not have. The tables belong to the
//! process's socket: the kernel removes them with it, however the process ends. `nfq` (the crate for NFQUEUE) has
//! no descriptor to poll and lets children inherit the queue, which would then be a hole for packets when its owner dies.
#![forbid(unsafe_code)]

mod datagram;
mod decide;
mod departures;
mod diversion;
mod firewall;
mod groups;
mod holder;
mod injector;
mod interfaces;
mod neighbours;
pub mod netlink;
mod own;
mod packet;
mod ports;
mod queue;
mod rights;
mod sighting;

pub use bumpless_net_linux::capabilities::Missing;
pub use decide::{Decide, Held, Queued, Verdict};
pub use departures::{Departed, Departures};
pub use diversion::{DIVERTED_MAX, Diversion, Diverted, Marks, Undiverted};
pub use firewall::{
    Captured, Diverting, Firewall, FirewallError, Loss, Mss, Rules, Side, Watched, lose_incoming,
    lost_incoming, queue_forwarded, queue_incoming, tables,
};
pub use groups::{Joins, MemberInjector, Membership, Wanted, memberships};
pub use holder::{Holder, group_holder, queue_holder, table_holder};
pub use injector::Injector;
pub use interfaces::{Interface, interfaces};
pub use neighbours::{Hop, Neighbour, Neighbours};
pub use own::OwnAddresses;
pub use packet::{Parsed, build, hops_of, keep_on_host, parse, parse_head};
pub use ports::{Arrived, Card, Ports, Segmentation};
pub use queue::Queue;
pub use rights::{missing, remedy};
pub use sighting::Sightings;
