//! Records quinn's version.

fn main() {
    peer_version::from_lock("quinn");
}
