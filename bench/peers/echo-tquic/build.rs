//! Records tquic's version.

fn main() {
    peer_version::from_lock("tquic");
}
