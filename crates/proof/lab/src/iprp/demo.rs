//! A stream between two ordinary programs, on two networks of which one is cut in mid-stream, and a picture of what arrived over which.

mod page;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::flow::{Arrivals, Came, Receiver, Senders};
use super::hosts::NAMES;
use super::relay::{Copied, Delay, Fault};
use super::site::Site;
use super::{LabError, rights};
use crate::demo::report_file::ReportFile;

/// As in the paper's evaluation: bytes of a datagram.
const LEN: usize = 280;
/// Between two datagrams.
const EVERY: Duration = Duration::from_millis(5);
/// Networks that there are. The first one is the faster one, and is cut.
const NETWORKS: usize = 2;
/// Ways differ, so that the picture shows which one a datagram took.
const DELAYS: [Delay; NETWORKS] = [
    Delay {
        least_ns: 1_000_000,
        spread_ns: 1_000_000,
    },
    Delay {
        least_ns: 3_000_000,
        spread_ns: 2_000_000,
    },
];
/// For what is on its way at the end.
const SETTLE: Duration = Duration::from_millis(300);

/// What is wanted.
#[derive(Debug)]
pub struct DemoOptions {
    /// This program.
    pub binary: PathBuf,
    /// Where the picture goes.
    pub report: PathBuf,
    /// How long the stream takes; a network is cut in its middle third.
    pub length: Duration,
    /// Set to end at once.
    pub stop: Arc<AtomicBool>,
}

/// What was seen.
#[derive(Debug)]
pub struct DemoResult {
    /// Whether nothing was lost and nothing came twice, while the cut took what it should.
    pub held: bool,
    /// For people.
    pub text: String,
    /// As `bumpless.iprp.demo/1`.
    pub json: Value,
    /// Why the picture could not be written, if so.
    pub report_failure: Option<String>,
}

/// One datagram: what came of it, and of its copies.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// When it was sent, since the stream began.
    at_ns: u64,
    came: Option<Came>,
    /// On each network: whether a copy left, and how long it took if it came.
    copies: [Option<Option<u64>>; NETWORKS],
}

impl Seen {
    /// The network that brought it first.
    fn first(&self) -> Option<usize> {
        let came = self.copies.iter().enumerate();
        let came = came.filter_map(|(network, copy)| Some((copy.flatten()?, network)));
        came.min().map(|(_, network)| network)
    }

    /// How long it took from program to program.
    fn delay_ns(&self) -> Option<u64> {
        let came = self.came?;
        Some(came.came_ns.saturating_sub(came.sent_ns))
    }
}

/// The whole run.
#[derive(Debug, Default)]
struct Run {
    seen: Vec<Seen>,
    length_ns: u64,
    /// When network A was cut and mended, since the stream began.
    cut_ns: (u64, u64),
}

/// Runs it.
///
/// # Errors
/// [`LabError`]; nothing is left then.
pub fn run(options: &DemoOptions) -> Result<DemoResult, LabError> {
    let report = ReportFile::find(&options.report).map_err(super::impossible)?;
    rights::ensure()?;
    let run = observe(options)?;
    let page = page::render(&run);
    let failure = report.write(&page).err();
    let failure = failure.map(|error| {
        let path = report.path().display();
        format!("the picture could not be written to {path}: {error}")
    });
    Ok(run.result(&options.report, failure))
}

fn observe(options: &DemoOptions) -> Result<Run, LabError> {
    let mut site = Site::start(&options.binary, (NETWORKS, 1), 1, &options.stop)?;
    let healthy = DELAYS.map(|delay| Fault {
        delay,
        ..Fault::default()
    });
    site.set(healthy.to_vec());
    let receiver = Receiver::start(&site.hosts, 1)?;
    let mut senders = Senders::new(&site.hosts, 1, LEN)?;
    site.wait("the stream is replicated", |site| {
        senders.send(0);
        site.replicated(NETWORKS) == 1
    })?;
    site.sleep(SETTLE)?;
    let (first, before) = (senders.sent()[0], site.take());
    let (length, stop) = (options.length, Arc::clone(&options.stop));
    let mut cut = healthy;
    cut[0].cut = true;
    let mut phase = 0;
    senders.stream(EVERY, |passed| {
        let now = (passed.as_nanos() * 3 / length.as_nanos().max(1)) as usize;
        if now != phase {
            phase = now;
            let faults = if phase == 1 { cut } else { healthy };
            site.set(faults.to_vec());
        }
        passed >= length || stop.load(Ordering::Relaxed)
    });
    let sent = first..senders.sent()[0];
    site.sleep(SETTLE)?;
    let (copies, arrivals) = (site.take(), receiver.end());
    site.end();
    let offset = offset(&before, first);
    let mut run = Run::of(sent, &copies, &arrivals, offset);
    run.length_ns = length.as_nanos() as u64;
    run.cut_ns = (run.length_ns / 3, run.length_ns * 2 / 3);
    Ok(run)
}

/// By how much numbers of copies are behind those of datagrams: `copies` ended with the datagram before `first`.
fn offset(copies: &[Copied], first: u32) -> u32 {
    let last = copies.iter().map(|copy| copy.number).max();
    first.wrapping_sub(last.map_or(0, |last| last + 1))
}

