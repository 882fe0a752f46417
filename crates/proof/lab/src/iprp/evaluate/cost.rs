//! What daemons take of a processor, as in the paper's table IV.

use std::fs;
use std::time::{Duration, Instant};

use super::Plan;
use super::losses::{LEN, begin};
use super::scenario::{PAPER_COST, Row, Share};
use crate::iprp::LabError;
use crate::iprp::flow::{Receiver, Senders};
use crate::iprp::site::Site;

/// Packets a second, of all sessions together and of each.
const TOGETHER: u32 = 1_000;
const EACH: u32 = 10;

/// Measures all rows, or those with at most so many sessions.
///
/// # Errors
/// As a scenario's.
pub fn measure(
    plan: &Plan,
    most: usize,
    mut tell: impl FnMut(usize),
) -> Result<Vec<Row>, LabError> {
    let sessions = PAPER_COST.iter().map(|row| row.sessions);
    let mut rows = Vec::new();
    for sessions in sessions.filter(|sessions| *sessions <= most) {
        tell(sessions);
        rows.push(row(plan, sessions)?);
    }
    Ok(rows)
}

fn row(plan: &Plan, sessions: usize) -> Result<Row, LabError> {
    let mut site = Site::start(&plan.binary, (2, sessions.max(1)), plan.seed, &plan.stop)?;
    if sessions == 0 {
        site.sleep(Duration::from_millis(500))?;
        let idle = share(&mut site, plan.cpu_length, |site| {
            site.sleep(plan.cpu_length)
        })?;
        site.end();
        return Ok(Row {
            sessions,
            together: idle,
            each: idle,
        });
    }
    let receiver = Receiver::start(&site.hosts, sessions)?;
    let mut senders = Senders::new(&site.hosts, sessions, LEN)?;
    begin(&mut site, &mut senders, 2, sessions)?;
    let mut of = |a_second: u32| {
        let every = Duration::from_secs(1) / a_second;
        share(&mut site, plan.cpu_length, |site| {
            let stop = || plan.stop.load(std::sync::atomic::Ordering::Relaxed);
            senders.stream(every, |passed| passed >= plan.cpu_length || stop());
            site.sleep(Duration::ZERO)
        })
    };
    let together = of((TOGETHER / sessions as u32).max(1))?;
    let each = of(EACH)?;
    drop(receiver);
    site.end();
    Ok(Row {
        sessions,
        together,
        each,
    })
}

/// What both daemons take during `work`.
fn share(
    site: &mut Site,
    length: Duration,
    work: impl FnOnce(&mut Site) -> Result<(), LabError>,
) -> Result<Share, LabError> {
    let pids = [site.pid(0), site.pid(1)];
    let (before, began) = (pids.map(busy_ns), Instant::now());
    work(site)?;
    let passed = began.elapsed().max(length).as_nanos() as f64;
    let after = pids.map(busy_ns);
    let of = |at: usize| after[at].saturating_sub(before[at]) as f64 / passed * 100.0;
    Ok((of(0), of(1)))
}

/// Nanoseconds for which the threads of a process have run.
fn busy_ns(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let of = |path: std::path::PathBuf| {
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.filter_map(|it| of(it.path())).sum()
}
