//! What certificates and revocation lists of an authority look like.
//!
//! Keys are for ECDSA on P-256: what other tools of a plant keep, show and issue (Windows, hardware modules, OPC UA)
//! knows it, where Ed25519 is still missing; ring mixes key and message into each signature's nonce, so a weak moment of the
//! random generator does not give the key away.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bumpless_net_linux::random;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CustomExtension, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    NameConstraints, PKCS_ECDSA_P256_SHA256, RevokedCertParams, SanType, SerialNumber,
};
use rustls_pki_types::UnixTime;
use zeroize::Zeroizing;

use super::wanted::Wanted;
use crate::certificate::hex;
use crate::list::Entry;
use crate::pem;
use crate::problem::Cause;
use crate::role::ROLE_ARCS;

/// How much earlier than it is made a certificate begins: the clocks of the computers that use it may be behind.
const EARLIER: Duration = Duration::from_secs(3600);
/// Longest lifetime, 100 years: X.509 has no dates after the year 9999.
const LIFETIME_MAX: Duration = Duration::from_secs(36_500 * 86_400);

/// Beginning and end of a certificate.
pub type Validity = (SystemTime, SystemTime);

/// Of a certificate that is made `now` and lasts for `lifetime`.
pub fn validity(now: UnixTime, lifetime: Duration) -> Result<Validity, Cause> {
    if lifetime.is_zero() || lifetime > LIFETIME_MAX {
        return Err(Cause::Lifetime);
    }
    let now = system(now)?;
    let ends = now.checked_add(lifetime).ok_or(Cause::Lifetime)?;
    Ok((now.checked_sub(EARLIER).unwrap_or(UNIX_EPOCH), ends))
}

fn system(time: UnixTime) -> Result<SystemTime, Cause> {
    let since = Duration::from_secs(time.as_secs());
    // Later than any clock that is set: what follows can add to it.
    let latest = Duration::from_secs(200 * 366 * 86_400);
    let time = (since < latest).then(|| UNIX_EPOCH.checked_add(since));
    time.flatten().ok_or(Cause::Lifetime)
}

/// A new key.
pub fn new_key() -> Result<Zeroizing<KeyPair>, Cause> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
    key.map(Zeroizing::new).map_err(failed)
}

/// A random serial number, and as it is told. 126 bits of it are random; it always has 16 bytes.
pub fn serial() -> Result<(SerialNumber, String), Cause> {
    let mut bytes = [0; 16];
    random::fill(&mut bytes).map_err(|errno| Cause::NotSigned(errno.to_string()))?;
    bytes[0] = bytes[0] & 0x3f | 0x40;
    Ok((SerialNumber::from_slice(&bytes), hex(&bytes)))
}

/// The certificate of the authority of `site`, which may issue names of the site alone.
pub fn authority(site: &str, called: &str, (begins, ends): Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, called);
    params.not_before = begins.into();
    params.not_after = ends.into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName(site.to_owned())],
        excluded_subtrees: Vec::new(),
    });
    params
}

/// What signs for the authority of `site`.
pub fn issuer<'a>(site: &str, called: &str, key: &'a KeyPair) -> Issuer<'static, &'a KeyPair> {
    // An issuer has no validity of its own: only name and use count.
    Issuer::new(authority(site, called, (UNIX_EPOCH, UNIX_EPOCH)), key)
}

/// A node's certificate.
pub fn node(
    Wanted {
        name,
        role,
        addresses,
    }: Wanted<'_>,
    serial: SerialNumber,
    (begins, ends): Validity,
) -> Result<CertificateParams, Cause> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    // For people; the name that counts follows.
    params
        .distinguished_name
        .push(DnType::CommonName, name.node());
    let dns = name.as_str().try_into().map_err(failed)?;
    params.subject_alt_names = vec![SanType::DnsName(dns)];
    let addresses = addresses.iter().copied().map(SanType::IpAddress);
    params.subject_alt_names.extend(addresses);
    if let Some(role) = role {
        let encoded = role.encoded();
        let encoded = encoded.ok_or_else(|| Cause::NotSigned(format!("role {role}")))?;
        let extension = CustomExtension::from_oid_content(&ROLE_ARCS, encoded);
        params.custom_extensions.push(extension);
    }
    params.serial_number = Some(serial);
    params.not_before = begins.into();
    params.not_after = ends.into();
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// The list with this number that revokes `revoked`, in PEM. It counts until `lasts` after `now`.
pub fn list(
    issuer: &Issuer<'_, &KeyPair>,
    revoked: &[Entry],
    number: u64,
    now: UnixTime,
    lasts: Duration,
) -> Result<Zeroizing<String>, Cause> {
    let (_, next) = validity(now, lasts)?;
    let entry = |it: &Entry| {
        Ok(RevokedCertParams {
            serial_number: SerialNumber::from_slice(&it.number),
            revocation_time: system(it.since)?.into(),
            reason_code: None,
            invalidity_date: None,
        })
    };
    let params = CertificateRevocationListParams {
        this_update: system(now)?.into(),
        next_update: next.into(),
        crl_number: SerialNumber::from(number),
        issuing_distribution_point: None,
        revoked_certs: revoked.iter().map(entry).collect::<Result<_, Cause>>()?,
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = params.signed_by(issuer).map_err(failed)?;
    pem::encode("X509 CRL", list.der())
}

/// The library does not make it.
pub fn failed(error: rcgen::Error) -> Cause {
    Cause::NotSigned(error.to_string())
}
