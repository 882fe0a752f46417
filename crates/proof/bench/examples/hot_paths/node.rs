//! A turn of the data plane of a node with few or many applications.

use std::sync::Arc;

use bumpless_base::{ChannelId, Instant};
use bumpless_config::Config;
use bumpless_node::build::{Beginning, Node};
use bumpless_node::data_plane::Turn;
use bumpless_node::data_plane::drivers::Sockets;
use bumpless_node::wiring::Wiring;
use bumpless_transfer::ChannelPlace;

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
    let links = config.networks.iter().map(|_| None).collect();
    let beginning = Beginning {
        seed: 1,
        now,
        stop: Arc::default(),
        log_transfers: false,
    };
    let drivers = (links, Vec::new());
    let node = Node::<Sockets>::new(&config, &wiring, drivers, beginning);
    let Node {
        mut plane, parts, ..
    } = node.expect("a sound setup");
    for round in 0..rounds {
        let application = (round % u64::from(applications)) as usize;
        parts
            .shared(ChannelPlace(application))
            .mailbox
            .note_published(round, bumpless_mailbox::StateLife::until(now));
        assert!(matches!(plane.turn(|| now), Turn::Wait(_)));
    }
}

pub fn turns_of_one(rounds: u64) {
    turns(1, rounds);
}

pub fn turns_of_thousand(rounds: u64) {
    turns(1000, rounds);
}