impl Run {
    fn of(sent: std::ops::Range<u32>, copies: &[Copied], arrivals: &Arrivals, offset: u32) -> Self {
        let first = sent.start;
        let came = |number: u32| arrivals.get(&(0, number)).copied();
        let mut seen: Vec<_> = sent
            .map(|number| Seen {
                came: came(number),
                ..Seen::default()
            })
            .collect();
        for copy in copies {
            let at = copy.number.wrapping_add(offset).wrapping_sub(first) as usize;
            if let Some(it) = seen.get_mut(at)
                && let Some(network) = it.copies.get_mut(copy.network)
            {
                *network = Some(copy.came_ns.map(|came| came - copy.left_ns));
                it.at_ns = copy.left_ns;
            }
        }
        let origin = seen.iter().map(|it| it.at_ns).filter(|at| *at > 0).min();
        for it in &mut seen {
            it.at_ns = it.at_ns.saturating_sub(origin.unwrap_or(0));
        }
        Self {
            seen,
            ..Self::default()
        }
    }

    fn lost(&self) -> usize {
        self.seen.iter().filter(|it| it.came.is_none()).count()
    }

    fn doubled(&self) -> usize {
        let is_doubled = |it: &&Seen| it.came.is_some_and(|came| came.times > 1);
        self.seen.iter().filter(is_doubled).count()
    }

    /// Of a network: copies that left, that were lost, and datagrams that it brought first.
    fn network(&self, network: usize) -> (usize, usize, usize) {
        let copies = self.seen.iter().map(|it| it.copies[network]);
        let left = copies.clone().flatten().count();
        let lost = copies.flatten().filter(Option::is_none).count();
        let first = self.seen.iter().filter(|it| it.first() == Some(network));
        (left, lost, first.count())
    }

    /// The longest time between two arrivals, milliseconds.
    fn longest_gap_ms(&self) -> f64 {
        let mut came: Vec<_> = self.seen.iter().filter_map(|it| it.came).collect();
        came.sort_unstable_by_key(|it| it.came_ns);
        let gaps = came
            .windows(2)
            .map(|it| it[1].came_ns - it[0].came_ns)
            .max();
        gaps.unwrap_or(0) as f64 / 1e6
    }

    fn held(&self) -> bool {
        let cut_took = self.network(0).1 > 0;
        !self.seen.is_empty() && self.lost() == 0 && self.doubled() == 0 && cut_took
    }

    fn result(&self, report: &std::path::Path, report_failure: Option<String>) -> DemoResult {
        let networks: Vec<_> = (0..NETWORKS)
            .map(|network| {
                let (left, lost, first) = self.network(network);
                json!({"network": NAMES[network], "copies": left, "lost": lost, "first": first})
            })
            .collect();
        let written = report_failure
            .is_none()
            .then(|| report.display().to_string());
        let json = json!({
            "schema": "bumpless.iprp.demo/1",
            "held": self.held(),
            "sent": self.seen.len(),
            "lost": self.lost(),
            "doubled": self.doubled(),
            "longest_gap_ms": self.longest_gap_ms(),
            "cut_ms": [self.cut_ns.0 as f64 / 1e6, self.cut_ns.1 as f64 / 1e6],
            "networks": networks,
            "report": written,
            "report_failure": report_failure,
        });
        DemoResult {
            held: self.held(),
            text: self.text(written.as_deref()),
            json,
            report_failure,
        }
    }

    fn text(&self, written: Option<&str>) -> String {
        let mut text = format!(
            "{} datagrams were sent, {} lost, {} doubled; longest time between two arrivals {:.1} ms\n",
            self.seen.len(),
            self.lost(),
            self.doubled(),
            self.longest_gap_ms()
        );
        for (network, name) in NAMES.iter().enumerate().take(NETWORKS) {
            let (left, lost, first) = self.network(network);
            text += &format!(
                "  network {name}: {left} copies left, {lost} lost, {first} datagrams came over it first\n"
            );
        }
        text += &format!(
            "  network A was cut from {:.1} s to {:.1} s\n",
            self.cut_ns.0 as f64 / 1e9,
            self.cut_ns.1 as f64 / 1e9
        );
        if let Some(path) = written {
            text += &format!("the picture is in {path}\n");
        }
        text += match self.held() {
            true => "the stream survived the cut: nothing was lost, nothing came twice",
            false => "the stream did NOT survive the cut as promised",
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(network: usize, number: u32, came: bool) -> Copied {
        let left_ns = 1_000 + u64::from(number);
        Copied {
            network,
            process: 1,
            space: 2,
            number,
            left_ns,
            came_ns: came.then_some(left_ns + 10 * (network as u64 + 1)),
        }
    }

    fn arrivals(numbers: &[u32], times: u32) -> Arrivals {
        let came = Came {
            sent_ns: 1,
            came_ns: 2,
            times,
        };
        numbers.iter().map(|&number| ((0, number), came)).collect()
    }

    #[test]
    fn copies_are_found_by_number_and_what_is_lost_or_doubled_breaks_the_promise() {
        // Datagrams 7, 8, 9 left as numbers 2, 3, 4.
        assert_eq!(offset(&[copy(0, 1, true), copy(1, 1, true)], 7), 5);
        let copies = [
            copy(0, 2, true),
            copy(1, 2, true),
            copy(0, 3, false),
            copy(1, 3, true),
            copy(1, 4, true),
        ];
        let run = Run::of(7..10, &copies, &arrivals(&[7, 8, 9], 1), 5);
        assert_eq!(run.network(0), (2, 1, 1));
        assert_eq!(run.network(1), (3, 0, 2));
        assert!(run.held());
        assert!(!Run::of(7..10, &copies, &arrivals(&[7, 8], 1), 5).held());
        assert!(!Run::of(7..10, &copies, &arrivals(&[7, 8, 9], 2), 5).held());
        let uncut = [copy(0, 2, true), copy(1, 2, true)];
        assert!(!Run::of(7..8, &uncut, &arrivals(&[7], 1), 5).held());
    }
}
