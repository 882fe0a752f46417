//! The subcommands.

pub mod apply;
pub mod bench;
pub mod check;
pub mod demo;
pub mod guard;
pub mod impact;
pub mod iprp;
pub mod key;
pub mod key_server;
pub mod pki;
pub mod placement;
pub mod plan;
pub mod plant;
pub mod program;
pub mod promise;
mod reception;
pub mod run;
pub mod sim;
mod site_failures;
pub mod status;
pub mod switchover;
pub mod torture;
pub mod values;
pub mod wan;
pub mod witness;
