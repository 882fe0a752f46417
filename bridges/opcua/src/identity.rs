//! The folder with what proves who the bridge is, and whom it lets in: `certificate.der`, `key.pem`, `trusted/`, `rejected/`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bumpless_guarded_file::{self as guarded, Guard};
use opcua::crypto::{CertificateStore, PrivateKey, X509, X509Data};
use opcua::types::DateTime;
use zeroize::Zeroizing;

use bumpless_bridge::Problem;

/// The application certificate, in DER.
pub const CERTIFICATE: &str = "certificate.der";
/// Its key, PKCS #8 in PEM.
pub const KEY: &str = "key.pem";
/// Certificates of clients that are let in.
pub const TRUSTED: &str = "trusted";
/// Certificates of clients that were refused.
pub const REJECTED: &str = "rejected";

/// So many refused certificates are kept, for whoever may want to trust one.
pub const REJECTED_MAX: usize = 16;
/// No certificate or key is longer, bytes.
const FILE_MAX: usize = 16 << 10;
/// Bits of the keys that are made: what every client takes, good until 2030 (BSI TR-02102-1 wants 3000 from then on).
const KEY_BITS: u32 = 2048;
/// A certificate that is made is good for so many days.
const DAYS: u32 = 3 * 365;

/// What is wrong with the folder `files` of a bridge that calls itself `uri`; nothing if it may be used.
pub fn check(files: &Path, uri: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let read = |name: &str, guard, problems: &mut Vec<Problem>| {
        let path = files.join(name);
        let content = guarded::read(&path, guard, FILE_MAX);
        content
            .map_err(|cause| problems.push(unusable(&path, &cause)))
            .ok()
    };
    let certificate = read(CERTIFICATE, Guard::Unchanged, &mut problems);
    let key = read(KEY, Guard::Secret, &mut problems);
    let certificate = certificate.and_then(|der| match X509::from_der(&der) {
        Ok(certificate) => Some(certificate),
        Err(_) => {
            problems.push(Problem::new(
                format!("{} is no certificate in DER", files.join(CERTIFICATE).display()),
                "make one with `bumpless-opcua certificate`, or convert yours with `openssl x509 -outform der`",
            ));
            None
        }
    });
    let key = key.and_then(|pem| {
        let key = PrivateKey::from_pem(&pem);
        if key.is_err() {
            problems.push(Problem::new(
                format!("{} is no RSA key in PEM without a password", files.join(KEY).display()),
                "OPC UA's security policies take RSA keys; make one with `bumpless-opcua certificate`",
            ));
        }
        key.ok()
    });
    if let Some(certificate) = &certificate {
        problems.extend(unsuitable(certificate, key.as_ref(), uri));
    }
    let trusted = files.join(TRUSTED);
    if let Ok(metadata) = fs::metadata(&trusted)
        && let Err(cause) = Guard::Unchanged.check(&metadata)
    {
        problems.push(unusable(&trusted, &cause));
    }
    problems
}

fn unusable(path: &Path, cause: &guarded::Cause) -> Problem {
    let right = match cause {
        guarded::Cause::Missing => {
            "make it with `bumpless-opcua certificate`, or choose --insecure where nobody else reaches the server".into()
        }
        _ => cause.remedy(path),
    };
    Problem::new(format!("{} {}", path.display(), cause.wrong()), right)
}

/// What keeps clients from accepting the certificate.
fn unsuitable(certificate: &X509, key: Option<&PrivateKey>, uri: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let public = key.and_then(|key| key.public_key_to_info().ok());
    let certified = certificate.to_der().unwrap_or_default();
    // The public key stands in the certificate as it is.
    let belongs = |public: &[u8]| certified.windows(public.len()).any(|part| part == public);
    if public.is_some_and(|info| !belongs(info.subject_public_key.raw_bytes())) {
        problems.push(Problem::new(
            format!("{KEY} is not the key of {CERTIFICATE}"),
            "bring both files of one make",
        ));
    }
    if certificate.is_application_uri_valid(uri).is_err() {
        problems.push(Problem::new(
            format!("{CERTIFICATE} does not say --uri {uri}"),
            "give the URI that the certificate was made for, or make one for this URI",
        ));
    }
    if certificate
        .is_time_valid(&DateTime::now().as_chrono())
        .is_err()
    {
        problems.push(Problem::new(
            format!("{CERTIFICATE} is not valid today"),
            "check the clock, or make another one and have clients trust it",
        ));
    }
    problems
}

