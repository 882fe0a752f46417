//! Runs side by side, one after the other at each substation.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::Clock;
use bumpless_wan::emulation;

use super::bytes::Counted;
use super::end::{Client, Heard, Message, States};
use super::host::Host;
use super::plan::{Case, Job, Site};
use super::result::{Passed, Run};
use super::stage::Stage;
use super::transport::{self, Socket, Transport, line_name};

/// A capture of a run has no more bytes, no more of each packet, and ends with the longest run at the latest.
const CAPTURE_MAX: u64 = 64 << 20;
const CAPTURED_BYTES: u32 = 2048;
const CAPTURE_SECONDS: u64 = 700;
/// How often a thread that waits for an instant looks whether somebody wants to stop.
const LOOK: Duration = Duration::from_millis(20);
/// Between the first runs of one place and the next.
const STAGGER: Duration = Duration::from_millis(150);

/// Makes all runs of a study that `began` then; `done` is told how many after each. Those that were stopped are not in what it gives.
/// None begins when something has ended that is to last: why is given, too.
pub fn all(
    (stage, captures): (&Stage, Option<&Path>),
    jobs: &[Job],
    (began, stop): (Instant, &AtomicBool),
    done: &(dyn Fn(usize) + Sync),
) -> (Vec<Run>, Result<(), String>) {
    let (next, runs) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let fallen = OnceLock::new();
    // Who has ended is told once.
    let stands = || {
        if let Err(why) = stage.stood() {
            let _ = fallen.set(why);
        }
        fallen.get().is_none()
    };
    let now = Clock.now();
    let work = |place: usize, at: &(Host, Site)| {
        // Not all at once: connections and sessions would begin together.
        wait(now + STAGGER * place as u64, stop);
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !stands() {
                return;
            }
            stage.lines.set(place, job.case.line());
            let run = match captures.filter(|_| job.number == 1) {
                None => one(stage, at, job, (began, stop)),
                Some(folder) => captured(stage, at, (job, folder), (began, stop)),
            };
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let mut runs = runs.lock().unwrap_or_else(|broken| broken.into_inner());
            runs.push(run);
            done(runs.len());
        }
    };
    thread::scope(|scope| {
        // The centre has the first place on the backup.
        for (place, at) in (1..).zip(&stage.sites) {
            scope.spawn(move || work(place, at));
        }
    });
    let mut runs = runs
        .into_inner()
        .unwrap_or_else(|broken| broken.into_inner());
    runs.sort_by_key(|run| run.began_ns);
    (runs, fallen.into_inner().map_or(Ok(()), Err))
}

/// Makes a run with a capture of both of its ends.
fn captured(
    stage: &Stage,
    at: &(Host, Site),
    (job, folder): (&Job, &Path),
    (began, stop): (Instant, &AtomicBool),
) -> Run {
    let (transport, backup, over) = named(job.case);
    let name = format!("{transport}-{backup}-{over}.pcapng");
    let done = AtomicBool::new(false);
    let (begun, ready) = channel();
    thread::scope(|scope| {
        let file = folder.join(&name);
        let done = &done;
        let capturing = scope.spawn(move || capture(stage, at, &file, (done, begun)));
        // Nothing of the run is missed. A capture that cannot begin tells that by the end of the channel.
        let _ = ready.recv();
        let mut run = one(stage, at, job, (began, stop));
        done.store(true, Ordering::Relaxed);
        let captured = capturing.join();
        let captured =
            captured.unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")));
        run.capture = captured.is_ok().then(|| name.clone());
        run.capture_lacks = lacks(&name, &captured);
        run
    })
}

/// What a capture lacks, which says nothing against the figures of its run.
fn lacks(name: &str, captured: &io::Result<emulation::Captured>) -> Option<String> {
    match captured {
        Err(error) => Some(format!(
            "cannot capture into {name}: {error}; {}",
            emulation::remedy(error)
        )),
        Ok(it) if it.ended == emulation::Ended::Size => Some(format!(
            "{name} was full after {:.1} s, and {} packets were missed for want of room",
            it.lasted.as_secs_f64(),
            it.dropped
        )),
        Ok(it) if it.dropped > 0 => Some(format!(
            "{name} misses {} packets for want of room",
            it.dropped
        )),
        Ok(_) => None,
    }
}

