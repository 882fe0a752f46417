//! iPRP for unmodified programs: packets of ports that a file names leave over several networks, and come once.
//!
//! The protocol is in `bumpless-iprp`, which does no I/O; capturing is in `bumpless-capture`. Here they come together.
//!
//! | module | owns |
//! |---|---|
//! | `config` | the host's file |
//! | `networks`, `host` | which of the host's addresses is on which network; sockets and rules for them |
//! | `trust` | what protects control messages, as it is on this host: a key file, or a certificate |
//! | `closed` | control messages between hosts that share a key: sealed, fresh, on every network |
//! | `agreements` | keys that hosts with certificates agree on, by TLS |
//! | `groups`, `members` | what a group's hosts share; of which groups programs of this host are members |
//! | `data_plane` | the thread on which packets pass |
//! | `diverting` | whether captured datagrams come by a ring in the kernel, or all by the queue |
//! | `control_plane` | the thread beside it: control messages, the firewall's sets, events, pings |
//! | `daemon` | the parts put together; starting, changing, ending |
//! | `route`, `tracert` | the hops to another host on each network |
//! | `trial` | a bounded stream between two hosts, and what came of it |
//! | `request`, `status` | what can be asked of a running daemon, and what it answers |
#![forbid(unsafe_code)]

mod agreements;
mod closed;
mod config;
mod control_plane;
mod daemon;
mod data_plane;
mod diverting;
mod event;
mod exchange;
mod groups;
mod host;
mod members;
mod networks;
mod ping;
mod request;
mod root;
mod route;
mod snapshot;
mod status;
mod tracert;
mod trial;
mod trust;
mod unanswered;
mod unheard;

pub use bumpless_iprp::Side;
pub use config::{Config, Prefix, Rule, sample};
pub use daemon::{Found, Options, RunError, check_host, run};
pub use host::{broadcast_on, find_attachments as own_networks, is_own};
pub use networks::{Attachment, Names, attachments};
pub use request::{Request, socket_path};
pub use route::{Hop, RouteEnd, RouteLimits};
pub use tracert::{Traced, Way, trace, traced_json};
pub use trial::{
    COUNT_MAX, Came, Carried, Ending, Heard, LEN_MAX, LEN_MIN, ListenPlan, Report, SendPlan, Sent,
    Spread, TrialError, listen, send,
};
pub use trust::{Shown, TrustError};