/// Makes key and self-signed certificate of `uri`, reached as `hosts`, in the folder `files`.
///
/// # Errors
/// Something is there already, or cannot be made.
pub fn make(files: &Path, uri: &str, hosts: &[String]) -> Result<(), Problem> {
    let (certificate_path, key_path) = (files.join(CERTIFICATE), files.join(KEY));
    for path in [&certificate_path, &key_path] {
        if path.symlink_metadata().is_ok() {
            return Err(unusable(path, &guarded::Cause::Exists));
        }
    }
    let data = X509Data {
        key_size: KEY_BITS,
        common_name: "Bumpless".into(),
        organization: "Bumpless".into(),
        organizational_unit: String::new(),
        country: String::new(),
        state: String::new(),
        alt_host_names: X509Data::alt_host_names(uri, Some(hosts.to_vec()), false, false, false),
        certificate_duration_days: DAYS,
    };
    let failed = |what: &dyn std::fmt::Display| Problem::new(what.to_string(), "try again");
    let (certificate, key) = X509::cert_and_pkey(&data).map_err(|error| failed(&error))?;
    let der = certificate
        .to_der()
        .map_err(|_| failed(&"no certificate came of it"))?;
    let pem = key.to_der().map_err(|_| failed(&"no key came of it"))?;
    let pem: Zeroizing<String> = pem
        .to_pem("PRIVATE KEY", Default::default())
        .map_err(|_| failed(&"no key came of it"))?;
    make_folders(files)?;
    guarded::create(&key_path, pem.as_bytes(), Guard::Secret)
        .and_then(|()| guarded::create(&certificate_path, &der, Guard::Unchanged))
        .map_err(|cause| unusable(files, &cause))
}

/// Makes the folders of `files`, as far as they are not there.
///
/// # Errors
/// The system refuses.
pub fn make_folders(files: &Path) -> Result<(), Problem> {
    use std::os::unix::fs::DirBuilderExt;
    for folder in [files.to_owned(), files.join(TRUSTED), files.join(REJECTED)] {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
        made.map_err(|error| {
            let wrong = format!("the folder {} cannot be made: {error}", folder.display());
            Problem::new(wrong, "give --files a folder that this user may write")
        })?;
    }
    Ok(())
}

/// Lets in the client whose certificate is the file `from`, in DER or PEM; returns where it is kept.
///
/// # Errors
/// It is no certificate, or cannot be put there.
pub fn trust(files: &Path, from: &Path) -> Result<PathBuf, Problem> {
    let no_certificate = || {
        Problem::new(
            format!("{} is no certificate in DER or PEM", from.display()),
            "give the application certificate of the client",
        )
    };
    let content = fs::read(from).map_err(|error| {
        Problem::new(
            format!("{}: {error}", from.display()),
            "give a file that is there",
        )
    })?;
    let certificate = X509::from_der(&content).or_else(|_| X509::from_pem(&content));
    let certificate = certificate.map_err(|_| no_certificate())?;
    let der = certificate.to_der().map_err(|_| no_certificate())?;
    make_folders(files)?;
    let name = CertificateStore::cert_file_name(&certificate);
    let path = files.join(TRUSTED).join(&name);
    guarded::replace(&path, &der, Guard::Unchanged).map_err(|cause| unusable(&path, &cause))?;
    // What is among the refused ones stays refused.
    match fs::remove_file(files.join(REJECTED).join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Problem::new(
            format!("it cannot be taken from {REJECTED}: {error}"),
            "delete it there",
        )),
        _ => Ok(path),
    }
}

/// Whether the client with the certificate `der` is let in.
pub fn is_trusted(files: &Path, der: &[u8]) -> bool {
    let Ok(certificate) = X509::from_der(der) else {
        return false;
    };
    let path = files
        .join(TRUSTED)
        .join(CertificateStore::cert_file_name(&certificate));
    fs::read(path).is_ok_and(|trusted| trusted == der)
}

/// Keeps a refused certificate, unless as many as ever are kept are there.
pub fn keep_rejected(files: &Path, der: &[u8]) {
    let Ok(certificate) = X509::from_der(der) else {
        return;
    };
    let folder = files.join(REJECTED);
    if fs::read_dir(&folder).is_ok_and(|kept| kept.count() < REJECTED_MAX) {
        let path = folder.join(CertificateStore::cert_file_name(&certificate));
        // What is lost here is a convenience; the refusal is told in any case.
        let _ = guarded::create(&path, der, Guard::Unchanged);
    }
}

