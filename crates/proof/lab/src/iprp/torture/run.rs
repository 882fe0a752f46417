//! A case with the real daemons: the stream goes on while things befall hosts and networks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bumpless_base::Duration as Span;
use bumpless_net_linux::Clock;

use super::case::{AFTER, AWAY, BEFORE, Case, DOWN, Event, FAULT, NETWORKS, TURNS};
use super::judge::Observed;
use crate::iprp::LabError;
use crate::iprp::flow::{Receiver, Senders};
use crate::iprp::relay::Fault;
use crate::iprp::site::Site;

/// Bytes of a datagram, and the time between two.
pub const LEN: usize = 280;
pub const EVERY: Span = Span::from_millis(1);
/// For what is on its way at the end, beside the networks' delay.
const SETTLE: Duration = Duration::from_millis(300);

/// When it began, and when all was well again.
type Marks = (u64, Option<u64>);

/// Does it.
///
/// # Errors
/// A daemon has ended or does not replicate again, or it was told to stop.
pub fn observe(site: &mut Site, case: Case) -> Result<Observed, LabError> {
    site.set(vec![Fault::default(); NETWORKS]);
    let receiver = Receiver::start(&site.hosts, 1)?;
    let mut senders = Senders::new(&site.hosts, 1, LEN)?;
    site.wait("the stream is replicated", |site| {
        senders.send(0);
        site.replicated(NETWORKS) == 1
    })?;
    let first = senders.sent()[0];
    site.sleep(SETTLE)?;
    site.set(case.conditions.faults().to_vec());
    site.take();
    let is_over = AtomicBool::new(false);
    let (sent, marks) = thread::scope(|scope| {
        let sending = scope.spawn(|| stream(&mut senders, &is_over));
        let marks = befall(site, case);
        is_over.store(true, Ordering::Release);
        (sending.join().unwrap_or_default(), marks)
    });
    let (began_ns, again_ns) = marks?;
    site.sleep(SETTLE + Duration::from_nanos(case.conditions.longest_ns()))?;
    let (copies, arrivals) = (site.take(), receiver.end());
    let came = |number: u32| arrivals.get(&(0, number)).copied();
    let numbered = (first..).zip(sent);
    Ok(Observed {
        datagrams: numbered.map(|(number, at)| (at, came(number))).collect(),
        copies,
        began_ns,
        again_ns,
    })
}

/// Sends at an even rate; when each was sent.
fn stream(senders: &mut Senders, is_over: &AtomicBool) -> Vec<u64> {
    let (mut sent, mut due) = (Vec::new(), Clock.now());
    while !is_over.load(Ordering::Acquire) {
        sent.push(Clock.now().as_nanos());
        senders.send(0);
        due += EVERY;
        Clock.sleep_until(due);
    }
    sent
}

fn befall(site: &mut Site, case: Case) -> Result<Marks, LabError> {
    let usual = case.conditions.faults();
    let down = |network: usize| {
        let mut faults = usual;
        faults[network].cut = true;
        faults.to_vec()
    };
    site.sleep(BEFORE)?;
    let began = Clock.now().as_nanos();
    let mut again = None;
    match case.event {
        Event::Nothing | Event::NumbersEnd => site.sleep(FAULT)?,
        Event::Cut => {
            site.set(down(0));
            site.sleep(FAULT)?;
        }
        Event::Flapping => {
            for turn in 0..TURNS {
                site.set(down(turn % NETWORKS));
                site.sleep(DOWN)?;
            }
        }
        _ => {
            if let Some(ends) = case.event.ends() {
                restart(site, ends)?;
                again = Some(Clock.now().as_nanos());
            }
        }
    }
    site.set(usual.to_vec());
    site.sleep(AFTER)?;
    Ok((began, again))
}

/// Ends a daemon, starts it, and waits until it is as it was.
fn restart(site: &mut Site, (number, is_killed): (usize, bool)) -> Result<(), LabError> {
    site.end_one(number, is_killed);
    if is_killed {
        site.sleep(AWAY[number])?;
    }
    site.begin(number)?;
    site.wait("the daemon answers", |site| site.status(number).is_some())?;
    site.wait("everything is replicated again", |site| {
        site.replicated(NETWORKS) == 1
    })
}
