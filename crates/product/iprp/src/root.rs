//! What the receiver's keys are derived from, kept over a restart of the process.
//!
//! Senders go on sealing with the key that they were told last: with the same root, the process that is started next opens it. The
//! file is beside the control socket, and goes with that at a restart of the host.

use std::path::{Path, PathBuf};

use bumpless_guarded_file::{self as guarded_file, Guard};
use bumpless_net_linux::random;
use bumpless_secure::Secret;
use zeroize::Zeroizing;

const LEN: usize = 36;

/// The file with root and key number.
pub struct Root {
    path: PathBuf,
    bytes: Zeroizing<[u8; LEN]>,
}

impl Root {
    /// That of `path`, or where there is none that can be used, another one.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn load(path: &Path) -> std::io::Result<Self> {
        let mut bytes = Zeroizing::new([0; LEN]);
        let kept = guarded_file::read(path, Guard::Secret, LEN).ok();
        match kept.as_deref().filter(|kept| kept.len() == LEN) {
            Some(kept) => bytes.copy_from_slice(kept),
            None => {
                let mut secret = Zeroizing::new([0; 32]);
                random::fill(&mut secret)?;
                bytes[..32].copy_from_slice(&secret[..]);
            }
        }
        Ok(Self {
            path: path.to_owned(),
            bytes,
        })
    }

    /// The root.
    pub fn secret(&self) -> Secret {
        let mut secret = [0; 32];
        secret.copy_from_slice(&self.bytes[..32]);
        Secret::new(secret)
    }

    /// The number of the key that was used last.
    pub fn number(&self) -> u32 {
        let [.., a, b, c, d] = *self.bytes;
        u32::from_be_bytes([a, b, c, d])
    }

    /// Keeps this number. Without it, the next process takes a while longer to be replicated to.
    pub fn keep(&mut self, number: u32) {
        self.bytes[32..].copy_from_slice(&number.to_be_bytes());
        let _ = guarded_file::replace(&self.path, &self.bytes[..], Guard::Secret);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_there_after_a_restart_and_rubbish_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root");
        let mut first = Root::load(&path).unwrap();
        assert_eq!(first.number(), 0);
        first.keep(7);
        let again = Root::load(&path).unwrap();
        assert_eq!(
            (&again.bytes[..32], again.number()),
            (&first.bytes[..32], 7)
        );
        std::fs::write(&path, b"rubbish").unwrap();
        let other = Root::load(&path).unwrap();
        assert_ne!(other.bytes[..32], first.bytes[..32]);
    }
}
