//! As whom the node logs in, and what protects the password on its way.

use std::path::PathBuf;

use bumpless_guarded_file as guarded;
use opcua::client::IdentityToken;
use opcua::crypto::{SecurityPolicy, X509};
use opcua::types::{EndpointDescription, StatusCode, UserTokenPolicy, UserTokenType};
use zeroize::Zeroizing;

/// What may protect a password by itself, the best first. What is sent without is protected by the session alone.
const PROTECTIONS: [SecurityPolicy; 6] = [
    SecurityPolicy::Aes256Sha256RsaPss,
    SecurityPolicy::Basic256Sha256,
    SecurityPolicy::Aes128Sha256RsaOaep,
    SecurityPolicy::Basic256,
    SecurityPolicy::Basic128Rsa15,
    SecurityPolicy::None,
];

/// A user of the server. The password stays in its file until it is needed.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: String,
    pub file: PathBuf,
}

impl Login {
    /// What the server is shown. The file is read anew each time, so that another password needs no other driver.
    ///
    /// # Errors
    /// As [`password`](Self::password).
    pub fn token(&self) -> Result<IdentityToken, String> {
        let password = self.password()?;
        // The library's copy lasts as long as the session, and nothing overwrites it.
        Ok(IdentityToken::new_user_name(&*self.user, password.as_str()))
    }

    /// The password as it is in its file.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do.
    pub fn password(&self) -> Result<Zeroizing<String>, String> {
        let file = &self.file;
        guarded::password(file).map_err(|cause| {
            let (wrong, remedy) = (cause.wrong(), cause.remedy(file));
            format!("password_file {} {wrong}; {remedy}", file.display())
        })
    }
}

/// What the server is shown.
///
/// # Errors
/// As [`Login::token`].
pub fn token(login: Option<&Login>) -> Result<IdentityToken, String> {
    login.map_or(Ok(IdentityToken::Anonymous), Login::token)
}

/// Has `endpoint` offer one way alone to log in so: the library takes the first, whatever it protects.
///
/// # Errors
/// There is none, and what to do.
pub fn choose_way(login: Option<&Login>, endpoint: &mut EndpointDescription) -> Result<(), String> {
    let offered = endpoint.user_identity_tokens.take();
    let Some(Login { user, .. }) = login else {
        let of_nobody = |it: &UserTokenPolicy| it.token_type == UserTokenType::Anonymous;
        let found = { offered.into_iter().flatten() }.find(of_nobody);
        endpoint.user_identity_tokens = Some(vec![found.ok_or_else(nobody)?]);
        return Ok(());
    };
    let offered = offered.unwrap_or_default().into_iter();
    let named: Vec<_> = offered
        .filter(|it| it.token_type == UserTokenType::UserName)
        .collect();
    if named.is_empty() {
        return Err(format!(
            "it takes no users with a password, so not {user:?}; have it do so for policy {}, or remove user",
            policy_of(endpoint)
        ));
    }
    // To encipher for a server that shows no key, the library cannot.
    let has_key = X509::from_byte_string(&endpoint.server_certificate)
        .is_ok_and(|certificate| certificate.public_key().is_ok());
    let rank = |it: &UserTokenPolicy| {
        let protection = match it.security_policy_uri.is_empty() {
            true => policy_of(endpoint),
            false => SecurityPolicy::from_uri(it.security_policy_uri.as_ref()),
        };
        let usable = has_key || protection == SecurityPolicy::None;
        let at = PROTECTIONS.iter().position(|it| *it == protection);
        at.filter(|_| usable)
    };
    let ranked = named.iter().filter_map(|it| Some((rank(it)?, it)));
    let Some((_, best)) = ranked.min_by_key(|(rank, _)| *rank) else {
        let ways: Vec<_> = named
            .iter()
            .map(|it| format!("{:?}", it.security_policy_uri.as_ref()))
            .collect();
        return Err(format!(
            "it wants the password of {user:?} enciphered by {}, which cannot be; have it offer another policy for users with a password",
            ways.join(", ")
        ));
    };
    endpoint.user_identity_tokens = Some(vec![best.clone()]);
    Ok(())
}

fn policy_of(endpoint: &EndpointDescription) -> SecurityPolicy {
    SecurityPolicy::from_uri(endpoint.security_policy_uri.as_ref())
}

fn nobody() -> String {
    "it takes no anonymous users; give user and password_file, or permit them for this node's certificate".into()
}

