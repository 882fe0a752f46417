//! TLS between two nodes, in memory: who is let in, who is refused, and that both can say why.

mod support;

use std::fs;
use std::sync::Arc;

use bumpless_pki::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use bumpless_pki::rustls::crypto::ring;
use bumpless_pki::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use bumpless_pki::rustls::version::TLS13;
use bumpless_pki::rustls::{
    self, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, ServerConfig,
    ServerConnection, SignatureScheme,
};
use bumpless_pki::{CertificateFault, Identity, NodeName, PROTOCOL, Refusal, admitted, explain};
use rcgen::{ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SerialNumber};
use support::{DAY, Foreign, NOW, Site, load, load_at, node_params, pem};

/// What both ends come to: who is at the other end, or why not.
type Ends = [Result<NodeName, Refusal>; 2];

/// Passes what each side has to say to the other until both are silent.
fn talk(caller: &mut Connection, called: &mut Connection) -> [Option<rustls::Error>; 2] {
    let mut errors = [None, None];
    for _ in 0..20 {
        let moved = pass(caller, called, &mut errors[1]) | pass(called, caller, &mut errors[0]);
        if !moved {
            return errors;
        }
    }
    panic!("a handshake without an end");
}

fn pass(from: &mut Connection, to: &mut Connection, error: &mut Option<rustls::Error>) -> bool {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() && error.is_none() {
        to.read_tls(&mut rest).unwrap();
        *error = to.process_new_packets().err();
    }
    !bytes.is_empty()
}

fn connect(client: Arc<ClientConfig>, server: Arc<ServerConfig>) -> (Connection, Connection) {
    let anything = ServerName::try_from("node").unwrap();
    let client = ClientConnection::new(client, anything).unwrap();
    let server = ServerConnection::new(server).unwrap();
    (client.into(), server.into())
}

/// `caller` calls whom it takes for `wanted`, and `called` lets `expected` in.
fn meet(caller: &Identity, wanted: &NodeName, called: &Identity, expected: &[NodeName]) -> Ends {
    let client = caller.client_config(wanted).unwrap();
    let server = called.server_config(expected).unwrap();
    let (mut client, mut server) = connect(client, server);
    let [at_caller, at_called] = talk(&mut client, &mut server);
    let end =
        |session: &Connection, error: Option<rustls::Error>, partners: &[NodeName]| match error {
            Some(error) => Err(explain(&error)),
            None => admitted(session, partners).cloned(),
        };
    let wanted = std::slice::from_ref(wanted);
    [
        end(&client, at_caller, wanted),
        end(&server, at_called, expected),
    ]
}

/// Left calls right, each with the configured partner.
fn pair(left: &Identity, right: &Identity) -> Ends {
    let site = |it: &Identity, node: &str| it.name().partner(node).unwrap();
    meet(left, &site(left, "right"), right, &[site(right, "left")])
}

fn refused_by_partner(end: &Result<NodeName, Refusal>) -> bool {
    matches!(end, Err(Refusal::ByPartner(_)))
}

fn both(site: &Site) -> [Identity; 2] {
    ["left.tank", "right.tank"].map(|node| {
        site.issue(node);
        site.load(node).unwrap()
    })
}

#[test]
fn two_nodes_of_one_authority_know_each_other_by_name() {
    let site = Site::new("plant7");
    let [left, right] = both(&site);
    let met = pair(&left, &right);
    assert_eq!(met, [Ok(right.name().clone()), Ok(left.name().clone())]);
    assert_eq!(met[0].as_ref().unwrap().as_str(), "right.tank.plant7");
}