/// Captures what the substation and the control centre have of each other, until `done`.
fn capture(
    stage: &Stage,
    (host, _): &(Host, Site),
    file: &Path,
    (done, begun): (&AtomicBool, Sender<()>),
) -> io::Result<emulation::Captured> {
    let places = [&stage.centre.name, &host.name].map(Clone::clone);
    let points = emulation::points_of(&stage.topology, &places)
        .map_err(|wrong| io::Error::other(wrong.join("; ")))?;
    let limits = emulation::Limits {
        bytes: CAPTURE_MAX,
        lasts: std::time::Duration::from_secs(CAPTURE_SECONDS),
        packet: CAPTURED_BYTES,
        with: vec![host.network.into(), host.backup.into()],
    };
    let mut to = File::create_new(file)?;
    emulation::capture(
        (&stage.running, &stage.topology),
        &points,
        (&mut to, limits),
        &|| done.load(Ordering::Relaxed),
        || {
            let _ = begun.send(());
        },
    )
}

/// What a case is called in results: transport, backup, and over what messages go.
const fn named(case: Case) -> (&'static str, &'static str, &'static str) {
    match case {
        Case::Network => ("tcp", "none", "network"),
        Case::Backup(line) => ("tcp", line_name(line), "backup"),
        Case::Outage(transport, line) => (transport.name, line_name(line), "network"),
    }
}

fn one(
    stage: &Stage,
    (host, site): &(Host, Site),
    job: &Job,
    (began, stop): (Instant, &AtomicBool),
) -> Run {
    let named = named(job.case);
    let mut run = Run {
        transport: named.0.to_owned(),
        backup: named.1.to_owned(),
        over: named.2.to_owned(),
        number: job.number,
        substation: host.name.clone(),
        path_us: site.round_trip_us,
        ..Run::default()
    };
    let result = converse(stage, (host, site), job, stop);
    match result {
        Ok((first, outage, heard)) => tell(&mut run, first.since(began), first, outage, &heard),
        Err(error) => run.error = Some(error.to_string()),
    }
    run
}

/// An outage: when it began and ended, and what passed the substation's links before and meanwhile.
#[derive(Clone, Copy, Debug)]
struct Outage {
    cut: Instant,
    healed: Instant,
    bytes: [Passed; 2],
}

/// The client on a thread of its own, and the outage on this one.
fn converse(
    stage: &Stage,
    (host, site): (&Host, &Site),
    job: &Job,
    stop: &AtomicBool,
) -> io::Result<(Instant, Option<Outage>, Heard)> {
    let client = client(stage, host, job);
    let (tell, first) = channel();
    thread::scope(|scope| {
        let conversing = scope.spawn(|| {
            // Told of by the end of the channel when it fails.
            let tell = tell;
            stage.centre.enter()?;
            if client.socket == Socket::State {
                let states = pair(stage, host, client.primary.1.port())?;
                return states.run((job.messages, job.after), &tell, stop);
            }
            let program = stage.programs.iter().find(|it| it.0 == client.socket);
            match program {
                Some((_, program)) => {
                    let ways = stage.centre.ways(host, client.primary.1.port());
                    program.call(ways, (job.messages, job.after), &tell, stop)
                }
                None => client.run(job.after, &tell, stop),
            }
        });
        let mut outage = Ok(None);
        let began = first.recv().ok();
        if let (Some(began), Some(times)) = (began, job.outage) {
            outage = dead(stage, (host, site), (began, times), stop).map(Some);
        }
        let heard = conversing
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread ended by a panic")))?;
        let began = began.ok_or_else(|| io::Error::other("it never began"))?;
        Ok((began, outage?, heard))
    })
}

