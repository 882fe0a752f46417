//! What is to be said against where packets are worked off.

use bumpless_base::Processors;

use crate::held::Wanted;
use crate::survey::{Found, Place};

/// What an advice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// How many packets wait in the interface's ring.
    Ring,
    /// Which processors are interrupted.
    Interrupts,
    /// To which processors packets are handed on.
    Rps,
    /// Threads of the interface's own.
    Napi,
    /// A data plane that looks for packets without sleeping.
    BusyPoll,
    /// What cannot be seen from here.
    Unseen,
}

impl Topic {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Interrupts => "interrupts",
            Self::Rps => "rps",
            Self::Napi => "napi",
            Self::BusyPoll => "busy_poll",
            Self::Unseen => "unseen",
        }
    }
}

/// One thing that is to be said, with what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What it is about.
    pub topic: Topic,
    /// A sentence that begins behind the interface's name.
    pub words: String,
}

/// What it depends on besides the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// So many packets the plan takes a ring to hold.
    pub ring: u64,
    /// The processor of the data plane, if it is pinned to one.
    pub data_plane: Option<u16>,
    /// The priority of the data plane below SCHED_FIFO.
    pub priority: Option<u8>,
    /// Whether the data plane looks for packets without sleeping.
    pub busy_poll: bool,
    /// The computer's processors.
    pub online: Processors,
    /// Whether something moves interrupts between processors.
    pub has_irqbalance: bool,
    /// What a node sets while it runs.
    pub wanted: Wanted,
}

impl Surroundings {
    /// Of a host of which nothing is known but so many packets in a ring.
    pub fn with_ring(ring: u64) -> Self {
        Self {
            ring,
            data_plane: None,
            priority: None,
            busy_poll: false,
            online: Processors::NONE,
            has_irqbalance: false,
            wanted: Wanted::default(),
        }
    }
}

/// What is to be said of an interface.
pub fn advice(found: &Found, with: &Surroundings) -> Vec<Advice> {
    let mut all = Vec::new();
    let mut say = |topic, words: Option<String>| {
        all.extend(words.map(|words| Advice { topic, words }));
    };
    say(Topic::Ring, ring(found, with));
    match &found.place {
        None => say(
            Topic::Unseen,
            Some(
                "is not in /sys, which shows another network namespace's interfaces: run this where sysfs is this one's, as `ip netns exec` does"
                    .to_owned(),
            ),
        ),
        Some(place) => {
            say(Topic::Interrupts, offline(with));
            say(Topic::Interrupts, interrupts(place, with));
            say(Topic::Interrupts, moved(with));
            say(Topic::Rps, rps(place, with));
            say(Topic::Napi, napi(place, with));
        }
    }
    say(Topic::BusyPoll, busy_poll(with));
    all
}

fn ring(found: &Found, with: &Surroundings) -> Option<String> {
    let ring = found.ring?;
    let (packets, most, name) = (u64::from(ring.packets), u64::from(ring.most), &found.name);
    let there = format!(
        "its ring holds {packets} packets, and the plan reckons with {}",
        with.ring
    );
    if packets >= with.ring {
        let more = || {
            format!("{there}: with `ring = {packets}` it says how much more of a flood is borne")
        };
        return (packets > with.ring).then(more);
    }
    let enlarge = match most >= with.ring {
        true => format!("`ethtool -G {name} rx {}` enlarges it, or give", with.ring),
        false => "give".to_owned(),
    };
    Some(format!(
        "{there}, so that less of a flood is borne than it says: {enlarge} `ring = {packets}`"
    ))
}

/// The processors that the data plane leaves to others, if there are any.
fn others(with: &Surroundings) -> Option<(u16, Processors)> {
    let own = with.data_plane?;
    let others = with.online.without(&Processors::one(own));
    (!others.is_empty()).then_some((own, others))
}

/// Processors that are to be given and are not there.
fn offline(with: &Surroundings) -> Option<String> {
    let mut given = with.wanted.interrupts.unwrap_or_default();
    given.add(&with.wanted.rps.unwrap_or_default());
    let missing = given.without(&with.online);
    let words = || {
        format!(
            "is to have processors {missing}, and those online are {}: give some of these",
            with.online
        )
    };
    (!missing.is_empty()).then(words)
}

