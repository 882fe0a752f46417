//! What stands in a certificate, and what can be wrong with one.

mod fault;

use rustls_pki_types::{CertificateDer, UnixTime};
use std::net::IpAddr;
use std::time::Duration;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    BasicConstraints, ExtendedKeyUsage, KeyUsage, NameConstraints, SubjectAltName,
};
use x509_cert::time::Time;
use x509_cert::{Certificate as Parsed, TbsCertificate};

pub use fault::CertificateFault;

use crate::role::Role;

/// What stands in a certificate. Whether it can be believed is another question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Whom it is for, as it says itself; nothing hangs on it.
    pub subject: String,
    /// Who issued it.
    pub issuer: String,
    /// Its number, 40 hexadecimal digits at most.
    pub serial: String,
    /// Not valid before.
    pub begins: UnixTime,
    /// Not valid after.
    pub ends: UnixTime,
    /// Names of DNS that it is for, in small letters.
    pub names: Vec<String>,
    /// Addresses that it is for.
    pub addresses: Vec<IpAddr>,
    /// What its holder is at field devices, if it says.
    pub role: Option<Role>,
    /// Whether it may issue others.
    pub authority: bool,
    /// Whether it permits signatures, as in a TLS handshake.
    pub signs: bool,
    /// What it may be used for, by object identifier; `None`: anything.
    pub purposes: Option<Vec<String>>,
    /// Names of DNS that it may issue certificates for; empty: any.
    pub may_issue: Vec<String>,
    /// The public key.
    pub(crate) key: Vec<u8>,
    /// Issuer and subject as encoded.
    pub(crate) issuer_der: Vec<u8>,
    pub(crate) subject_der: Vec<u8>,
}

impl Certificate {
    /// Reads a certificate.
    ///
    /// # Errors
    /// [`CertificateFault::Garbled`].
    pub fn read(der: &CertificateDer<'_>) -> Result<Self, CertificateFault> {
        read(der).map_err(|_| CertificateFault::Garbled)
    }

    /// Whether it is valid at this time.
    pub(crate) fn check_time(&self, now: UnixTime) -> Result<(), CertificateFault> {
        let (begins, ended) = (self.begins, self.ends);
        match () {
            () if now > ended => Err(CertificateFault::Expired { ended, now }),
            () if now < begins => Err(CertificateFault::NotYet { begins, now }),
            () => Ok(()),
        }
    }

    /// Whether `name` is one of its names; no wildcard stands for one.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        self.names.iter().any(|it| it == name)
    }
}

fn read(der: &[u8]) -> x509_cert::der::Result<Certificate> {
    let Parsed {
        tbs_certificate: tbs,
        ..
    } = Parsed::from_der(der)?;
    let usage = tbs.get::<KeyUsage>()?.map(|(_, usage)| usage);
    let basic = tbs.get::<BasicConstraints>()?;
    let may_certify = usage.as_ref().is_none_or(KeyUsage::key_cert_sign);
    Ok(Certificate {
        subject: tbs.subject.to_string(),
        issuer: tbs.issuer.to_string(),
        serial: hex(tbs.serial_number.as_bytes()),
        begins: unix(tbs.validity.not_before),
        ends: unix(tbs.validity.not_after),
        names: names(&tbs)?,
        addresses: addresses(&tbs)?,
        role: Role::read(&tbs),
        authority: basic.is_some_and(|(_, basic)| basic.ca) && may_certify,
        signs: usage.is_none_or(|usage| usage.digital_signature()),
        purposes: purposes(&tbs)?,
        may_issue: may_issue(&tbs)?,
        key: tbs.subject_public_key_info.to_der()?,
        issuer_der: tbs.issuer.to_der()?,
        subject_der: tbs.subject.to_der()?,
    })
}

fn names(tbs: &TbsCertificate) -> x509_cert::der::Result<Vec<String>> {
    let names = tbs.get::<SubjectAltName>()?;
    let names = names.into_iter().flat_map(|(_, names)| names.0);
    Ok(names.filter_map(|name| dns(&name)).collect())
}

fn addresses(tbs: &TbsCertificate) -> x509_cert::der::Result<Vec<IpAddr>> {
    let names = tbs.get::<SubjectAltName>()?;
    let names = names.into_iter().flat_map(|(_, names)| names.0);
    Ok(names.filter_map(|name| address(&name)).collect())
}

fn purposes(tbs: &TbsCertificate) -> x509_cert::der::Result<Option<Vec<String>>> {
    let purposes = tbs.get::<ExtendedKeyUsage>()?;
    let told = |(_, purposes): (bool, ExtendedKeyUsage)| {
        purposes.0.iter().map(ToString::to_string).collect()
    };
    Ok(purposes.map(told))
}

fn may_issue(tbs: &TbsCertificate) -> x509_cert::der::Result<Vec<String>> {
    let constraints = tbs.get::<NameConstraints>()?;
    let trees = constraints.and_then(|(_, it)| it.permitted_subtrees);
    let trees = trees.into_iter().flatten();
    Ok(trees.filter_map(|tree| dns(&tree.base)).collect())
}

fn dns(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
        _ => None,
    }
}

fn address(name: &GeneralName) -> Option<IpAddr> {
    let GeneralName::IpAddress(bytes) = name else {
        return None;
    };
    let v4 = <[u8; 4]>::try_from(bytes.as_bytes()).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes.as_bytes()).map(IpAddr::from))
        .ok()
}

pub(crate) fn unix(time: Time) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(time.to_unix_duration().as_secs()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
