//! The interfaces between both sides, the guard on one of them, and who works off what comes.

use std::fmt::Display;

use bumpless_base::{Duration, Processors};
use bumpless_bench::network::namespace::Namespace;
use bumpless_guard::{FlowId, Match, Rate, Setup, Transport};
use bumpless_placement::{Placement, Wanted, online, survey};
use bumpless_reception::{Filter, NamedFlow, Reception, Rest, setup};

use rustix::thread::sched_getaffinity;

use super::files::Files;

/// The task's address.
pub const HERE: [u8; 4] = [10, 9, 0, 1];
/// The task's port.
pub const PORT: u16 = 4700;
/// The port that a thread reads at once.
pub const PROMPT_PORT: u16 = 4701;
/// Whose packets the task waits for.
pub const PARTNER: [u8; 4] = [10, 9, 0, 2];
/// Who floods it.
pub const STRANGER: [u8; 4] = [10, 9, 0, 3];
/// The interface on the other side.
const FAR_INTERFACE: &str = "there";
/// Of the thread that works packets off; the task's is lower.
pub const PRIORITY: u8 = 60;

/// What was counted since the interfaces are there.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Packets that were worked off.
    pub packets: u64,
    /// The processor's time for that.
    pub worked: Duration,
    /// Frames that found the interface's ring full.
    pub ring_full: u64,
    /// Frames of the partner's that the guard has decided on since it is there.
    pub decided: u64,
}

/// All that is there, in the calling thread's network namespace.
pub struct Stage {
    // In this order: without a program the interface has no threads, and takes no word on them; without files nobody can say one.
    _placement: Placement,
    reception: Reception,
    open: Filter,
    /// The interface on the task's side.
    interface: String,
    files: Files,
    far_files: Files,
    /// The task's processor, and that of who sends.
    pub processors: (u16, u16),
    /// Threads of the interface's own.
    threads: Vec<u32>,
}

impl Stage {
    /// Sets it up between both namespaces, of which the calling thread is in the first; what makes figures worse besides.
    ///
    /// # Errors
    /// What is missing, with what to do.
    pub fn set(here: &Namespace, there: &Namespace) -> Result<(Self, Vec<String>), String> {
        let unseen = |error| {
            format!(
                "cannot see the interfaces of a namespace: {error}; run as root, on Linux 5.2 or later"
            )
        };
        let files = Files::mount().map_err(unseen)?;
        let far_files = there.run(Files::mount)?.map_err(unseen)?;
        let processors = processors(&files)?;
        let interface = own_name();
        connect((here, &interface), there)?;
        let interfaces = std::slice::from_ref(&interface);
        let reception = Reception::start(&guard(), interfaces).map_err(|all| in_words(&all))?;
        let open = Filter::open().map_err(|error| error.to_string())?;
        let wanted = Wanted {
            interrupts: Some(Processors::one(processors.0)),
            rps: None,
            napi_priority: Some(PRIORITY),
        };
        let records = files.records();
        let with = (files.tree(), &*records);
        let (placement, weaknesses) = Placement::start(with, interfaces, &wanted, None);
        let place = survey(&files.tree(), &interface).place;
        let threads = place.and_then(|it| it.threads).unwrap_or_default();
        if threads.is_empty() {
            return Err(format!(
                "packets cannot be worked off on the task's processor: {}",
                match weaknesses.is_empty() {
                    true => "the interface has no threads of its own".to_owned(),
                    false => weaknesses.join("; "),
                }
            ));
        }
        let stage = Self {
            _placement: placement,
            reception,
            open,
            interface,
            files,
            far_files,
            processors,
            threads: threads.iter().map(|thread| thread.number).collect(),
        };
        Ok((stage, weaknesses))
    }

    /// Has the guard decide what comes in, or a program in its place that passes everything.
    ///
    /// # Errors
    /// The kernel's.
    pub fn guard(&mut self, guarded: bool) -> Result<(), String> {
        if !guarded {
            let lifted = self.reception.lift(&self.open);
            return lifted.map_err(|error| format!("the guard cannot be lifted: {error}"));
        }
        let filter = Filter::new(&guard()).map_err(|error| error.to_string())?;
        self.reception.renew(vec![filter]);
        Ok(())
    }

