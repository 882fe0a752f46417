//! How it is: an interface's ring, interrupts, threads, and to whom it hands packets on.

use std::fs;

use bumpless_base::Processors;

use crate::device::{self, Ring};
use crate::thread::{self, Thread};
use crate::tree::Tree;

/// An interrupt of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// The processors that it may come to.
    pub processors: Processors,
}

/// Where an interface's packets are worked off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its interrupts; a virtual interface has none.
    pub interrupts: Vec<Interrupt>,
    /// Processors to which its receive queues hand packets on (RPS); none: packets stay where the interrupt was.
    pub rps: Processors,
    /// Threads of its own (threaded NAPI); `None`: whoever is interrupted works packets off.
    pub threads: Option<Vec<Thread>>,
}

/// An interface as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its receive ring; `None`: the driver has none or does not tell.
    pub ring: Option<Ring>,
    /// Where its packets are worked off; `None`: the kernel's files here are those of another network namespace.
    pub place: Option<Place>,
}

/// How it is with the interface called `name` of the thread's network namespace.
pub fn survey(tree: &Tree, name: &str) -> Found {
    Found {
        name: name.to_owned(),
        ring: device::ring(name),
        place: is_shown(tree, name).then(|| place(tree, name)),
    }
}

/// Whether the kernel's files at hand show this interface of the thread's network namespace, and not one of the same name in the namespace
/// in which they were mounted.
pub fn is_shown(tree: &Tree, name: &str) -> bool {
    let shown = |file| {
        let text = fs::read_to_string(tree.of_interface(name).join(file)).ok()?;
        Some(text.trim().to_owned())
    };
    let number = device::number(name).map(|number| number.to_string());
    let is_one = |shown: &Option<String>, asked: &Option<String>| asked.is_some() && shown == asked;
    is_one(&shown("ifindex"), &number) && is_one(&shown("address"), &device::hardware_address(name))
}

fn place(tree: &Tree, name: &str) -> Place {
    let interrupts = tree.interrupts(name).into_iter().filter_map(|number| {
        let list = fs::read_to_string(tree.of_interrupt(number).join("smp_affinity_list"));
        let processors = Processors::read_list(list.ok()?.trim())?;
        Some(Interrupt { number, processors })
    });
    let mut rps = Processors::NONE;
    for queue in tree.queues(name) {
        let file = tree
            .of_interface(name)
            .join("queues")
            .join(queue)
            .join("rps_cpus");
        let mask = fs::read_to_string(file).ok();
        let of_queue = mask.and_then(|mask| Processors::read_mask(mask.trim()));
        rps.add(&of_queue.unwrap_or_default());
    }
    Place {
        interrupts: interrupts.collect(),
        rps,
        threads: is_threaded(tree, name).then(|| thread::of_interface(tree, name)),
    }
}

fn is_threaded(tree: &Tree, name: &str) -> bool {
    let flag = fs::read_to_string(tree.of_interface(name).join("threaded"));
    flag.is_ok_and(|flag| !matches!(flag.trim(), "" | "0"))
}

/// The processors that are online; none where the kernel does not tell.
pub fn online(tree: &Tree) -> Processors {
    let list = fs::read_to_string(tree.of_processors().join("online")).unwrap_or_default();
    Processors::read_list(list.trim()).unwrap_or_default()
}

/// Whether the daemon that moves interrupts between processors runs on this computer.
pub fn has_irqbalance(tree: &Tree) -> bool {
    let mut entries = fs::read_dir(tree.of_processes()).into_iter().flatten();
    entries.any(|entry| {
        let name = entry.map(|entry| fs::read_to_string(entry.path().join("comm")));
        name.is_ok_and(|name| name.is_ok_and(|name| name.trim() == "irqbalance"))
    })
}
