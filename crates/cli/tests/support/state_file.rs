//! Files of states on disk that are not as a node left them.

use std::fs;
use std::path::Path;

use bumpless_node::persist::format::{StateFile, encode, parse};

/// Writes the file at `path` anew, with something changed.
pub fn forge(path: &Path, change: impl FnOnce(&mut StateFile<'_>)) {
    let bytes = fs::read(path).unwrap();
    let mut state = parse(&bytes).unwrap();
    change(&mut state);
    let mut forged = Vec::new();
    encode(&state, &mut forged);
    fs::write(path, forged).unwrap();
}
