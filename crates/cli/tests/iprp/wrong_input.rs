//! Wrong files, wrong usage and missing rights.

use std::process::Command;

use bumpless_testing::need_root;

use crate::site::{PORT, Site};
use crate::support::hosts::with_hosts;
use crate::support::process::{BUMPLESS, outcome, said};
use crate::support::wait_for;

pub fn each_wrong_input_is_told_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    let told = |text: &str, words: &[&str]| {
        let text = format!("[security]\nkeys = [\"k\"]\n{text}");
        std::fs::write(&file, &text).unwrap();
        let (_, error, status) = said(&["iprp", "check", file.to_str().unwrap()]);
        assert_eq!(status, Some(2), "{text}{error}");
        words
            .iter()
            .for_each(|word| assert!(error.contains(word), "{word:?} in: {error}"));
    };
    let network = "[[network]]\nind = 1\n";
    told("", &["network: is missing"]);
    told(
        &format!("{network}prefix = \"10.1.2.3/16\""),
        &["wrong.toml:5", "\"10.1.0.0/16\""],
    );
    told(&format!("{network}name = \"*\""), &["every name matches"]);
    told(
        &format!("{network}name = \"nw a\""),
        &["in which * stands for anything"],
    );
    told(
        &format!("{network}interface = \"\""),
        &["the name of one interface"],
    );
    told(network, &["does not say which address is meant"]);
    told("[[network]]\nind = 16\ninterface = \"a\"", &["0 to 15"]);
    told(
        "[[network]]\nind = 1\nprefix = \"10.0.0.0/8\"\n[[network]]\nind = 2\nprefix = \"10.1.0.0/16\"\n",
        &["10.0.0.0/8", "overlap", "line 3", "narrower"],
    );
    told(
        "[[network]]\nind = 1\ninterface = \"a\"\n[[network]]\nind = 2\ninterface = \"a\"\n",
        &["\"a\"", "another network"],
    );
    let good = format!("{network}interface = \"a\"\n");
    told(
        &format!(
            "{good}[[monitor]]\nprotocol = \"udp\"\nport = 9\n[[monitor]]\nprotocol = \"udp\"\nport = \"5-20\""
        ),
        &["wrong.toml:11", "monitored already", "line 6", "once"],
    );
    told(
        &format!("{good}[[monitor]]\nprotocol = \"udp\"\nport = 4761"),
        &["data_port", "no application has"],
    );
    told(
        &format!("{good}[[monitor]]\nprotocol = \"udp\"\nport = \"9-5\""),
        &["begins at 9"],
    );
    told(
        &format!("{good}[[monitor]]\nprotocol = \"icmp\"\nport = 9"),
        &["\"udp\" or \"tcp\""],
    );
    told(
        &format!("{good}[host]\ndata_port = 4760"),
        &["control_port", "its own port"],
    );
    told(&format!("{good}[[monitors]]"), &["did you mean monitor?"]);
    told(
        &format!("{good}[timing]\nkey_lifetime_s = 10"),
        &["30000 ms", "two advertisements"],
    );
    // All at once.
    told(
        "[[network]]\nind = 99\n[[monitor]]\nport = 0\nmode = \"fast\"\n",
        &[
            "network[1].ind",
            "monitor[1].protocol",
            "monitor[1].port",
            "monitor[1].mode",
        ],
    );
    // The sample is right, and says what this host lacks.
    let (sample, _, _) = said(&["iprp", "check", "--sample"]);
    std::fs::write(&file, sample).unwrap();
    let (here, _, status) = said(&["iprp", "check", file.to_str().unwrap()]);
    assert_eq!(status, Some(1), "{here}");
    assert!(
        here.contains("is valid") && here.contains("pki issue"),
        "{here}"
    );
    assert!(here.contains("none of the rules matches"), "{here}");
}

pub fn missing_rights_and_a_second_daemon_are_told() {
    with_hosts(|hosts| {
        need_root();
        let mut site = Site::new(hosts);
        site.start("left");
        let file = site.name("left");
        let again = site.hosts.at("left", || said(&["iprp", "run", &file]));
        assert_eq!(again.2, Some(1));
        let process = format!("process {}", site.left.as_ref().unwrap().pid());
        for words in ["runs already on this host", &process, "iprp reload"] {
            assert!(again.1.contains(words), "{words:?} in: {again:?}");
        }
        // Who runs may be told to read the file again, which is looked at before.
        let right_here = site.hosts.at("left", || said(&["iprp", "check", &file]));
        assert_eq!(right_here.2, Some(0), "{right_here:?}");
        let other = site.folder.path().join("left/other.toml");
        let text = std::fs::read_to_string(site.file("left")).unwrap();
        let text = text.replace("[host]", "[host]\nqueue = 4799");
        std::fs::write(&other, text.replace("socket = \"", "socket = \"other-")).unwrap();
        for command in ["check", "run"] {
            let all = ["iprp", command, other.to_str().unwrap()];
            let (here, error, status) = site.hosts.at("left", || said(&all));
            let told = format!("{here}{error}");
            assert_eq!(status, Some(1), "{told}");
            for words in ["with another socket runs already", &process] {
                assert!(told.contains(words), "{words:?} in: {told}");
            }
        }
        let right = site.name("right");
        let output = site.hosts.at("right", || {
            let mut command = Command::new("setpriv");
            command.args([
                "--bounding-set",
                "-net_admin,-net_raw",
                BUMPLESS,
                "iprp",
                "run",
                &right,
            ]);
            command.output().unwrap()
        });
        let (_, error, status) = outcome(&output);
        assert_eq!(status, Some(1));
        for word in [
            "CAP_NET_ADMIN",
            "CAP_NET_RAW",
            "setcap cap_net_admin,cap_net_raw+ep",
        ] {
            assert!(error.contains(word), "{error}");
        }
        // A host with another key is told apart from one that is silent.
        let other = site.folder.path().join("right/group.key");
        said(&["key", "new", other.to_str().unwrap()]);
        let text = std::fs::read_to_string(site.file("right")).unwrap();
        std::fs::write(
            site.file("right"),
            text.replace("../group.key", "group.key"),
        )
        .unwrap();
        site.start("right");
        let target = format!("10.77.1.2:{PORT}");
        let socket = site.udp("left", "10.77.1.1:0");
        let told = wait_for("the other key is told", || {
            socket.send_to(b"x", &target).unwrap();
            let weaknesses = site.status("left")?["weaknesses"].to_string();
            weaknesses.contains("does not have").then_some(weaknesses)
        });
        assert!(
            told.contains("10.77.1.2") || told.contains("10.77.2.2"),
            "{told}"
        );
    });
}
