//! The test stream.

use std::path::PathBuf;

use serde_json::Value;

use crate::site::{BOTH, PORT, Site};
use crate::support::hosts::with_hosts;
use crate::support::process::{Process, said};

/// Both ends of `iprp test` at work: what they print as JSON ends in files.
struct Trial {
    ends: Vec<(Process, PathBuf)>,
}

impl Trial {
    fn begin(site: &Site, port: u16, name: &str) -> Self {
        let port = port.to_string();
        let start = |host: &str, arguments: &[&str]| {
            let said = site.folder.path().join(format!("{name}.{host}"));
            let file = site.name(host);
            let all = [
                &["iprp", "test", &file, "--port", &port, "--json"],
                arguments,
            ]
            .concat();
            let process = site.hosts.at(host, || Process::start(&all, &said));
            (process, said)
        };
        // The sender says hello until the listener is there.
        let sending = ["10.77.1.2", "--count", "100", "--rate", "500"];
        let ends = vec![start("right", &["--listen"]), start("left", &sending)];
        Self { ends }
    }

    /// What the listener and the sender say, and the sender's exit status.
    fn end(self) -> (Value, Value, Option<i32>) {
        let mut ended: Vec<_> = self
            .ends
            .into_iter()
            .map(|(process, said)| {
                let status = process.wait().code();
                let text = std::fs::read_to_string(said).unwrap();
                let value: Value = serde_json::from_str(&text).expect(&text);
                assert_eq!(value["schema"], "bumpless.iprp.test/1", "{text}");
                (value, status)
            })
            .collect();
        let (sender, status) = ended.pop().unwrap();
        let (listener, _) = ended.pop().unwrap();
        (listener, sender, status)
    }
}

pub fn a_test_stream_tells_what_came_and_what_each_network_carried_and_lost() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        // The sender's host protects nothing that comes to it: answers are not replicated.
        let (a, b) = ("interface = \"na\"", "interface = \"nb\"");
        site.write("left", a, b, "");
        BOTH.iter().for_each(|host| site.start(host));
        let file = site.name("left");
        let nobody = site.folder.path().join("nobody");
        let arguments = ["iprp", "test", &file, "10.77.1.2", "--port", "4799"];
        let alone = site
            .hosts
            .at("left", || Process::start(&arguments, &nobody));
        let of_network = |value: &Value, field: &str| {
            let networks = value["networks"].as_array().unwrap().iter();
            networks.map(|it| it[field].clone()).collect::<Vec<_>>()
        };
        let whole = |value: &Value| {
            let stream = &value["stream"];
            assert_eq!(
                (&stream["arrived"], &stream["lost"]),
                (&100.into(), &0.into()),
                "{value}"
            );
            assert_eq!(stream["doubled"], 0, "{value}");
        };
        // Beside one that is monitored, one that is not.
        let monitored = Trial::begin(&site, PORT, "monitored");
        let other = Trial::begin(&site, PORT + 1, "other");
        let (listener, sender, status) = monitored.end();
        whole(&listener);
        whole(&sender);
        assert_eq!(status, Some(0), "{sender}");
        assert_eq!(of_network(&sender, "ind"), [10, 11]);
        assert_eq!(of_network(&sender, "sent"), [100, 100], "{sender}");
        assert_eq!(of_network(&sender, "lost"), [0, 0], "{sender} {listener}");
        let firsts = of_network(&listener, "first");
        let firsts: u64 = firsts.iter().filter_map(Value::as_u64).sum();
        assert_eq!(firsts, 100, "each was handed on once: {listener}");
        assert_eq!(sender["warnings"], serde_json::json!([]));
        let (listener, sender, status) = other.end();
        whole(&sender);
        assert_eq!((status, &sender["replicated"]), (Some(0), &false.into()));
        for value in [listener, sender] {
            let warning = value["warnings"].to_string();
            assert!(warning.contains("4714 is not monitored"), "{warning}");
            assert!(warning.contains("iprp reload"), "{warning}");
        }
        // One network is dead: what it lost is told, and the report comes back on the other one.
        site.hosts.cut("A");
        let (_, sender, status) = Trial::begin(&site, PORT, "cut").end();
        whole(&sender);
        assert_eq!(status, Some(0), "{sender}");
        assert_eq!(of_network(&sender, "lost"), [100, 0], "{sender}");
        assert_eq!(alone.wait().code(), Some(1));
        let error = std::fs::read_to_string(nobody).unwrap();
        assert!(error.contains("--listen --port 4799"), "{error}");
        let long = [
            "iprp",
            "test",
            &file,
            "10.77.1.2",
            "--port",
            "1",
            "--rate",
            "1",
            "-c",
            "700",
        ];
        let (_, error, status) = said(&long);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains("longer than 600 s"), "{error}");
    });
}
