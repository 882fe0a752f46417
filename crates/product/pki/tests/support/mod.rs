//! A site with an authority and nodes, at a time that the test sets; and certificates such as other authorities make.
#![allow(dead_code, reason = "each test file takes what it needs")]

pub mod handshake;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::rustls::time_provider::TimeProvider;
use bumpless_pki::{Authority, Clock, Identity, IdentityPaths, Issued, NodeName, Problems};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber,
};
use tempfile::TempDir;
use x509_cert::der::pem::{LineEnding, encode_string};

pub const DAY: u64 = 86_400;
pub const YEAR: Duration = Duration::from_secs(365 * DAY);
/// Some time in 2027.
pub const NOW: u64 = 1_800_000_000;

#[derive(Debug)]
struct Set(u64);

impl TimeProvider for Set {
    fn current_time(&self) -> Option<UnixTime> {
        Some(time(self.0))
    }
}

pub fn time(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

pub fn clock(seconds: u64) -> Clock {
    Arc::new(Set(seconds))
}

/// A folder with an authority in `pki`.
pub struct Site {
    pub folder: TempDir,
    pub authority: Authority,
}

impl Site {
    pub fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        let authority = Authority::create(&pki, name, 10 * YEAR, time(NOW)).unwrap();
        Self { folder, authority }
    }

    pub fn pki(&self) -> PathBuf {
        self.path("pki")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn name(&self, short: &str) -> NodeName {
        self.authority.name(short).unwrap()
    }

    /// Issues a certificate for a year, its folder called as the node.
    pub fn issue(&self, short: &str) -> Issued {
        self.issue_to(short, short)
    }

    pub fn issue_to(&self, short: &str, folder: &str) -> Issued {
        let (name, out) = (self.name(short), self.path(folder));
        self.authority.issue(&name, YEAR, time(NOW), &out).unwrap()
    }

    pub fn paths(&self, folder: &str) -> IdentityPaths {
        IdentityPaths::in_folder(&self.path(folder))
    }

    /// The identity in the folder that is called as the node.
    pub fn load(&self, short: &str) -> Result<Identity, Problems> {
        load(&self.paths(short), short)
    }

    /// Brings the authority's list to the node in `folder`.
    pub fn copy_list(&self, folder: &str) {
        let list = fs::read(self.pki().join("revoked.pem")).unwrap();
        fs::write(self.path(folder).join("revoked.pem"), list).unwrap();
    }
}

pub fn load(paths: &IdentityPaths, short: &str) -> Result<Identity, Problems> {
    load_at(paths, short, NOW)
}

pub fn load_at(paths: &IdentityPaths, short: &str, now: u64) -> Result<Identity, Problems> {
    let (node, pair) = short.split_once('.').unwrap();
    Identity::load(paths, node, pair, clock(now))
}

pub fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

pub fn pem(label: &str, der: &[u8]) -> String {
    encode_string(label, LineEnding::LF, der).unwrap()
}

/// An authority such as other tools make: no names that it is bound to, any name of its own.
pub struct Foreign {
    pub key: KeyPair,
    pub params: CertificateParams,
    pub certificate: Certificate,
}

pub fn params(called: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "Works");
    params.distinguished_name.push(DnType::CommonName, called);
    params.not_before = (UNIX_EPOCH + Duration::from_secs(NOW - 10 * DAY)).into();
    params.not_after = (UNIX_EPOCH + Duration::from_secs(NOW + 100 * DAY)).into();
    params
}

fn authority_params(called: &str) -> CertificateParams {
    let mut params = params(called);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// What a node of another authority has, complete.
pub fn node_params(names: &[&str]) -> CertificateParams {
    let mut params = params("node");
    params.subject_alt_names =
        CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>())
            .unwrap()
            .subject_alt_names;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    params
}

impl Foreign {
    pub fn new(called: &str) -> Self {
        Self::with(authority_params(called))
    }

    pub fn with(params: CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            key,
            params,
            certificate,
        }
    }

    /// One below this one.
    pub fn below(&self, called: &str) -> Self {
        let (key, params) = (KeyPair::generate().unwrap(), authority_params(called));
        let certificate = params.signed_by(&key, &self.issuer()).unwrap();
        Self {
            key,
            params,
            certificate,
        }
    }

    pub fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }

    pub fn pem(&self) -> String {
        pem("CERTIFICATE", self.certificate.der())
    }

    /// A list that revokes these serial numbers and should be renewed by `renewed`.
    pub fn list(&self, serials: &[u64], renewed: u64) -> String {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let entry = |&serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: at(NOW).into(),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: at(NOW - 20 * DAY).into(),
            next_update: at(renewed).into(),
            crl_number: SerialNumber::from(1u64),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(entry).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        pem("X509 CRL", params.signed_by(&self.issuer()).unwrap().der())
    }

    /// Makes a folder with a certificate of these `params` for a new key, and `between` after it.
    pub fn issue(&self, folder: &Path, params: &CertificateParams, between: &str) -> IdentityPaths {
        let key = KeyPair::generate().unwrap();
        self.issue_for(&key, folder, params, between)
    }

    pub fn issue_for(
        &self,
        key: &KeyPair,
        folder: &Path,
        params: &CertificateParams,
        between: &str,
    ) -> IdentityPaths {
        let certificate = params.signed_by(key, &self.issuer()).unwrap();
        let chain = pem("CERTIFICATE", certificate.der()) + between;
        fs::create_dir_all(folder).unwrap();
        let write = |name: &str, text: String, bits: u32| {
            fs::write(folder.join(name), text).unwrap();
            mode(&folder.join(name), bits);
        };
        write("certificate.pem", chain, 0o644);
        write("key.pem", pem("PRIVATE KEY", key.serialized_der()), 0o600);
        write("authority.pem", self.pem(), 0o644);
        IdentityPaths::in_folder(folder)
    }
}
