//! The peers' certificate for tquic.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use peer_certificate::{CERTIFICATE_PEM, KEY_PEM};
use tempfile::NamedTempFile;
use tquic::TlsConfig;

/// What one end takes of TLS: the peers' certificate. tquic reads certificates from files; they are gone when this returns.
pub fn tls(protocol: &[u8], server: bool) -> anyhow::Result<TlsConfig> {
    let certificate = file(CERTIFICATE_PEM)?;
    let protocols = vec![protocol.to_vec()];
    if server {
        let key = file(KEY_PEM)?;
        return Ok(TlsConfig::new_server_config(
            path(certificate.path())?,
            path(key.path())?,
            protocols,
            false,
        )?);
    }
    let mut tls = TlsConfig::new_client_config(protocols, false)?;
    tls.set_verify(true);
    tls.set_ca_certs(path(certificate.path())?)?;
    Ok(tls)
}

fn file(text: &str) -> anyhow::Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

fn path(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .context("the directory for temporary files has no name in UTF-8")
}
