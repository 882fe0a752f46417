//! Records the version of rusteron, whose sources hold Aeron's.

fn main() {
    peer_version::from_lock("rusteron-client");
}
