//! Which of the server's endpoints is taken: the one with the configured security, of the server that is believed.

use opcua::crypto::SecurityPolicy;
use opcua::types::{EndpointDescription, MessageSecurityMode};

use super::login;
use super::setting::Setting;

/// The endpoint with the configured security, of the server that is believed.
///
/// # Errors
/// There is none, and what to do.
pub fn chosen(
    setting: &Setting,
    endpoints: Vec<EndpointDescription>,
) -> Result<EndpointDescription, String> {
    let (policy, mode) = match &setting.protection {
        Some(protection) => (protection.policy, MessageSecurityMode::SignAndEncrypt),
        None => (SecurityPolicy::None, MessageSecurityMode::None),
    };
    let offered: Vec<_> = endpoints
        .iter()
        .map(|it| it.security_policy_uri.as_ref().to_owned())
        .collect();
    let fits = |it: &EndpointDescription| {
        it.security_policy_uri.as_ref() == policy.to_uri() && it.security_mode == mode
    };
    let Some(mut endpoint) = endpoints.into_iter().find(fits) else {
        return Err(format!(
            "it offers no endpoint with policy {policy} and mode {mode}, but {}; change policy, or the server",
            offered.join(", ")
        ));
    };
    if let Some(protection) = &setting.protection
        && endpoint.server_certificate.as_ref() != protection.server
    {
        return Err(format!(
            "it shows another certificate than {}; if that is right, put the server's there",
            protection.file.display()
        ));
    }
    login::choose_way(setting.login.as_ref(), &mut endpoint)?;
    // What it calls itself may be a name that nobody here knows.
    endpoint.endpoint_url = setting.url.as_str().into();
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::setting::Protection;
    use opcua::types::UserTokenPolicy;

    fn endpoint(policy: SecurityPolicy, certificate: &[u8]) -> EndpointDescription {
        EndpointDescription {
            security_policy_uri: policy.to_uri().into(),
            security_mode: match policy {
                SecurityPolicy::None => MessageSecurityMode::None,
                _ => MessageSecurityMode::SignAndEncrypt,
            },
            server_certificate: certificate.to_vec().into(),
            user_identity_tokens: Some(vec![UserTokenPolicy::anonymous()]),
            ..EndpointDescription::default()
        }
    }

    #[test]
    fn a_server_with_another_certificate_or_no_security_is_refused() {
        let policy = SecurityPolicy::Basic256Sha256;
        let setting = Setting {
            address: "192.0.2.1:4840".parse().unwrap(),
            url: "opc.tcp://192.0.2.1:4840/".into(),
            uri: "urn:bumpless".into(),
            protection: Some(Protection {
                policy,
                own: "own".into(),
                server: b"pinned".to_vec(),
                file: "servers/furnace.der".into(),
            }),
            login: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let open = || endpoint(SecurityPolicy::None, b"pinned");
        let other = chosen(&setting, vec![open(), endpoint(policy, b"other")]).unwrap_err();
        assert!(other.contains("than servers/furnace.der"), "{other}");
        let none = chosen(&setting, vec![endpoint(policy, b"")]).unwrap_err();
        assert!(none.contains("another certificate"), "{none}");
        let unprotected = chosen(&setting, vec![open()]).unwrap_err();
        assert!(
            unprotected.contains("no endpoint with policy"),
            "{unprotected}"
        );
        assert!(chosen(&setting, vec![open(), endpoint(policy, b"pinned")]).is_ok());
    }
}
