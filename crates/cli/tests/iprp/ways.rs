//! The hops on each network.

use std::process::Command;

use serde_json::Value;

use crate::site::{BOTH, Site};
use crate::support::hosts::with_hosts;
use crate::support::process::{Process, json, said};

/// What `tracert` finds from `left`: for each network its end and who answered at each hop; and the exit status.
pub fn hops(site: &Site, arguments: &[&str]) -> (Vec<(Value, Vec<Value>)>, Option<i32>) {
    let file = site.name("left");
    let all = [&["iprp", "tracert", &file, "--json"], arguments].concat();
    let run = || json(&all, "bumpless.iprp.tracert/1");
    let (found, status) = site.hosts.at("left", run);
    let network = |it: &Value| {
        let hops = it["hops"].as_array().unwrap().iter();
        let from = |hop: &Value| hop["answers"][0]["from"].clone();
        (it["end"].clone(), hops.map(from).collect())
    };
    let networks = found["networks"].as_array().unwrap();
    (networks.iter().map(network).collect(), status)
}

pub fn the_hops_on_each_network_are_found_and_the_network_that_is_silent_is_named() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        // A router: what is behind `right` is two hops away on network A.
        let ip = |host: &str, arguments: &str| {
            let mut command = Command::new("ip");
            command.args(arguments.split(' '));
            let done = site.hosts.at(host, || command.status().unwrap());
            assert!(done.success(), "ip {arguments}");
        };
        ip("left", "route add 10.99.0.2/32 via 10.77.1.2 dev na");
        ip("right", "route add 10.99.0.2/32 via 10.77.102.2 dev f");
        ip("field", "address add 10.99.0.2/32 dev lo");
        ip("field", "route replace 10.77.1.1/32 via 10.77.102.1 dev f2");
        site.hosts.at("right", || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        });
        let behind = ["--to", "10=10.99.0.2", "--to", "11=10.77.2.2"];
        let (networks, status) = hops(&site, &behind);
        assert_eq!(status, Some(0), "{networks:?}");
        assert_eq!(
            networks,
            [
                (
                    "reached".into(),
                    vec!["10.77.1.2".into(), "10.99.0.2".into()]
                ),
                ("reached".into(), vec!["10.77.2.2".into()]),
            ]
        );
        let (networks, status) = hops(
            &site,
            &["--to", "10=10.99.0.2", "--hops", "1", "--probes", "1"],
        );
        assert_eq!((status, &networks[0].0), (Some(1), &"too_far".into()));
        // Whom the daemon knows is found by one address, without any rights.
        BOTH.iter().for_each(|host| site.start(host));
        // One probe: the kernel answers six at once.
        let (networks, status) = hops(&site, &["10.77.1.2", "--probes", "1"]);
        let ends: Vec<_> = networks.iter().map(|(end, _)| end.as_str()).collect();
        assert_eq!(
            (status, ends),
            (Some(0), vec![Some("reached"), Some("reached")])
        );
        let file = site.name("left");
        // Meanwhile one is asked for who does not show himself.
        let told_of = site.folder.path().join("nobody");
        let nobody = ["iprp", "tracert", &file, "10.77.1.9"];
        let nobody = site.hosts.at("left", || Process::start(&nobody, &told_of));
        site.hosts.cut("B");
        let cut = [
            "iprp",
            "tracert",
            &file,
            "10.77.2.2",
            "--probes",
            "1",
            "--wait",
            "100",
        ];
        let (text, _, status) = site.hosts.at("left", || said(&cut));
        assert_eq!(status, Some(1), "{text}");
        for words in [
            "network 10: 10.77.1.1 on na to 10.77.1.2",
            "10.77.1.2 reached in one hop",
            "network 11: 10.77.2.1 on nb to 10.77.2.2\n  nothing answers",
        ] {
            assert!(text.contains(words), "{words:?} in: {text}");
        }
        // What is asked for is not this host's.
        let told = |arguments: &[&str], words: &str| {
            let all = [&["iprp", "tracert", &file], arguments].concat();
            let (_, error, status) = site.hosts.at("left", || said(&all));
            assert!(matches!(status, Some(1 | 2)), "{error}");
            assert!(error.contains(words), "{words:?} in: {error}");
        };
        told(&["--to", "12=10.77.1.2"], "it is on 10, 11");
        told(&["--to", "10=fd00::2"], "the same version of IP");
        told(&["--to", "10.77.1.2"], "10=192.168.1.2");
        told(
            &["--to", "10=10.77.1.255"],
            "all hosts on the network of na",
        );
        for arguments in [&["ping"][..], &["tracert"], &["test", "--port", "4761"]] {
            let host = [&["iprp"], arguments, &[&file, "10.77.2.255"]].concat();
            let (_, error, status) = site.hosts.at("left", || said(&host));
            assert_eq!(status, Some(2), "{error}");
            assert!(error.contains("all hosts on the network of nb"), "{error}");
        }
        // One of IPv4 may be written as one of IPv6.
        let ping = ["iprp", "ping", &file, "::ffff:10.77.1.2", "--count", "1"];
        let (text, error, _) = site.hosts.at("left", || said(&ping));
        assert!(text.contains("network 10 to 10.77.1.2"), "{text}{error}");
        assert_eq!(nobody.wait().code(), Some(1));
        let error = std::fs::read_to_string(told_of).unwrap();
        assert!(error.contains("--to IND=ADDRESS"), "{error}");
    });
}
