//! What the node tells the driver, read and checked.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use bumpless_field_driver::{Point, Setup, ValueKind};
use bumpless_guarded_file::{self as guarded, Guard};
use opcua::crypto::{SecurityPolicy, X509};

use super::login::Login;
use super::namespace::Place;
use crate::identity;

/// No certificate is longer, bytes.
const FILE_MAX: usize = 16 << 10;

/// A value of the server.
#[derive(Clone, Debug)]
pub struct Tag {
    /// What the configuration calls it.
    pub name: String,
    pub place: Place,
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
    /// As whom the node logs in; `None`: anonymous.
    pub login: Option<Login>,
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
        let login = login(&setup, &mut wrong);
        let inputs = tags(&setup.inputs, &mut wrong);
        let outputs = tags(&setup.outputs, &mut wrong);
        match (address, wrong.is_empty()) {
            (Ok(address), true) => Ok(Self {
                address,
                url: format!("opc.tcp://{address}{path}"),
                uri,
                protection,
                login,
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
        match Place::parse(&point.name) {
            Some(place) => all.push(Tag {
                name: point.name.clone(),
                place,
                kind: point.kind,
            }),
            None => wrong.push(format!("{:?} is no NodeId", point.name)),
        }
    }
    all
}

fn login(setup: &Setup, wrong: &mut Vec<String>) -> Option<Login> {
    let (user, file) = (setup.option("user")?, setup.option("password_file"));
    let Some(file) = file else {
        wrong.push("the file with the password is not named".into());
        return None;
    };
    let login = Login {
        user: user.into(),
        file: file.into(),
    };
    let open = setup.option("policy") == Some("None");
    if open && setup.option("password_exposed") != Some("true") {
        wrong.push(
            "the password would be sent unprotected, since policy is \"None\": choose another policy, or password_exposed = true"
                .into(),
        );
        return None;
    }
    // It is read again when it is needed.
    match login.password() {
        Ok(_) => Some(login),
        Err(why) => {
            wrong.push(why);
            None
        }
    }
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
    use std::os::unix::fs::PermissionsExt;

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
        let of = |at: usize| Some(setting.inputs[at].place.clone());
        assert_eq!(of(0), Place::parse("ns=2;s=a;b"));
        assert_eq!(of(1), Place::parse("i=2259"));
        assert!(setting.protection.is_none() && setting.login.is_none());
    }

    #[test]
    fn a_password_is_refused_where_nothing_protects_it_and_where_its_file_is_not_right() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let path = file.display().to_string();
        let mut options = vec![
            ("policy", "None"),
            ("user", "operator"),
            ("password_file", &*path),
        ];
        let told = |options: &[_]| Setting::of(setup(options, &[])).unwrap_err();
        let exposed = told(&options);
        assert!(exposed.contains("sent unprotected"), "{exposed}");
        options.push(("password_exposed", "true"));
        let missing = told(&options);
        assert!(missing.contains("is not there"), "{missing}");
        guarded::create(&file, b"hunter2", Guard::Secret).unwrap();
        let setting = Setting::of(setup(&options, &[])).unwrap();
        assert_eq!(setting.login.as_ref().unwrap().user, "operator");
        assert!(!format!("{setting:?}").contains("hunter2"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let open = told(&options);
        assert!(
            open.contains("mode 644") && open.contains("chmod 600"),
            "{open}"
        );
        options.remove(2);
        let nowhere = told(&options);
        assert!(nowhere.contains("is not named"), "{nowhere}");
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let options = [
            ("policy", "Basic256Sha256"),
            ("own", "/nowhere/left.p"),
            ("server", "/nowhere/servers/furnace.der"),
            ("user", "operator"),
            ("password_file", "/nowhere/password"),
        ];
        let wrong = Setting::of(setup(&options, &["x"])).unwrap_err();
        for part in [
            "\"x\" is no NodeId",
            "/nowhere/left.p/certificate.der",
            "/nowhere/left.p/key.pem",
            "/nowhere/servers/furnace.der",
            "/nowhere/password is not there",
        ] {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
        let none = Setting::of(setup(&[], &[])).unwrap_err();
        assert!(none.contains("security policy"), "{none}");
    }
}
