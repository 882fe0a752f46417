//! What is asked of the cryptography.

/// Twelve bytes that no two packets of one key share.
pub type Nonce = [u8; 12];
/// Proof that whoever made a packet held its key.
pub type Tag = [u8; 16];

/// Authenticated encryption with associated data, and a function that derives keys from a secret.
///
/// Whoever implements it compares tags in constant time.
pub trait Suite {
    /// A key of one sender, ready for use.
    type Key;

    /// Tells suites apart: what one has sealed, no other opens. It goes into every key.
    const NAME: &'static [u8];

    /// Bytes that derive from `secret` for the purpose that `info` names, and tell nothing about either.
    fn derive(secret: &[u8; 32], info: &[&[u8]]) -> [u8; 32];

    /// Makes a key of `bytes` ready.
    fn key(bytes: &[u8; 32]) -> Self::Key;

    /// Enciphers `body` where it lies; the tag covers it and `header`.
    fn seal(key: &Self::Key, nonce: Nonce, header: &[u8], body: &mut [u8]) -> Tag;

    /// Deciphers `body`, all but whose last 16 bytes are enciphered, which are the tag; returns whether the tag is
    /// right. If it is not, `body` has any content afterwards.
    fn open(key: &Self::Key, nonce: Nonce, header: &[u8], body: &mut [u8]) -> bool;
}
