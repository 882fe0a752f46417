//! Certificates of nodes: a site's authority, the identity of a node, and TLS 1.3 between two nodes that know each other
//! (`spec/security.md`, N-40 and further).
//!
//! [`Authority`] makes certificates and revokes them; [`Identity`] is what a node has of one, checked, and makes the TLS
//! configurations of a session; [`explain`] says why a session was refused. Any authority's certificates will do that
//! have the node's name, [`NodeName`].
#![forbid(unsafe_code)]

mod authority;
mod certificate;
mod clock;
mod device;
mod identity;
mod key;
mod list;
mod name;
mod partner;
mod pem;
mod problem;
mod refusal;
mod role;
mod session;
mod show;
mod trust;

pub use rustls;

pub use authority::{Authority, Issued, Revoked, Wanted};
pub use certificate::{Certificate, CertificateFault};
pub use clock::{Clock, system_clock, told};
pub use device::{BadDeviceName, DeviceName, FIELD};
pub use identity::{Identity, IdentityPaths};
pub use list::{Entry, RevocationList};
pub use name::{BadName, NodeName};
pub use partner::Expected;
pub use problem::{Cause, Problem, Problems};
pub use refusal::{Refusal, explain};
pub use role::{BadRole, ROLE, Role};
pub use session::{PROTOCOL, admitted, admitted_by};
pub use show::{Item, items, show};
