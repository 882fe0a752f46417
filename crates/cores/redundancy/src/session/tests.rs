use super::*;
use bumpless_base::{LinkId, NodeId};
use proptest::prelude::*;
use std::vec::Vec;

/// One incarnation of a node with its session towards the other.
struct End(Session);

impl End {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self(Session::new(nonzero(&mut random), random.next_u64()))
    }
    fn say(&self) -> HeartbeatHeader {
        HeartbeatHeader {
            pair: 1,
            fingerprint: 2,
            from: NodeId(0),
            to: NodeId(1),
            link: LinkId(0),
            session: self.0.own(),
            challenge: self.0.challenge(),
            echo_session: self.0.adopted(),
            echo_challenge: self.0.heard_challenge(),
            sent_at: 1,
            echo_sent_at: 0,
            echo_delay: 0,
            lease_echo: 0,
            next: 0,
            full_echo: 0,
            padded: false,
        }
    }
}

/// Both speak at once, so that each hears only what the other said a round before.
fn talk(rounds: u32, a: &mut End, b: &mut End) {
    for _ in 0..rounds {
        let (from_a, from_b) = (a.say(), b.say());
        b.0.admit(&from_a);
        a.0.admit(&from_b);
    }
}

#[test]
fn two_nodes_know_each_other_within_three_heartbeats_and_agree_on_the_tag() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    assert_eq!(a.0.transfer_tag(), None);
    talk(3, &mut a, &mut b);
    assert!(a.0.is_mutual() && b.0.is_mutual());
    assert_eq!(a.0.transfer_tag(), b.0.transfer_tag());
    assert!(a.0.transfer_tag().is_some());
}

#[test]
fn a_restart_of_either_node_changes_the_tag() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    talk(4, &mut a, &mut b);
    let first = a.0.transfer_tag();
    let mut b2 = End::new(3);
    talk(4, &mut a, &mut b2);
    assert_eq!(a.0.transfer_tag(), b2.0.transfer_tag());
    assert_ne!(a.0.transfer_tag(), first);
}

#[test]
fn no_heartbeat_of_an_earlier_incarnation_is_ever_adopted_again() {
    let (mut a, mut old) = (End::new(1), End::new(2));
    let mut recorded = Vec::new();
    for _ in 0..5 {
        let (from_a, from_old) = (a.say(), old.say());
        recorded.push(from_old);
        old.0.admit(&from_a);
        a.0.admit(&from_old);
    }
    let mut new = End::new(3);
    talk(4, &mut a, &mut new);
    let adopted = a.0.adopted();
    for heartbeat in &recorded {
        assert_eq!(a.0.admit(heartbeat), Admission::Foreign);
        assert_eq!(a.0.adopted(), adopted);
    }
    assert!(a.0.is_mutual());
}

#[test]
fn a_session_that_echoes_a_guess_or_an_earlier_process_is_not_adopted() {
    let (mut a, b) = (End::new(1), End::new(2));
    let mut heartbeat = b.say();
    heartbeat.echo_challenge = a.0.challenge() ^ 1;
    assert_eq!(a.0.admit(&heartbeat), Admission::Foreign);
    heartbeat.echo_challenge = a.0.challenge();
    heartbeat.echo_session = a.0.own() ^ 1;
    assert_eq!(a.0.admit(&heartbeat), Admission::Foreign);
    heartbeat.echo_session = 0;
    assert_eq!(a.0.admit(&heartbeat), Admission::Adopted);
}

proptest! {
    /// Any mix of restarts, losses and replays of everything ever said: once a later incarnation
    /// was adopted, an earlier one never is.
    #[test]
    fn incarnations_adopted_only_grow(steps in proptest::collection::vec((0u8..8, any::<u16>()), 0..200)) {
        let (mut a, mut b) = (End::new(1), End::new(2));
        let (mut said, mut incarnations) = (Vec::new(), Vec::from([b.0.own()]));
        let mut newest = None;
        for (step, pick) in steps {
            match step {
                0 => {
                    b = End::new(u64::from(pick) + 100 + incarnations.len() as u64 * 100_000);
                    incarnations.push(b.0.own());
                }
                1..=3 => said.push(b.say()),
                4 | 5 => { b.0.admit(&a.say()); }
                _ if said.is_empty() => {}
                _ => {
                    let heartbeat = said[usize::from(pick) % said.len()];
                    a.0.admit(&heartbeat);
                    let at = incarnations.iter().position(|&s| s == a.0.adopted());
                    prop_assert!(at >= newest);
                    newest = at;
                }
            }
        }
    }
}
