use super::*;
use bumpless_iprp::{Departures, Side};

const A: u8 = 10;
const B: u8 = 11;

fn scope(port: u16) -> Scope {
    Scope {
        protocol: 17,
        side: Side::Destination,
        port,
        destination: [10, 0, 0, 2].into(),
    }
}

fn path(ind: u8, asked: u64, answered: u64) -> PathStatus {
    PathStatus {
        ind: Ind::new(ind).unwrap(),
        to: [10, 0, 0, 2].into(),
        usable: true,
        carries: false,
        silent: false,
        departures: Departures {
            sent: asked,
            again: 0,
            asked,
            answered,
        },
        round_trip: None,
    }
}

/// Looks once a second at a session with the networks A and B.
struct World {
    row: Row,
    second: u64,
    changes: Vec<(u64, u8, bool)>,
}

impl World {
    fn new() -> Self {
        Self {
            row: Row::default(),
            second: 0,
            changes: Vec::new(),
        }
    }

    fn look_at(&mut self, port: u16, suspended: bool, paths: &[PathStatus]) {
        let now = Instant::ZERO + Duration::from_secs(self.second);
        let (second, changes) = (self.second, &mut self.changes);
        let mut tell = |it: Change| changes.push((second, it.ind.get(), it.begins.is_some()));
        let what = (scope(port), suspended);
        self.row.look(now, what, paths.iter().copied(), &mut tell);
        self.second += 1;
    }

    fn look(&mut self, a: (u64, u64), b: (u64, u64)) {
        self.look_at(5, false, &[path(A, a.0, a.1), path(B, b.0, b.1)]);
    }
}

#[test]
fn a_network_that_answers_nothing_is_told_of_after_some_seconds_and_when_it_answers_again() {
    let mut world = World::new();
    for second in 0..10 {
        world.look((second * 4, second * 4), (second * 4, second * 4));
    }
    assert_eq!(world.changes, []);
    for second in 10..20 {
        world.look((second * 4, 36), (second * 4, second * 4));
    }
    assert_eq!(world.changes, [(14, A, true)], "once");
    let lasts = world.row.seen(Ind::new(A).unwrap()).unwrap();
    let of_now = lasts.unanswered(Instant::ZERO + Duration::from_secs(19), &path(A, 76, 36));
    assert_eq!(
        (of_now.lasts, of_now.questions),
        (Duration::from_secs(10), 40)
    );
    world.look((80, 37), (80, 80));
    assert_eq!(world.changes[1..], [(20, A, false)]);
}

#[test]
fn a_network_that_has_answered_nothing_since_the_begin_is_told_of() {
    let mut world = World::new();
    for second in 0..8 {
        world.look((second * 4, 0), (second * 4, second * 4));
    }
    assert_eq!(world.changes.len(), 1);
    assert_eq!((world.changes[0].1, world.changes[0].2), (A, true));
}

#[test]
fn a_receiver_that_is_gone_is_no_networks_weakness_nor_is_one_that_comes_back() {
    let mut world = World::new();
    for second in 0..5 {
        world.look((second * 4, second * 4), (second * 4, second * 4));
    }
    for second in 5..20 {
        let asked = 20 + second * 50;
        world.look((asked, 16), (asked, 16));
    }
    // B is heard a look earlier than A.
    world.look((1_100, 16), (1_100, 17));
    world.look((1_104, 17), (1_104, 21));
    for _ in 0..9 {
        let same = [path(A, 1_200, 17), path(B, 1_200, 21)];
        world.look_at(5, true, &same);
    }
    assert_eq!(world.changes, []);
}

#[test]
fn a_loss_here_and_there_and_a_flow_that_has_ended_tell_nothing() {
    let mut world = World::new();
    for second in 0..30 {
        // One of four is answered on A, and then nothing is sent any more.
        let rounds = second.min(15);
        world.look((rounds * 4, rounds), (rounds * 4, rounds * 4));
    }
    assert_eq!(world.changes, []);
    // A slow flow asks with each packet: several of them, and not time alone.
    let mut slow = World::new();
    for second in 0..45 {
        let asked = second / 10;
        slow.look((asked, 0), (asked, asked));
    }
    assert_eq!(slow.changes, []);
    for second in 45..70 {
        let asked = second / 10;
        slow.look((asked, 0), (asked, asked));
    }
    assert_eq!(slow.changes.len(), 1, "{:?}", slow.changes);
}

#[test]
fn a_network_that_is_left_or_another_session_at_the_place_begins_anew() {
    let mut world = World::new();
    for second in 0..10 {
        world.look((second * 4, 0), (second * 4, second * 4));
    }
    assert_eq!(world.changes.len(), 1);
    world.look_at(5, false, &[path(B, 40, 40)]);
    assert!(world.row.seen(Ind::new(A).unwrap()).is_none());
    for second in 11..30 {
        let mut a = path(A, second * 4, 0);
        a.usable = second > 27;
        world.look_at(5, false, &[a, path(B, second * 4, second * 4)]);
    }
    assert_eq!(world.changes.len(), 1);
    for second in 30..33 {
        world.look_at(6, false, &[path(A, second, 0), path(B, second, second)]);
    }
    assert_eq!(world.changes.len(), 1);
}
