//! QUIC by tquic in the study of failovers (`spec/wan.md`, U-58): messages on one bidirectional stream of a connection with two
//! paths, each packet on both (tquic's scheduler `redundant`). The program does nothing about outages.

mod call;
mod outgoing;
mod serve;
mod settings;

use std::process::ExitCode;

fn main() -> ExitCode {
    peer_echo::run(env!("PEER_VERSION"), serve::serve, call::call)
}
