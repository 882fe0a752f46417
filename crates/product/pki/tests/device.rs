//! TLS between a node and a field device, in memory: which device is believed, and whom a device lets in.

mod support;

use std::sync::Arc;

use bumpless_pki::rustls::ServerConfig;
use bumpless_pki::rustls::version::{TLS12, TLS13};
use bumpless_pki::{CertificateFault, DeviceName, Identity, IdentityPaths, Refusal, explain};
use rcgen::{CertificateParams, KeyUsagePurpose};
use support::handshake::{connect, files, impostor, intruder, talk};
use support::{Foreign, NOW, clock, load, node_params};
use tempfile::TempDir;

/// An authority of the plant's own, with a node and a device.
struct Plant {
    folder: TempDir,
    authority: Foreign,
    node: Identity,
    paths: IdentityPaths,
}

impl Plant {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Foreign::new("works");
        let params = node_params(&["left.tank.works"]);
        let paths = authority.issue(&folder.path().join("left.tank"), &params, "");
        Self {
            node: load(&paths, "left.tank").unwrap(),
            folder,
            authority,
            paths,
        }
    }

    fn issue(&self, params: &CertificateParams) -> IdentityPaths {
        let folder = self.folder.path().join("device");
        self.authority.issue(&folder, params, "")
    }

    /// A device with a certificate for these names.
    fn device(&self, names: &[&str]) -> Arc<ServerConfig> {
        let paths = self.issue(&node_params(names));
        let device = Identity::load_as_named(&paths, clock(NOW)).unwrap();
        device.field_server_config().unwrap()
    }

    /// Why the node does not believe `device` to be that of this name.
    fn call(&self, name: &str, device: Arc<ServerConfig>) -> Option<Refusal> {
        let name = DeviceName::new(Some(name), [192, 0, 2, 9].into(), "works").unwrap();
        let client = self.node.field_client_config(&name).unwrap();
        let (mut client, mut server) = connect(client, device);
        let [at_node, _] = talk(&mut client, &mut server);
        at_node.map(|error| explain(&error))
    }
}

#[test]
fn a_wildcard_stands_for_no_device() {
    let plant = Plant::new();
    let exact = plant.device(&["pump.field.works"]);
    assert_eq!(plant.call("pump.field", exact), None);
    let wild = plant.device(&["*.field.works", "spare.field.works"]);
    let refused = plant.call("pump.field", wild);
    let is_other = |it: &Refusal| {
        matches!(it, Refusal::Partner(CertificateFault::OtherName { found, .. })
            if found.iter().any(|name| name == "*.field.works"))
    };
    assert!(refused.as_ref().is_some_and(is_other), "{refused:?}");
}

#[test]
fn a_device_whose_certificate_is_not_for_signing_is_refused() {
    let plant = Plant::new();
    let mut params = node_params(&["pump.field.works"]);
    params.key_usages = vec![KeyUsagePurpose::KeyEncipherment];
    let device = impostor(files(&plant.issue(&params)), &[]);
    let usage = CertificateFault::Usage("digital signatures");
    let refused = plant.call("pump.field", device);
    assert_eq!(refused, Some(Refusal::Partner(usage)));
}

#[test]
fn a_client_may_speak_tls_1_2_and_must_show_a_certificate() {
    let plant = Plant::new();
    let device = plant.device(&["pump.field.works"]);
    for version in [&TLS12, &TLS13] {
        for shown in [Some(files(&plant.paths)), None] {
            let expected = shown.is_none().then_some(Refusal::NoCertificate);
            let client = Arc::new(intruder(shown, &[], version));
            let (mut client, mut server) = connect(client, Arc::clone(&device));
            let [_, at_device] = talk(&mut client, &mut server);
            let refused = at_device.map(|error| explain(&error));
            assert_eq!(refused, expected, "{version:?}");
            assert_eq!(server.protocol_version(), Some(version.version));
        }
    }
}