/// Takes away what is too much in the folder of refused certificates, the oldest first: the library keeps there whatever
/// a client shows in a session besides its own.
pub fn trim_rejected(files: &Path) {
    let Ok(kept) = fs::read_dir(files.join(REJECTED)) else {
        return;
    };
    let dated = kept.flatten().map(|kept| {
        (
            kept.metadata().and_then(|it| it.modified()).ok(),
            kept.path(),
        )
    });
    let mut dated: Vec<_> = dated.collect();
    dated.sort();
    let surplus = dated.len().saturating_sub(REJECTED_MAX);
    for (_, path) in dated.into_iter().take(surplus) {
        // What stays is tried again.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const URI: &str = "urn:bumpless:p:left";

    fn made() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), URI, &["127.0.0.1".into(), "north".into()]).unwrap();
        folder
    }

    fn told(problems: &[Problem]) -> String {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn what_is_made_may_be_used_and_is_not_overwritten() {
        let folder = made();
        let files = folder.path();
        assert_eq!(told(&check(files, URI)), "");
        let mode = |name: &str| files.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(KEY), mode(TRUSTED)), (0o600, 0o700));
        let again = make(files, URI, &[]).unwrap_err().to_string();
        assert!(again.contains("nothing is overwritten"), "{again}");
        let other = told(&check(files, "urn:bumpless:p:right"));
        assert!(
            other.contains("does not say --uri urn:bumpless:p:right"),
            "{other}"
        );
    }

    #[test]
    fn every_problem_of_the_folder_is_told_at_once() {
        let empty = tempfile::tempdir().unwrap();
        let missing = told(&check(empty.path(), URI));
        for name in [CERTIFICATE, KEY] {
            assert!(
                missing.contains(&format!("{name} is not there")),
                "{missing}"
            );
        }
        let (one, other) = (made(), made());
        let files = one.path();
        fs::copy(other.path().join(KEY), files.join(KEY)).unwrap();
        let open = |name: &str, mode| {
            fs::set_permissions(files.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        open(TRUSTED, 0o777);
        let foreign = told(&check(files, "urn:other"));
        for wrong in [
            "key.pem is not the key of",
            "does not say --uri",
            "trusted may be written by others",
        ] {
            assert!(foreign.contains(wrong), "{wrong}: {foreign}");
        }
        open(KEY, 0o640);
        let exposed = told(&check(files, URI));
        assert!(
            exposed.contains("may be read or written by others"),
            "{exposed}"
        );
        fs::write(files.join(CERTIFICATE), "rubbish").unwrap();
        fs::remove_file(files.join(KEY)).unwrap();
        guarded::create(&files.join(KEY), b"rubbish", Guard::Secret).unwrap();
        let rubbish = told(&check(files, URI));
        for wrong in ["no certificate in DER", "no RSA key in PEM"] {
            assert!(rubbish.contains(wrong), "{wrong}: {rubbish}");
        }
    }

    #[test]
    fn who_is_trusted_is_let_in_and_no_longer_among_the_refused() {
        let (server, client) = (made(), made());
        let files = server.path();
        let der = fs::read(client.path().join(CERTIFICATE)).unwrap();
        assert!(!is_trusted(files, &der));
        keep_rejected(files, &der);
        keep_rejected(files, b"rubbish");
        assert_eq!(fs::read_dir(files.join(REJECTED)).unwrap().count(), 1);
        let kept = trust(files, &client.path().join(CERTIFICATE)).unwrap();
        assert!(is_trusted(files, &der));
        assert_eq!(fs::read_dir(files.join(REJECTED)).unwrap().count(), 0);
        // Another certificate under its name is not it.
        fs::copy(files.join(CERTIFICATE), kept).unwrap();
        assert!(!is_trusted(files, &der));
        let error = trust(files, &files.join(KEY)).unwrap_err().to_string();
        assert!(error.contains("no certificate"), "{error}");
    }

    #[test]
    fn refused_certificates_fill_no_disk() {
        let (server, client) = (made(), made());
        let files = server.path();
        for n in 0..REJECTED_MAX {
            fs::write(files.join(REJECTED).join(n.to_string()), "").unwrap();
        }
        keep_rejected(files, &fs::read(client.path().join(CERTIFICATE)).unwrap());
        let kept = || fs::read_dir(files.join(REJECTED)).unwrap().count();
        assert_eq!(kept(), REJECTED_MAX);
        for n in 0..5 {
            fs::write(files.join(REJECTED).join(format!("more-{n}")), "").unwrap();
        }
        trim_rejected(files);
        assert_eq!(kept(), REJECTED_MAX);
        trim_rejected(client.path());
        trim_rejected(Path::new("/nowhere"));
    }
}
