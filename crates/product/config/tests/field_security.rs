//! Modbus/TCP Security in the file: half of it is refused, all of that at once, and what protects nothing is called weak.

use bumpless_config::{Config, DeviceSecurity, FieldDevices, Problem, WeaknessCode, sample};

/// What is wrong with `text`; nothing if it is accepted.
fn problems(text: &str) -> Vec<Problem> {
    Config::parse(text, "test.toml").err().unwrap_or_default()
}

/// The sample with these lines in place of the address of its field.
fn with_field(lines: &str) -> String {
    let address = "address = \"127.0.0.10:5502\"";
    let text = sample();
    assert!(text.contains(address));
    text.replacen(address, lines, 1)
}

fn tank(lines: &str) -> (std::net::SocketAddr, Option<DeviceSecurity>, Config) {
    let config = Config::parse(&with_field(lines), "t").unwrap_or_else(|it| panic!("{it:#?}"));
    match &config.applications[0].field.as_ref().unwrap().devices {
        FieldDevices::Tank { address, security } => (*address, security.clone(), config),
        FieldDevices::Program(_) => panic!("no tank"),
    }
}

fn is_weak(config: &Config) -> bool {
    let mut codes = config.weaknesses.iter().map(|it| it.code);
    codes.any(|code| code == WeaknessCode::FieldOpen)
}

#[test]
fn the_port_is_502_for_an_open_device_and_802_for_a_secure_one_unless_it_is_given() {
    for (lines, port, secure) in [
        ("address = \"192.0.2.9\"", 502, false),
        ("address = \"192.0.2.9\"\nsecurity = \"open\"", 502, false),
        ("address = \"192.0.2.9\"\nsecurity = \"tls\"", 802, true),
        (
            "address = \"192.0.2.9:1802\"\nsecurity = \"tls\"",
            1802,
            true,
        ),
        ("address = \"2001:db8::9\"\nsecurity = \"tls\"", 802, true),
    ] {
        let (address, security, config) = tank(lines);
        assert_eq!(
            (address.port(), security.is_some()),
            (port, secure),
            "{lines}"
        );
        assert_eq!(is_weak(&config), !secure, "{lines}");
    }
}

#[test]
fn both_nodes_must_have_the_same_security_and_an_open_device_says_nothing_of_it() {
    let fingerprint = |lines| tank(lines).2.fingerprint();
    let open = fingerprint("address = \"192.0.2.9:802\"");
    assert_eq!(
        open,
        fingerprint("address = \"192.0.2.9:802\"\nsecurity = \"open\"")
    );
    let by_address = fingerprint("address = \"192.0.2.9:802\"\nsecurity = \"tls\"");
    let by_name = "address = \"192.0.2.9:802\"\nsecurity = \"tls\"\nserver_name = \"plant.field\"";
    assert_ne!(open, by_address);
    assert_ne!(by_address, fingerprint(by_name));
    // Where its own certificates are is a node's own affair.
    let elsewhere = format!("{by_name}\ncertificates = \"elsewhere\"");
    assert_eq!(fingerprint(by_name), fingerprint(&elsewhere));
}

#[test]
fn half_of_security_is_refused_and_all_of_it_is_said_at_once() {
    let lines = "address = \"192.0.2.9\"\nserver_name = \"plant.field\"\ncertificates = \"pki\"";
    let found = problems(&with_field(lines));
    let told: Vec<_> = found
        .iter()
        .map(|it| (&it.field[..], it.wrong.contains("open")))
        .collect();
    let fields = [
        "application[1].field.server_name",
        "application[1].field.certificates",
    ];
    assert_eq!(told, fields.map(|field| (field, true)), "{found:#?}");

    for wrong in ["a b", "-x.y", "10.0.0", "", "*.site"] {
        let lines =
            format!("address = \"192.0.2.9\"\nsecurity = \"tls\"\nserver_name = \"{wrong}\"");
        let found = problems(&with_field(&lines));
        assert_eq!(found.len(), 1, "{wrong}: {found:#?}");
        assert!(found[0].field.ends_with("server_name"), "{found:#?}");
    }
    let found = problems(&with_field("address = \"192.0.2.9\"\nsecurity = \"ssl\""));
    assert!(found[0].right.contains("\"tls\""), "{found:#?}");
}

#[test]
fn without_certificates_of_messages_those_for_devices_must_be_named() {
    let open = with_field("address = \"192.0.2.9\"\nsecurity = \"tls\"").replacen(
        "#packets = \"protected\"",
        "packets = \"open\"",
        1,
    );
    let found = problems(&open);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].field.ends_with("field.certificates"), "{found:#?}");
    assert!(found[0].right.contains("pki issue"), "{found:#?}");
    let address = "address = \"192.0.2.9\"
";
    let named = open.replacen(
        address,
        &format!(
            "{address}certificates = \"own\"
"
        ),
        1,
    );
    let config = Config::parse(&named, "t").unwrap();
    let field = config.applications[0].field.as_ref().unwrap();
    assert_eq!(field.certificates.as_deref(), Some("own".as_ref()));
}
