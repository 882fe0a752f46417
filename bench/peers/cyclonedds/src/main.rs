//! DDS by Cyclone; `peer.c` is the peer.

use std::process::ExitCode;

fn main() -> ExitCode {
    peer_conversation::run::<peer_c::CPeer>()
}