fn interrupts(place: &Place, with: &Surroundings) -> Option<String> {
    let (own, others) = others(with)?;
    if let Some(given) = with.wanted.interrupts {
        let words = || {
            format!(
                "is to interrupt processor {own}, which is the data plane's (`cpu` in [realtime]): give others as `interrupt_cpus` in [reception], such \
                 as \"{others}\""
            )
        };
        return given.contains(own).then(words);
    }
    let there = place
        .interrupts
        .iter()
        .filter(|it| it.processors.contains(own));
    let numbers: Vec<_> = there.map(|it| it.number.to_string()).collect();
    let words = || {
        format!(
            "may interrupt processor {own}, which is the data plane's (interrupts {}): `interrupt_cpus = \"{others}\"` in [reception] keeps it from that \
             while a node runs",
            numbers.join(", ")
        )
    };
    (!numbers.is_empty()).then(words)
}

fn moved(with: &Surroundings) -> Option<String> {
    let words = "is to have its interrupts at certain processors, and irqbalance runs here, which moves them: stop it, or have it leave them alone \
                 (`--banirq`)";
    (with.has_irqbalance && with.wanted.interrupts.is_some()).then(|| words.to_owned())
}

fn rps(place: &Place, with: &Surroundings) -> Option<String> {
    let (own, _) = others(with)?;
    let takes = with.wanted.rps.unwrap_or(place.rps);
    let words = || {
        format!(
            "hands packets on to processor {own}, which is the data plane's (RPS): `rps_cpus = \"none\"` in [reception], or one with other processors, \
             keeps them from it while a node runs"
        )
    };
    takes.contains(own).then(words)
}

/// The paper's 5.4.4: who works packets off must have the priority of the most urgent of those who wait for them.
fn napi(place: &Place, with: &Surroundings) -> Option<String> {
    let own = with.priority?;
    let there = place.threads.iter().flatten().map(|thread| thread.priority);
    let threads = with.wanted.napi_priority.or_else(|| there.min());
    let wanted = match own {
        // There is none above.
        98.. => {
            "give `priority` in [realtime] 98 at most, and `napi_priority` in [reception] one more"
                .to_owned()
        }
        _ => format!("give `napi_priority = {}` in [reception], or more", own + 1),
    };
    match threads {
        None if place.threads.is_some() => Some(format!(
            "has threads for its packets, of which none is seen from here, so that nobody can tell whether they go before the data plane with priority \
             {own}: {wanted}, and look where all processes of the computer are seen"
        )),
        None => Some(format!(
            "has its packets worked off by whoever is interrupted, and under load by an ordinary thread (ksoftirqd), while the data plane has priority \
             {own} and does not let that go on: {wanted}"
        )),
        Some(priority) if priority <= own => Some(format!(
            "has threads of priority {priority} for its packets, which wait for the data plane with priority {own}: {wanted}"
        )),
        Some(_) => None,
    }
}

