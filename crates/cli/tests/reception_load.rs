//! What a guard is for: a flood that leaves a pair with one alone breaks a pair without. Nothing else runs meanwhile, since the flood comes before it.

#[path = "reception/floods.rs"]
mod floods;
#[path = "reception/pair.rs"]
mod pair;
mod support;

use std::thread;
use std::time::{Duration, Instant};

use bumpless_net_linux::{Clock, realtime};
use floods::{junk, send_round};
use pair::{dropped, flow, pair};
use serde_json::Value;
use support::hosts::{Hosts, with_hosts};
use support::let_run;
use support::site::Site;
use support::stalls::Watch;

bumpless_testing::tests![the_flood_that_a_guarded_pair_does_not_notice_breaks_one_without_a_guard];

/// Above nodes with `[realtime]`, as a card's interrupts are.
const ABOVE: u8 = 50;
const TICK: Duration = Duration::from_millis(2);
/// So far behind its time a flood may be and catch up.
const BEHIND_MOST: Duration = Duration::from_millis(20);

/// What was sent so.
#[derive(Clone, Copy, Debug)]
struct Hammered {
    sent: usize,
    took: Duration,
}

impl Hammered {
    fn per_s(&self) -> f64 {
        self.sent as f64 / self.took.as_secs_f64()
    }
}

/// The same from two processors and before all that nodes do there, `rounds` in each tick on each: as from a host whose packets come
/// whether or not there is time for them. What the system refuses makes it an ordinary flood.
fn hammer(hosts: &Hosts, rounds: usize, lasts: Duration) -> Hammered {
    let from = |processor: usize| {
        let _ = realtime::pin(processor);
        let _ = realtime::set_fifo(ABOVE);
        let _ = realtime::tighten_timers();
        let junk = junk();
        let (started, mut sent, mut due) = (Instant::now(), 0, Instant::now());
        while started.elapsed() < lasts {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            sent += (0..rounds).map(|_| send_round(&junk)).sum::<usize>();
            let behind = Instant::now() - BEHIND_MOST;
            due = (due + TICK).max(behind);
        }
        (sent, started.elapsed())
    };
    // Threads are where the one is that starts them.
    hosts.at("twin", || {
        thread::scope(|scope| {
            let both = [0, 1].map(|it| scope.spawn(move || from(it)));
            let both = both.map(|it| it.join().unwrap());
            Hammered {
                sent: both.iter().map(|it| it.0).sum(),
                took: both.iter().map(|it| it.1).max().unwrap(),
            }
        })
    })
}

/// Has the calling thread, and what it starts, run on the processors from which [`hammer`] sends. Whether it has them.
fn stay_on_two_processors() -> bool {
    // SAFETY: a set of processors is numbers, and zeros are the empty one; the calls read and change what lives through them.
    unsafe {
        let mut both: libc::cpu_set_t = std::mem::zeroed();
        (0..2).for_each(|it| libc::CPU_SET(it, &mut both));
        libc::sched_setaffinity(0, size_of_val(&both), &raw const both) == 0
            && libc::sched_getaffinity(0, size_of_val(&both), &raw mut both) == 0
            && libc::CPU_COUNT(&both) == 2
    }
}

/// What a pair suffered since some time.
#[derive(Debug, Default)]
struct Damage {
    failover: bool,
    states_failed: usize,
    networks_down: usize,
}

impl Damage {
    fn is_any(&self) -> bool {
        self.failover || self.states_failed > 0 || self.networks_down > 0
    }

    fn of(site: &Site, (primary, epoch): (&str, u64), from_ns: u64) -> Self {
        let mut damage = Self::default();
        for node in ["left", "right"] {
            let mut events = site.events(node);
            events.retain(|it| it["time_ns"].as_u64() >= Some(from_ns));
            let count = |is: &dyn Fn(&Value) -> bool| events.iter().filter(|it| is(it)).count();
            damage.states_failed +=
                count(&|it| it["event"] == "transfer" && it["outcome"] == "failed");
            damage.networks_down += count(&|it| it["event"] == "link" && it["up"] == false);
        }
        let status = site.status(primary);
        damage.failover = status.is_none_or(|it| it["groups"][0]["epoch"] != epoch);
        damage
    }
}

/// Rounds of the flood in each tick on each processor, up to those that break a pair without a guard. With one the last of them break none, which
/// leave a node little of the processors: sending is most of what a packet costs here.
const HAMMER: [usize; 3] = [11, 12, 13];
const HAMMERED: Duration = Duration::from_secs(3);

/// A pair on two processors that is so long under that flood: what it suffered. With the guard, none of its own packets is dropped besides.
fn hammered(hosts: Hosts, guard: &str, rounds: usize) -> Damage {
    let site = pair(hosts, guard);
    let (primary, backup, epoch) = site.await_redundant("tank");
    site.hurry_surroundings();
    let (watch, from) = (Watch::above(&site, ABOVE + 1), Clock.now().as_nanos());
    let hammered = hammer(site.hosts(), rounds, HAMMERED);
    let_run(500);
    let damage = Damage::of(&site, (&primary, epoch), from);
    println!(
        "guard {guard}, {:.0} packets a second: {damage:?}",
        hammered.per_s()
    );
    if guard == "auto" {
        watch.end(&site).judge();
        for (node, partner) in [(&primary, &backup), (&backup, &primary)] {
            let status = site.status(node).unwrap();
            for (interface, network) in [(0, "A"), (1, "B")] {
                let own = flow(&status, interface, &format!("{partner} on {network}"));
                assert_eq!(dropped(&own), 0, "{node} {network}: {own}");
            }
        }
        site.await_redundant("tank");
    }
    damage
}

/// V-75: the flood is as much as two processors send, above all that nodes do. What the machine's own stalls explain is no damage with the guard.
fn the_flood_that_a_guarded_pair_does_not_notice_breaks_one_without_a_guard() {
    if !stay_on_two_processors() {
        bumpless_testing::skip("needs two processors");
    }
    let breaks = |&rounds: &usize| {
        let (told, heard) = std::sync::mpsc::channel();
        with_hosts(move |hosts| told.send(hammered(hosts, "off", rounds)).unwrap());
        heard.recv().unwrap().is_any()
    };
    let rounds = *HAMMER
        .iter()
        .find(|it| breaks(it))
        .expect("a flood that breaks a pair without a guard");
    with_hosts(move |hosts| {
        let damage = hammered(hosts, "auto", rounds);
        assert!(!damage.failover, "the role moved: {damage:?}");
    });
}
