//! States that tests tell apart.

use bumpless_base::Random;

/// A state's bytes; a failed assertion shows only the first ones.
#[derive(Clone, PartialEq, Eq)]
pub struct State(pub Vec<u8>);

impl std::ops::Deref for State {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first = &self.0[..self.0.len().min(8)];
        write!(f, "{} bytes {first:02x?}", self.0.len())
    }
}

/// A state that cannot be taken for another one.
pub fn state(seed: u64, len: usize) -> State {
    let mut random = Random::new(seed ^ 0xb00b);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    State(bytes)
}
