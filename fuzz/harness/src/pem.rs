//! A file of an identity: certificates, keys, revocation lists.

use std::path::PathBuf;

use bumpless_pki::{Problem, items};

/// Reads `content`.
///
/// # Panics
/// If it is accepted with nothing in it, or a refusal lacks its cause or its remedy.
pub fn run(content: &[u8]) {
    match items(content) {
        Ok(items) => assert!(!items.is_empty()),
        Err(cause) => {
            let problem = Problem {
                path: PathBuf::from("file.pem"),
                cause,
            };
            assert!(!problem.wrong().is_empty() && !problem.remedy().is_empty());
        }
    }
}