/// Why the server makes no session, and what to do.
pub fn refused(login: Option<&Login>, status: StatusCode) -> String {
    use StatusCode as S;
    let of_user = [
        S::BadIdentityTokenRejected,
        S::BadIdentityTokenInvalid,
        S::BadUserAccessDenied,
    ]
    .contains(&status);
    match login {
        Some(Login { user, file }) if of_user => format!(
            "it refuses the user {user:?} ({status}); check the name, the password in {}, and that the server lets this user log in",
            file.display()
        ),
        None if of_user => format!("{status}: {}", nobody()),
        login => {
            let who = login.map_or("anonymous users".into(), |it| {
                format!("the user {:?}", it.user)
            });
            format!(
                "no session ({status}); check that the server trusts the certificate of this node, and takes {who}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_guarded_file::Guard;

    fn login() -> Login {
        Login {
            user: "operator".into(),
            file: "/nowhere/furnace.password".into(),
        }
    }

    /// An endpoint with `policy` that takes passwords under `ways`; what the server's certificate is.
    fn endpoint(policy: SecurityPolicy, ways: &[&str], certificate: &[u8]) -> EndpointDescription {
        let way = |uri: &&str| UserTokenPolicy {
            policy_id: (*uri).into(),
            token_type: UserTokenType::UserName,
            security_policy_uri: (*uri).into(),
            ..UserTokenPolicy::default()
        };
        let anonymous = UserTokenPolicy::anonymous();
        EndpointDescription {
            security_policy_uri: policy.to_uri().into(),
            server_certificate: certificate.to_vec().into(),
            user_identity_tokens: Some(
                [anonymous]
                    .into_iter()
                    .chain(ways.iter().map(way))
                    .collect(),
            ),
            ..EndpointDescription::default()
        }
    }

    fn certificate() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        crate::identity::make(folder.path(), "urn:test", &["localhost".into()]).unwrap();
        std::fs::read(folder.path().join(crate::identity::CERTIFICATE)).unwrap()
    }

    const NONE: &str = "http://opcfoundation.org/UA/SecurityPolicy#None";
    const OLD: &str = "http://opcfoundation.org/UA/SecurityPolicy#Basic128Rsa15";
    const GOOD: &str = "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256";
    const BEST: &str = "http://opcfoundation.org/UA/SecurityPolicy#Aes256_Sha256_RsaPss";
    const STRANGE: &str = "http://opcfoundation.org/UA/SecurityPolicy#ECC_nistP256";

    #[test]
    fn a_password_is_sent_in_the_way_that_protects_it_best() {
        let server = certificate();
        let (open, closed) = (SecurityPolicy::None, SecurityPolicy::Basic256Sha256);
        for (policy, ways, certificate, best) in [
            (open, &[NONE, OLD, GOOD][..], &server[..], GOOD),
            (open, &[NONE, OLD], &server, OLD),
            (open, &[GOOD, NONE], b"", NONE),
            (open, &["", STRANGE], &server, ""),
            (closed, &[NONE, BEST, GOOD], &server, BEST),
            (closed, &[STRANGE, NONE], &server, NONE),
            (closed, &[OLD, ""], &server, ""),
        ] {
            let mut endpoint = endpoint(policy, ways, certificate);
            choose_way(Some(&login()), &mut endpoint).unwrap();
            let left = endpoint.user_identity_tokens.unwrap();
            let left: Vec<_> = left.iter().map(|it| it.policy_id.as_ref()).collect();
            assert_eq!(left, [best], "{policy} {ways:?}");
        }
    }

    #[test]
    fn a_server_that_takes_no_such_user_is_told_so() {
        let policy = SecurityPolicy::None;
        let refused =
            |login: Option<&Login>, mut endpoint| choose_way(login, &mut endpoint).unwrap_err();
        let without = refused(Some(&login()), endpoint(policy, &[], b""));
        assert!(
            without.contains("takes no users with a password"),
            "{without}"
        );
        let strange = refused(Some(&login()), endpoint(policy, &[STRANGE, GOOD], b""));
        assert!(strange.contains("ECC_nistP256"), "{strange}");
        let mut of_users = endpoint(policy, &[NONE], b"");
        of_users.user_identity_tokens.as_mut().unwrap().remove(0);
        let anonymous = refused(None, of_users);
        assert!(
            anonymous.contains("give user and password_file"),
            "{anonymous}"
        );
    }

    #[test]
    fn a_refusal_names_the_user_and_the_file_and_never_the_password() {
        let folder = tempfile::tempdir().unwrap();
        let login = Login {
            file: folder.path().join("password"),
            ..login()
        };
        guarded::create(&login.file, b"hunter2\n", Guard::Secret).unwrap();
        let IdentityToken::UserName(user, password) = login.token().unwrap() else {
            panic!("no user");
        };
        assert_eq!((&*user, &*password.0), ("operator", "hunter2"));
        let shown = format!("{:?} {login:?}", login.token().unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
        for status in [
            StatusCode::BadIdentityTokenRejected,
            StatusCode::BadUserAccessDenied,
        ] {
            let told = refused(Some(&login), status);
            let file = login.file.display().to_string();
            for part in ["\"operator\"", &status.to_string(), &file, "check"] {
                assert!(told.contains(part), "{part}: {told}");
            }
            assert!(!told.contains("hunter2"), "{told}");
            let told = refused(None, status);
            assert!(told.contains("no anonymous users"), "{told}");
        }
        let other = refused(Some(&login), StatusCode::BadCertificateUntrusted);
        assert!(other.contains("trusts the certificate"), "{other}");
        std::fs::write(&login.file, "").unwrap();
        let empty = login.token().unwrap_err();
        assert!(empty.contains("is empty"), "{empty}");
    }
}
