//! Paths of the redundancy core: two nodes on two networks without a reference point.

use bumpless_base::{Duration, Instant, LinkId};
use bumpless_config::Config;
use bumpless_node::build::build_cores;
use bumpless_node::data_plane::inbound::Cores;
use bumpless_node::wiring::Wiring;
use bumpless_redundancy::{MAX_MESSAGE_LEN, Outgoing};
use bumpless_wire::{Packet, parse};

pub const PAIR: &str = r#"
[pair]
name = "paths"
[security]
packets = "open"
[[network]]
name = "A"
bandwidth_mbit = 1000
[[network]]
name = "B"
bandwidth_mbit = 1000
[[node]]
name = "left"
addresses = { A = "10.0.1.1:4700", B = "10.0.2.1:4700" }
[[node]]
name = "right"
addresses = { A = "10.0.1.2:4700", B = "10.0.2.2:4700" }
[[group]]
name = "pair"
nodes = ["left", "right"]
without_reference = true
[[application]]
name = "only"
group = "pair"
kind = "synthetic"
channel = 1
period_ms = 10
size = "1 kB"
"#;

struct Nodes {
    cores: [Cores; 2],
    now: Instant,
}

impl Nodes {
    /// Two nodes that have found each other.
    fn new() -> Self {
        let config = Config::parse(PAIR, "hot_paths").expect("a sound configuration");
        let now = Instant::from_nanos(1_000_000_000);
        let node = |name: &str, seed| {
            let node = config.node(name).expect("it is configured");
            let wiring = Wiring::new(&config, node);
            build_cores(&config, &wiring, seed, now)
                .expect("a sound setup")
                .0
        };
        let mut nodes = Self {
            cores: [node("left", 1), node("right", 2)],
            now,
        };
        (0..2000).for_each(|_| nodes.step());
        nodes
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(2);
        for from in 0..2 {
            self.cores[from].redundancy.handle_timeout(self.now);
        }
        for from in 0..2 {
            let mut bytes = [0; MAX_MESSAGE_LEN];
            while let Some(Outgoing::Heartbeat { link, len, .. }) = self.cores[from]
                .redundancy
                .poll_transmit(self.now, &mut bytes)
            {
                self.carry(1 - from, link, &bytes[..len]);
            }
        }
        for cores in &mut self.cores {
            while cores.redundancy.poll_event().is_some() {}
        }
    }

    fn carry(&mut self, to: usize, link: LinkId, bytes: &[u8]) {
        let Ok(Packet::Heartbeat(heartbeat)) = parse(bytes) else {
            unreachable!("a node wrote it")
        };
        let redundancy = &mut self.cores[to].redundancy;
        redundancy.handle_heartbeat(link, &heartbeat, self.now);
    }
}

/// Both nodes send on both networks, and hear it.
pub fn heartbeats(rounds: u64) {
    let mut nodes = Nodes::new();
    (0..rounds).for_each(|_| nodes.step());
}

/// A node is woken, and nothing is due.
pub fn idle(rounds: u64) {
    let mut nodes = Nodes::new();
    let now = nodes.now;
    let redundancy = &mut nodes.cores[0].redundancy;
    let mut bytes = [0; MAX_MESSAGE_LEN];
    for _ in 0..rounds {
        redundancy.handle_timeout(now);
        assert!(redundancy.poll_transmit(now, &mut bytes).is_none());
        assert!(redundancy.poll_timeout() > now);
    }
}
