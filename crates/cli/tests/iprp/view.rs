//! The live view.

use std::io::Read;
use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;

use crate::site::{BOTH, PORT, Sink, Site, Stream};
use crate::support::hosts::with_hosts;
use crate::support::json_lines;
use crate::support::process::{BUMPLESS, Process, said};
use crate::support::{wait_for, wait_until};

/// A terminal of 24 lines, whose other end collects what is written to it.
fn terminal() -> (std::fs::File, std::fs::File) {
    use std::os::fd::FromRawFd;
    let (mut here, mut there) = (0, 0);
    let size = libc::winsize {
        ws_row: 24,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let none = std::ptr::null_mut();
    // SAFETY: the call fills two integers and reads `size`; null stands for what is not wanted. The descriptors are
    // nobody else's.
    unsafe {
        let opened = libc::openpty(&mut here, &mut there, none, none.cast(), &size);
        assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
        (
            std::fs::File::from_raw_fd(here),
            std::fs::File::from_raw_fd(there),
        )
    }
}

pub fn a_live_view_shows_rates_and_redraws_only_a_terminal() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:0"), target, 500);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let file = site.name("right");
        // One JSON line each time.
        let lines = site.folder.path().join("lines");
        let watch = ["iprp", "receivers", &file, "--json", "--watch", "0.1"];
        let view = Process::start(&watch, &lines);
        let seen = wait_for("pictures with rates", || {
            let all = json_lines(&lines);
            let rate = |line: &Value| sum(&line["receiving"][0]["networks"][0]["per_s"]);
            (all.len() >= 4).then(|| all.iter().map(rate).collect::<Vec<_>>())
        });
        view.interrupt();
        assert_eq!(seen[0], None, "the first one has nothing to compare with");
        let rates: Vec<_> = seen[1..].iter().flatten().collect();
        assert!(rates.iter().any(|rate| **rate > 50.0), "{rates:?}");
        // Blocks of words, without a terminal's codes.
        let blocks = site.folder.path().join("blocks");
        let watch = ["iprp", "status", &file, "--watch", "0.1"];
        let view = Process::start(&watch, &blocks);
        wait_until("blocks", || {
            view.said().matches("iPRP, process").count() >= 3
        });
        let text = view.said();
        view.interrupt();
        assert!(text.contains("/s) first"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
        // A terminal is drawn over.
        let (mut here, there) = terminal();
        let mut command = Command::new(BUMPLESS);
        command.args(watch).stdout(there.try_clone().unwrap());
        let view = Process::spawn(command, &blocks);
        drop(there);
        let (mut drawn, mut bytes) = (String::new(), [0; 4096]);
        while drawn.matches("F\x1b[J").count() < 2 {
            let length = here.read(&mut bytes).unwrap();
            drawn.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
        view.interrupt();
        let _ = stream.end();
        sink.end();
        // Nobody to ask: said with the remedy.
        site.interrupt("right");
        let (_, error, status) = said(&["iprp", "status", &file, "--watch"]);
        assert_eq!(status, Some(1));
        for word in ["no daemon of iPRP runs", "sudo bumpless iprp run", &file] {
            assert!(error.contains(word), "{word:?} in: {error}");
        }
    });
}

/// Numbers of an object, summed up; `None` if there is no such object.
fn sum(numbers: &Value) -> Option<f64> {
    Some(
        numbers
            .as_object()?
            .values()
            .filter_map(Value::as_f64)
            .sum(),
    )
}