fn busy_poll(with: &Surroundings) -> Option<String> {
    let is_alone = with.online.iter().nth(1).is_none();
    let words = match (is_alone, with.data_plane) {
        (true, _) => {
            "is looked at without sleeping on a computer with one processor, which the application then lacks: leave `busy_poll_us` in [reception] out"
        }
        (false, None) => {
            "is looked at without sleeping by a data plane that may run anywhere: give it a processor of its own (`cpu` in [realtime])"
        }
        (false, Some(_)) => return None,
    };
    with.busy_poll.then(|| words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Ring;
    use crate::survey::Interrupt;
    use crate::thread::Thread;

    fn list(text: &str) -> Processors {
        Processors::read_list(text).unwrap()
    }

    fn found() -> Found {
        let processors = list("0-1");
        Found {
            name: "eth0".to_owned(),
            ring: Some(Ring {
                packets: 256,
                most: 1024,
            }),
            place: Some(Place {
                interrupts: [38, 39]
                    .map(|number| Interrupt { number, processors })
                    .to_vec(),
                rps: Processors::NONE,
                threads: None,
            }),
        }
    }

    fn with() -> Surroundings {
        Surroundings {
            ring: 256,
            data_plane: None,
            priority: None,
            busy_poll: false,
            online: list("0-1"),
            has_irqbalance: false,
            wanted: Wanted::default(),
        }
    }

    fn told(found: &Found, with: &Surroundings) -> Vec<(Topic, String)> {
        let all = advice(found, with).into_iter();
        all.map(|it| (it.topic, it.words)).collect()
    }

    /// The one that there is, and that these words are in it.
    fn one(found: &Found, with: &Surroundings, topic: Topic, parts: &[&str]) {
        let all = told(found, with);
        assert!(all.len() == 1 && all[0].0 == topic, "{all:?}");
        for part in parts {
            assert!(all[0].1.contains(part), "{part} in {all:?}");
        }
    }

    #[test]
    fn nothing_is_said_of_an_ordinary_interface_with_the_ring_that_is_planned_with() {
        assert_eq!(told(&found(), &with()), []);
    }

    #[test]
    fn a_ring_that_is_not_the_planned_one_is_told_with_what_to_do() {
        let ring = |ring| Surroundings { ring, ..with() };
        one(
            &found(),
            &ring(512),
            Topic::Ring,
            &["ethtool -G eth0 rx 512", "`ring = 256`"],
        );
        one(
            &found(),
            &ring(128),
            Topic::Ring,
            &["`ring = 256`", "how much more"],
        );
        let all = told(&found(), &ring(4096));
        assert!(
            !all[0].1.contains("ethtool"),
            "it cannot be that large: {all:?}"
        );
        let without = Found {
            ring: None,
            ..found()
        };
        assert_eq!(told(&without, &ring(512)), []);
    }

    #[test]
    fn threads_that_are_there_and_not_seen_are_told_as_that() {
        let mut found = found();
        let place = found.place.as_mut().unwrap();
        place.threads = Some(Vec::new());
        let with = Surroundings {
            priority: Some(50),
            ..with()
        };
        one(
            &found,
            &with,
            Topic::Napi,
            &["none is seen from here", "`napi_priority = 51`"],
        );
    }

    #[test]
    fn whoever_disturbs_the_data_planes_processor_is_named() {
        let pinned = Surroundings {
            data_plane: Some(1),
            ..with()
        };
        one(
            &found(),
            &pinned,
            Topic::Interrupts,
            &["interrupts 38, 39", "`interrupt_cpus = \"0\"`"],
        );
        let mut asked = pinned;
        asked.wanted.interrupts = Some(list("0"));
        assert_eq!(told(&found(), &asked), []);
        asked.wanted.interrupts = Some(list("0-1"));
        one(&found(), &asked, Topic::Interrupts, &["processor 1"]);
        asked.wanted.interrupts = Some(list("0,7"));
        one(
            &found(),
            &asked,
            Topic::Interrupts,
            &["processors 7", "0-1"],
        );
        asked.wanted.interrupts = Some(list("0"));
        asked.has_irqbalance = true;
        one(&found(), &asked, Topic::Interrupts, &["irqbalance"]);
        asked.has_irqbalance = false;
        asked.wanted.rps = Some(list("1"));
        one(&found(), &asked, Topic::Rps, &["`rps_cpus = \"none\"`"]);
        let alone = Surroundings {
            online: list("1"),
            ..pinned
        };
        assert_eq!(told(&found(), &alone), [], "there is no other processor");
    }

    #[test]
    fn threads_below_the_data_planes_priority_are_told_with_the_one_above() {
        let urgent = Surroundings {
            priority: Some(50),
            ..with()
        };
        one(
            &found(),
            &urgent,
            Topic::Napi,
            &["ksoftirqd", "`napi_priority = 51`"],
        );
        let threaded = |priority| {
            let mut found = found();
            let thread = Thread {
                number: 7,
                priority,
                processors: list("0-1"),
            };
            found.place.as_mut().unwrap().threads = Some(vec![thread]);
            found
        };
        one(&threaded(50), &urgent, Topic::Napi, &["priority 50"]);
        assert_eq!(told(&threaded(51), &urgent), []);
        let mut asked = urgent;
        asked.wanted.napi_priority = Some(60);
        assert_eq!(told(&found(), &asked), []);
        asked.wanted.napi_priority = Some(0);
        one(&found(), &asked, Topic::Napi, &["priority 0"]);
        asked.priority = Some(99);
        one(&found(), &asked, Topic::Napi, &["98 at most"]);
    }

    #[test]
    fn busy_polling_wants_a_processor_of_its_own() {
        let polls = Surroundings {
            busy_poll: true,
            ..with()
        };
        one(&found(), &polls, Topic::BusyPoll, &["`cpu` in [realtime]"]);
        let alone = Surroundings {
            online: list("0"),
            ..polls
        };
        one(&found(), &alone, Topic::BusyPoll, &["one processor"]);
    }

    #[test]
    fn what_cannot_be_seen_from_here_is_said_to_be_so() {
        let unseen = Found {
            place: None,
            ..found()
        };
        one(&unseen, &with(), Topic::Unseen, &["network namespace"]);
    }
}
