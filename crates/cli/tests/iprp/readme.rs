//! README's "Any application over several networks", followed word for word on two hosts.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::site::{BOTH, Sink, Stream};
use crate::support::hosts::{Hosts, with_hosts};
use crate::support::process::{BUMPLESS, Process, outcome};
use crate::support::{addresses, wait_until};

const README: &str = include_str!("../../../../README.md");
const HEADING: &str = "## Any application over several networks\n";

/// The commands of the section, in order, without their comments and `sudo`.
fn commands() -> Vec<String> {
    let (_, section) = README.split_once(HEADING).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let lines = section.lines().filter(|line| line.starts_with("       "));
    let command = |line: &str| {
        let line = line.split(" # ").next().unwrap().trim();
        line.strip_prefix("sudo ").unwrap_or(line).to_owned()
    };
    lines.map(command).collect()
}

fn command(line: &str, folder: &Path) -> Command {
    let (line, file) = line.split_once(" > ").unwrap_or((line, ""));
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("bumpless"), "{line}");
    let mut command = Command::new(BUMPLESS);
    command
        .args(words)
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if !file.is_empty() {
        command.stdout(std::fs::File::create(folder.join(file)).unwrap());
    }
    command
}

fn succeeds(line: &str, folder: &Path) -> bool {
    let child = addresses::spawn(&mut command(line, folder)).unwrap();
    outcome(&child.wait_with_output().unwrap()).2 == Some(0)
}

/// Runs a line on both hosts, whose folders are below `folder`.
fn on_both(hosts: &Hosts, folder: &Path, line: &str) {
    for (host, other) in [("left", "10.77.1.2"), ("right", "10.77.1.1")] {
        let line = line.replace("OTHER", other);
        let done = || hosts.at(host, || succeeds(&line, &folder.join(host)));
        // Daemons that have just begun may not know each other yet.
        wait_until(&line, done);
    }
}

pub fn the_readme_word_for_word_protects_a_stream_between_two_hosts() {
    with_hosts(|hosts| {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        for host in BOTH {
            std::fs::create_dir(here.join(host)).unwrap();
        }
        let (mut daemons, mut done) = (Vec::new(), Vec::new());
        for line in commands() {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[1..] {
                ["pki", ..] => assert!(succeeds(&line, here), "{line}"),
                ["iprp", "check", "--sample", ..] => {
                    for (host, issued) in BOTH.iter().zip(["host-1.grid", "host-2.grid"]) {
                        let own = here.join(host);
                        std::fs::rename(here.join(issued), own.join("certificate")).unwrap();
                        assert!(succeeds(&line, &own), "{line}");
                        let file = own.join("iprp.toml");
                        let text = std::fs::read_to_string(&file).unwrap();
                        // The networks are ours to name.
                        let text = text.replace("10.1.0.0/24", "10.77.1.0/24");
                        let text = text.replace("10.2.0.0/24", "10.77.2.0/24");
                        std::fs::write(file, text).unwrap();
                    }
                }
                ["iprp", "run", ..] => {
                    for host in BOTH {
                        let mut command = command(&line, &here.join(host));
                        command.stdout(Stdio::null()).stderr(Stdio::null());
                        let said = here.join(format!("{host}.said"));
                        daemons.push(hosts.at(host, || Process::spawn(command, &said)));
                    }
                }
                ["iprp", "status", ..] => {
                    on_both(&hosts, here, line.trim_end_matches(" --watch"));
                }
                _ => on_both(&hosts, here, &line),
            }
            done.push(words[2].to_owned());
        }
        assert_eq!(done.join(" "), "init issue check check run ping status");
        // The sample monitors UDP port 4713.
        let bind = |host, at: &str| {
            let bind = || std::net::UdpSocket::bind(at).unwrap();
            hosts.at(host, bind)
        };
        let sink = Sink::begin(bind("right", "10.77.1.2:4713"));
        let target = "10.77.1.2:4713".parse().unwrap();
        let stream = Stream::begin(bind("left", "10.77.1.1:40000"), target, 200);
        wait_until("the stream is replicated", || {
            let mut status = command("bumpless iprp status iprp.toml --json", &here.join("left"));
            let child = addresses::spawn(&mut status).unwrap();
            let (said, ..) = outcome(&child.wait_with_output().unwrap());
            said.contains("\"port\":4713")
        });
        sink.wait_for_more(20);
        hosts.cut("A");
        sink.wait_for_more(100);
        stream.end();
        sink.end();
        daemons.into_iter().for_each(Process::interrupt);
    });
}