/// A pair of the centre, in whose namespace the calling thread is, and a substation; each has a port of its own from this on.
fn pair(stage: &Stage, host: &Host, first: u16) -> io::Result<States> {
    let port = usize::from(first) + host.place;
    let port = u16::try_from(port).map_err(io::Error::other)?;
    States::meet(host, stage.centre.ways(host, port))
}

fn client(stage: &Stage, host: &Host, job: &Job) -> Client {
    let plain: &Transport = &transport::ALL[0];
    let transport = match job.case {
        Case::Outage(transport, _) => transport,
        Case::Network | Case::Backup(_) => plain,
    };
    let [network, backup] = stage.centre.ways(host, transport.port);
    let reconnects = matches!(job.case, Case::Outage(it, _) if it.reconnects);
    Client {
        socket: transport.socket,
        tls: transport
            .tls
            .then(|| std::sync::Arc::clone(&stage.certificate.client)),
        primary: match job.case {
            Case::Backup(_) => backup,
            Case::Network | Case::Outage(..) => network,
        },
        backup: reconnects.then_some(backup),
        messages: job.messages,
    }
}

/// Has the way lose everything for its time, and heals it, whatever happens.
fn dead(
    stage: &Stage,
    (host, site): (&Host, &Site),
    (began, (at, lasts)): (Instant, (Duration, Duration)),
    stop: &AtomicBool,
) -> io::Result<Outage> {
    wait(began, stop);
    let first = Counted::at(host)?;
    wait(began + at, stop);
    let before = Counted::at(host)?;
    let links = [site.cut];
    let lost = emulation::cut(&stage.running, &stage.topology, &links);
    // Dead for certain between these: the kernel takes its time for both ends of a link.
    let cut = Clock.now();
    wait(cut + lasts, stop);
    let dead = Counted::at(host);
    let healed = Clock.now();
    emulation::heal(&stage.running, &stage.topology, &links)?;
    lost?;
    Ok(Outage {
        cut,
        healed,
        bytes: [before.since(first), dead?.since(before)],
    })
}

fn wait(until: Instant, stop: &AtomicBool) {
    while Clock.now() < until && !stop.load(Ordering::Relaxed) {
        Clock.sleep_until(until.min(Clock.now() + LOOK));
    }
}

fn tell(run: &mut Run, began: Duration, first: Instant, outage: Option<Outage>, heard: &Heard) {
    let since = |at: Instant| at.since(first).as_nanos();
    let us = |nanos: u64| u32::try_from(nanos / 1000).unwrap_or(u32::MAX);
    run.began_ns = began.as_nanos();
    run.cut_ns = outage.map(|it| since(it.cut));
    run.healed_ns = outage.map(|it| since(it.healed));
    run.bytes = outage.map(|it| it.bytes);
    run.switched_ns = heard.switched.map(since);
    let late = |it: &Message| us(it.sent.since(it.due).as_nanos());
    run.late_us = heard.messages.iter().map(late).collect();
    let took = |it: &Message| Some(us(it.answered?.since(it.sent).as_nanos()));
    run.rtt_us = heard.messages.iter().map(took).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_capture_lacks_is_told_with_its_cause() {
        let captured = |ended, dropped| emulation::Captured {
            interfaces: Vec::new(),
            dropped,
            bytes: 0,
            lasted: std::time::Duration::from_secs(2),
            ended,
        };
        let told = |captured| lacks("tcp.pcapng", &captured).unwrap_or_default();
        assert_eq!(told(Ok(captured(emulation::Ended::Asked, 0))), "");
        assert!(told(Ok(captured(emulation::Ended::Asked, 7))).contains("misses 7"));
        assert!(told(Ok(captured(emulation::Ended::Size, 7))).contains("full after 2.0 s"));
        let there = io::Error::from_raw_os_error(libc::EEXIST);
        assert!(told(Err(there)).contains("without captures"));
    }
}
