//! A server with two groups, and those who ask it.

#[path = "server/kept.rs"]
mod kept;
#[path = "server/members.rs"]
mod members;
#[path = "server/revoked.rs"]
mod revoked;
#[path = "server/site.rs"]
mod site;
#[path = "server/strangers.rs"]
mod strangers;
