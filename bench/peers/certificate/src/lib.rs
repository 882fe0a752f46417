//! One self-signed certificate and its key, made when this crate is built: the sender trusts it as it
//! would trust a plant's own authority, so that no peer runs with its checks of identity off.

/// The name in the certificate.
pub const NAME: &str = "peer";
/// The certificate in DER.
pub const CERTIFICATE_DER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/certificate.der"));
/// Its key in DER, PKCS #8.
pub const KEY_DER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/key.der"));
/// The certificate in PEM.
pub const CERTIFICATE_PEM: &str = include_str!(concat!(env!("OUT_DIR"), "/certificate.pem"));
/// Its key in PEM, PKCS #8.
pub const KEY_PEM: &str = include_str!(concat!(env!("OUT_DIR"), "/key.pem"));
