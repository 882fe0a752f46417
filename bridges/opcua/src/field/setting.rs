//! What the node tells the driver, read and checked.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use bumpless_field_driver::{Point, Setup, ValueKind};
use bumpless_guarded_file::{self as guarded, Guard};
use opcua::crypto::{SecurityPolicy, X509};
use opcua::types::NodeId;

use crate::identity;

/// No certificate is longer, bytes.
const FILE_MAX: usize = 16 << 10;

/// A value of the server.
#[derive(Clone, Debug)]
pub struct Tag {
    pub node: NodeId,
    pub kind: ValueKind,
}

/// What protects the session.
#[derive(Clone, Debug)]
pub struct Protection {
    pub policy: SecurityPolicy,
    /// The folder with the node's certificate and key.
    pub own: PathBuf,
    /// The certificate of the one server that is believed, in DER.
    pub server: Vec<u8>,
    /// The file with that.
    pub file: PathBuf,
}

/// One server, and what is read and written there.
#[derive(Clone, Debug)]
pub struct Setting {
    pub address: SocketAddr,
    pub url: String,
    /// ApplicationUri of the node.
    pub uri: String,
    pub protection: Option<Protection>,
    pub inputs: Vec<Tag>,
    pub outputs: Vec<Tag>,
}

impl Setting {
    /// # Errors
    /// All that is wrong, and what to do.
    pub fn of(setup: Setup) -> Result<Self, String> {
        let mut wrong = Vec::new();
        let address = SocketAddr::from_str(&setup.address);
        if address.is_err() {
            wrong.push(format!("{:?} is no IP address with a port", setup.address));
        }
        let path = setup.option("path").unwrap_or("/");
        let uri = setup.option("uri").unwrap_or("urn:bumpless").to_owned();
        let protection = protection(&setup, &uri, &mut wrong);
        let inputs = tags(&setup.inputs, &mut wrong);
        let outputs = tags(&setup.outputs, &mut wrong);
        match (address, wrong.is_empty()) {
            (Ok(address), true) => Ok(Self {
                address,
                url: format!("opc.tcp://{address}{path}"),
                uri,
                protection,
                inputs,
                outputs,
            }),
            _ => Err(wrong.join("; ")),
        }
    }
}

fn tags(points: &[Point], wrong: &mut Vec<String>) -> Vec<Tag> {
    let mut all = Vec::new();
    for point in points {
        match NodeId::from_str(&point.name) {
            Ok(node) => all.push(Tag {
                node,
                kind: point.kind,
            }),
            Err(_) => wrong.push(format!("{:?} is no NodeId", point.name)),
        }
    }
    all
}

fn protection(setup: &Setup, uri: &str, wrong: &mut Vec<String>) -> Option<Protection> {
    let policy = match setup.option("policy") {
        Some("None") => return None,
        Some("Basic256Sha256") => SecurityPolicy::Basic256Sha256,
        Some("Aes256_Sha256_RsaPss") => SecurityPolicy::Aes256Sha256RsaPss,
        other => {
            wrong.push(format!("{other:?} is no security policy"));
            return None;
        }
    };
    let (Some(own), Some(server)) = (setup.option("own"), setup.option("server")) else {
        wrong.push("the folder with certificates is not named".into());
        return None;
    };
    let (own, server) = (PathBuf::from(own), PathBuf::from(server));
    let problems = identity::check(&own, uri);
    wrong.extend(problems.iter().map(ToString::to_string));
    let content = guarded::read(&server, Guard::Unchanged, FILE_MAX);
    let content = content.map_err(|cause| {
        wrong.push(format!(
            "{} {}: put the certificate of the server there, in DER",
            server.display(),
            cause.wrong()
        ));
    });
    let content = content.ok()?;
    if X509::from_der(&content).is_err() {
        wrong.push(format!(
            "{} is no certificate in DER: convert it with `openssl x509 -outform der`",
            server.display()
        ));
        return None;
    }
    if !wrong.is_empty() {
        return None;
    }
    // The library believes what is in its folder; which of that is the server's, the endpoint says.
    if !identity::is_trusted(&own, &content)
        && let Err(problem) = identity::trust(&own, &server)
    {
        wrong.push(problem.to_string());
        return None;
    }
    let own = fs::canonicalize(&own).unwrap_or(own);
    Some(Protection {
        policy,
        own,
        server: content.to_vec(),
        file: server,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_field_driver::Direction;

    fn setup(options: &[(&str, &str)], names: &[&str]) -> Setup {
        let point = |name: &&str| Point {
            direction: Direction::Input,
            kind: ValueKind::F64,
            name: (*name).into(),
        };
        Setup {
            device: "furnace".into(),
            address: "192.0.2.1:4840".into(),
            options: options
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            inputs: names.iter().map(point).collect(),
            outputs: Vec::new(),
        }
    }

    #[test]
    fn a_server_has_its_address_in_its_url_and_its_values_as_nodes() {
        let options = [("policy", "None"), ("path", "/UA/Server")];
        let setting = Setting::of(setup(&options, &["ns=2;s=a;b", "i=2259"])).unwrap();
        assert_eq!(setting.url, "opc.tcp://192.0.2.1:4840/UA/Server");
        assert_eq!(setting.inputs[0].node, NodeId::new(2, "a;b"));
        assert_eq!(setting.inputs[1].node, NodeId::new(0, 2259_u32));
        assert!(setting.protection.is_none());
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let options = [
            ("policy", "Basic256Sha256"),
            ("own", "/nowhere/left.p"),
            ("server", "/nowhere/servers/furnace.der"),
        ];
        let wrong = Setting::of(setup(&options, &["x"])).unwrap_err();
        for part in [
            "\"x\" is no NodeId",
            "/nowhere/left.p/certificate.der",
            "/nowhere/left.p/key.pem",
            "/nowhere/servers/furnace.der",
        ] {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
        let none = Setting::of(setup(&[], &[])).unwrap_err();
        assert!(none.contains("security policy"), "{none}");
    }
}