    /// What was counted until now.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn counts(&self) -> Result<Counts, String> {
        let unread = |error: std::io::Error| format!("what was received is not told: {error}");
        let packets = self.files.received(&self.interface).map_err(unread)?;
        let worked = self.threads.iter().map(|&it| self.files.worked(it));
        let worked: Result<Vec<u64>, _> = worked.collect();
        let worked = worked.map_err(|error| {
            format!("the kernel does not tell what its threads take: {error}; it takes CONFIG_SCHED_INFO")
        })?;
        // The sender's interface counts what it could not put there.
        let ring_full = self.far_files.not_sent(FAR_INTERFACE).map_err(unread)?;
        let report = self.reception.report().map_err(unread)?;
        let flows = report.iter().flat_map(|it| &it.flows);
        let own = flows.filter(|(flow, _)| OWN.contains(flow));
        Ok(Counts {
            packets,
            ring_full,
            decided: own.map(|(_, it)| it.passed + it.capacity + it.closed).sum(),
            worked: Duration::from_nanos(worked.iter().sum()),
        })
    }

    /// The kernel and how many processors it has.
    pub fn computer(&self) -> String {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let count = online(&self.files.tree()).iter().count();
        format!("Linux {}, {count} processors", kernel.trim())
    }
}

/// The partner's flows among those of the guard.
const OWN: [FlowId; 2] = [FlowId::Registered(0), FlowId::Registered(1)];

/// What a node has by plan: its partner's packets, few of strangers at its port, the usual for the rest.
fn guard() -> Setup {
    let rate = |capacity, ms| Rate {
        capacity,
        period: Duration::from_millis(ms),
    };
    let flow = |name: &str, pattern, rate| NamedFlow {
        name: name.to_owned(),
        matches: vec![pattern],
        rate,
    };
    let flows = [
        flow(
            "partner",
            Match::PortFrom(Transport::Udp, PORT, PARTNER.into()),
            rate(200, 100),
        ),
        flow(
            "partner, at once",
            Match::PortFrom(Transport::Udp, PROMPT_PORT, PARTNER.into()),
            rate(200, 100),
        ),
        flow(
            "strangers",
            Match::Port(Transport::Udp, PORT),
            rate(10, 100),
        ),
    ];
    setup(&flows, &Rest::USUAL)
}

/// The processors online of which this process may use, the last one for the task: others are interrupted less often there.
fn processors(files: &Files) -> Result<(u16, u16), String> {
    let all = online(&files.tree());
    // What cannot be told takes nothing away: a place that is refused is said as a weakness.
    let allowed = sched_getaffinity(None).ok();
    let may_use = |it: &u16| allowed.is_none_or(|all| all.is_set(usize::from(*it)));
    let mut all: Vec<u16> = all.iter().filter(may_use).collect();
    match (all.pop(), all.first()) {
        (Some(task), Some(&sender)) => Ok((task, sender)),
        _ => Err(
            "this process has one processor, and who sends would take it from the task: measure on a computer with two, and outside of a cpuset that leaves one"
                .to_owned(),
        ),
    }
}

/// A name that no other measurement gives its interface: its threads are found by it, wherever their interface is. As short as it must be for them
/// to have it whole.
fn own_name() -> String {
    format!("h{}", std::process::id() % 10_000)
}

/// A pair of virtual interfaces; nobody has to ask for an address.
fn connect((here, interface): (&Namespace, &str), there: &Namespace) -> Result<(), String> {
    let [task, partner, stranger] = [HERE, PARTNER, STRANGER].map(std::net::Ipv4Addr::from);
    let far = there.path();
    for line in [
        format!(
            "link add {interface} address 02:00:00:00:00:01 type veth peer name {FAR_INTERFACE} address 02:00:00:00:00:02 netns {far}"
        ),
        format!("address add {task}/24 dev {interface}"),
        format!("link set {interface} up"),
    ] {
        here.tool("ip", &line)?;
    }
    for line in [
        format!("address add {partner}/24 dev {FAR_INTERFACE}"),
        format!("address add {stranger}/24 dev {FAR_INTERFACE}"),
        format!("link set {FAR_INTERFACE} up"),
        format!("neighbour add {task} lladdr 02:00:00:00:00:01 dev {FAR_INTERFACE}"),
    ] {
        there.tool("ip", &line)?;
    }
    for address in [partner, stranger] {
        here.tool(
            "ip",
            &format!("neighbour add {address} lladdr 02:00:00:00:00:02 dev {interface}"),
        )?;
    }
    Ok(())
}

fn in_words(errors: &[impl Display]) -> String {
    let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
    all.join("; ")
}
