//! A turn of the data plane of a node with few or many applications.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use bumpless_base::{ChannelId, Instant};
use bumpless_config::Config;
use bumpless_node::build::{Parts, build_cores};
use bumpless_node::data_plane::drivers::Sockets;
use bumpless_node::data_plane::{Surroundings, Turn};
use bumpless_node::log::EventLog;
use bumpless_node::status::Snapshot;
use bumpless_node::wiring::Wiring;
use rtrb::RingBuffer;

use crate::roles::PAIR;

/// Without links, so that nothing but the applications is there to look after; in each turn one of them has
/// published something.
fn turns(applications: u16, rounds: u64) {
    let mut config = Config::parse(PAIR, "hot_paths").expect("a sound configuration");
    let only = config.applications[0].clone();
    config.applications = (1..=applications)
        .map(|number| bumpless_config::Application {
            channel: ChannelId::new(number).expect("not zero"),
            ..only.clone()
        })
        .collect();
    let now = Instant::from_nanos(1_000_000_000);
    let wiring = Wiring::new(&config, config.node("left").expect("it is configured"));
    let (cores, _ends) = build_cores(&config, &wiring, 1, now).expect("a sound setup");
    let mut log = EventLog::new(wiring.names.clone());
    let parts = Parts::new(&config, &wiring);
    let surroundings = Surroundings {
        commands: RingBuffer::new(1).1,
        sink: log.sink(),
        snapshot: Arc::new(Mutex::new(Snapshot::new(&config, &wiring.names, 1, now))),
        stop: Arc::new(AtomicBool::new(false)),
        log_transfers: false,
        board: Arc::default(),
    };
    let links = config.networks.iter().map(|_| None).collect();
    let mut plane =
        parts.data_plane::<Sockets>(&config, cores, (links, Vec::new()), surroundings, now);
    for round in 0..rounds {
        let application = (round % u64::from(applications)) as usize;
        parts
            .shared(application)
            .port
            .note_published(round, bumpless_meeting::StateLife::until(now));
        assert!(matches!(plane.turn(|| now), Turn::Wait(_)));
    }
}

pub fn turns_of_one(rounds: u64) {
    turns(1, rounds);
}

pub fn turns_of_thousand(rounds: u64) {
    turns(1000, rounds);
}
