//! Groups: many receivers of one sender, who speak for each other (iPRP V-A, V-F; `spec/iprp.md`, I-24, I-31).

#[path = "../support/pair.rs"]
mod pair;
mod secrets;

use std::net::{IpAddr, SocketAddr};

use bumpless_base::{Duration, Instant};
use bumpless_iprp::{
    Discard, EndCause, Flow, Group, MAX_MESSAGE, Origin, PeerId, Receiver, ReceiverEvent,
    ReceiverSetup, Sender, SenderEvent, SenderSetup, Timing, group_of_message,
};
use bumpless_secure::{RingSuite, Secret};
use pair::{MS, address, flow, networks, receiver_setup, sender_setup};

const GROUP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 1, 2, 3));

fn groups() -> Vec<Group> {
    vec![Group {
        address: GROUP,
        secrets: vec![Secret::new([9; 32])],
    }]
}

fn to_group() -> Flow {
    Flow {
        destination: GROUP,
        ..flow()
    }
}

fn member(seed: u64) -> Receiver<RingSuite> {
    let setup = ReceiverSetup {
        groups: groups(),
        seed: seed * 7_919,
        ..receiver_setup()
    };
    Receiver::new(setup, Instant::ZERO).unwrap()
}

fn sender() -> Sender<RingSuite> {
    let setup = SenderSetup {
        groups: groups(),
        ..sender_setup(1)
    };
    Sender::new(setup).unwrap()
}

fn at(span: Duration) -> Instant {
    Instant::ZERO + span
}

const SENDER: Origin = Origin {
    peer: PeerId(1),
    address: IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 1)),
};

/// Any member: who it is makes no difference.
fn a_member() -> Origin {
    Origin {
        peer: PeerId(7),
        address: address(2, 1),
    }
}

/// What `receiver` has to say at `now`.
fn say(receiver: &mut Receiver<RingSuite>, now: Instant) -> Vec<Vec<u8>> {
    let mut message = [0; MAX_MESSAGE];
    let mut said = Vec::new();
    while let Some(outgoing) = receiver.poll_advertisement(now, &mut message) {
        said.push(message[..outgoing.len].to_vec());
    }
    said
}

/// The sender's answer.
fn hear(sender: &mut Sender<RingSuite>, now: Instant, message: &[u8]) -> Vec<u8> {
    let mut answer = [0; MAX_MESSAGE];
    let len = sender.handle_message(now, a_member(), message, &mut answer);
    answer[..len.unwrap()].to_vec()
}

/// A sender with a session that a member has asked for at `now`; the acknowledgement.
fn begun(now: Instant) -> (Sender<RingSuite>, Vec<u8>) {
    let mut sender = sender();
    let mut first = member(1);
    first.handle_monitored(now.before(Duration::from_secs(10)), &to_group());
    first.handle_monitored(now, &to_group());
    let said = say(&mut first, now);
    assert_eq!(group_of_message(&said[0]), Some(GROUP));
    let answer = hear(&mut sender, now, &said[0]);
    assert!(sender.is_replicated(&to_group()));
    (sender, answer)
}

fn copies(sender: &mut Sender<RingSuite>, now: Instant, payload: &[u8]) -> Vec<(IpAddr, Vec<u8>)> {
    let mut scratch = [0; 256];
    let mut copies = Vec::new();
    sender.replicate(now, &to_group(), payload, &mut scratch, |copy| {
        copies.push((copy.to, copy.bytes.to_vec()));
    });
    copies
}

/// I-31: the back-off of V-F, which an acknowledgement of another member's ends.
#[test]
fn a_group_of_many_receivers_advertises_a_few_times() {
    let mut receivers: Vec<_> = (0..200).map(member).collect();
    let mut sender = sender();
    let (mut first, mut advertised) = (None, 0);
    let mut answers: Vec<(Instant, Vec<u8>)> = Vec::new();
    for receiver in &mut receivers {
        receiver.handle_monitored(Instant::ZERO, &to_group());
    }
    for tick in 0..3_000u64 {
        let now = at(MS * (tick * 10));
        let (due, later): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(at, _)| *at <= now);
        answers = later;
        for receiver in &mut receivers {
            for (_, answer) in &due {
                receiver.handle_message(now, SENDER, answer).unwrap();
            }
            if tick % 100 == 0 {
                // What is sent goes on.
                receiver.handle_monitored(now, &to_group());
            }
            for message in say(receiver, now) {
                advertised += 1;
                first.get_or_insert(now);
                answers.push((now + MS * 100, hear(&mut sender, now, &message)));
            }
        }
    }
    let first = first.expect("somebody advertises").since(Instant::ZERO);
    assert!(first <= Duration::from_secs(10), "{first}");
    assert!(
        advertised <= 12,
        "{advertised} advertisements of 200 receivers in 30 s"
    );
    let copies = copies(&mut sender, at(first), b"to all");
    assert_eq!(copies.len(), 2);
    assert!(copies.iter().all(|(to, _)| *to == GROUP));
}

/// I-11, I-24: the addresses in the packet and the group's secret are enough.
#[test]
fn a_member_that_joins_late_takes_the_next_packet_and_learns_the_senders_addresses_with_the_next_acknowledgement()
 {
    let now = at(Duration::from_secs(20));
    let (mut sender, answer) = begun(now);
    let mut late = member(2);
    let from = SocketAddr::new(address(1, 1), 1_001);
    for number in 0..3u8 {
        let mut copies = copies(&mut sender, now, &[number]);
        let delivery = late.handle_data(now, None, from, &mut copies[1].1).unwrap();
        assert_eq!(
            (delivery.flow, delivery.payload),
            (to_group(), &[number][..])
        );
        let again = late.handle_data(now, None, from, &mut copies[0].1);
        assert!(again.is_err(), "{again:?}");
    }
    assert!(matches!(
        late.poll_event(),
        Some(ReceiverEvent::Begun { .. })
    ));
    assert_eq!(late.poll_event(), None);
    for _ in 0..2 {
        late.handle_message(now, SENDER, &answer).unwrap();
        let Some(ReceiverEvent::Networks { networks: told, .. }) = late.poll_event() else {
            panic!("the sender's addresses are told");
        };
        assert_eq!(told, networks(1, &[1, 2]));
    }
}

/// I-40: one of many leaves without ending it for the others; without any, it ends after three periods.
#[test]
fn a_member_that_leaves_ends_nothing_for_the_others() {
    let now = at(Duration::from_secs(20));
    let (mut sender, answer) = begun(now);
    let mut leaving = member(2);
    leaving.handle_monitored(now, &to_group());
    leaving.handle_message(now, SENDER, &answer).unwrap();
    leaving.withdraw();
    let said = say(&mut leaving, now);
    assert_eq!(group_of_message(&said[0]), Some(GROUP));
    assert_eq!(hear(&mut sender, now, &said[0]), []);
    assert!(sender.is_replicated(&to_group()));
    while sender.poll_event().is_some() {}
    let lifetime = Timing::default().advertise_every * 3;
    sender.handle_timeout((now + lifetime).before(MS));
    assert!(sender.is_replicated(&to_group()));
    sender.handle_timeout(now + lifetime);
    assert!(!sender.is_replicated(&to_group()));
    assert!(matches!(
        sender.poll_event(),
        Some(SenderEvent::Ended {
            cause: EndCause::NotAdvertised,
            ..
        })
    ));
}

/// I-65: a network that is behind brings copies after the withdrawal, also of a sender that was never advertised to.
#[test]
fn a_member_that_stops_takes_nothing_twice_and_all_that_is_on_its_way() {
    let now = at(Duration::from_secs(20));
    let (mut sender, _) = begun(now);
    let from = SocketAddr::new(address(1, 1), 1_001);
    let mut stops = member(2);
    let [mut early, mut late] = [b"early", b"later"].map(|it| copies(&mut sender, now, it));
    stops.handle_data(now, None, from, &mut early[0].1).unwrap();
    stops.withdraw();
    assert_eq!(say(&mut stops, now), Vec::<Vec<u8>>::new());
    let behind = now + MS * 100;
    stops.handle_timeout(behind);
    for (copy, is_first) in [
        (early.remove(1), false),
        (late.remove(1), true),
        (late.remove(0), false),
    ] {
        let mut copy = copy.1;
        let came = stops.handle_data(behind, None, from, &mut copy);
        assert_eq!(came.is_ok(), is_first, "{came:?}");
    }
    let events = std::iter::from_fn(|| stops.poll_event());
    let ends = events.filter(|it| matches!(it, ReceiverEvent::Ended { .. }));
    assert_eq!(ends.count(), 1);
}

/// I-30, I-36: the sender numbers on for other members meanwhile.
#[test]
fn a_member_that_comes_back_takes_the_next_packet_and_nothing_that_it_has_had() {
    let start = at(Duration::from_secs(20));
    let (mut sender, answer) = begun(start);
    let from = SocketAddr::new(address(1, 1), 1_001);
    let mut back = member(2);
    let mut had = copies(&mut sender, start, b"had").remove(0).1;
    let recorded = had.clone();
    back.handle_data(start, None, from, &mut had).unwrap();
    for minutes in [1, 10, 60, 12 * 60] {
        // Others hear it, and keep the session up.
        let now = start + Duration::from_secs(60 * minutes);
        let mut missed = copies(&mut sender, now, b"missed").remove(0).1;
        let recorded_late = missed.clone();
        back.handle_timeout(now);
        assert_eq!(back.sessions().count(), 0, "it is heard no more");
        assert!(back.handle_message(now, SENDER, &answer).is_err());
        let mut replayed = recorded.clone();
        let again = back.handle_data(now, None, from, &mut replayed);
        assert!(again.is_err(), "{again:?}");
        assert_eq!(back.sessions().count(), 0, "what is repeated wakes nobody");
        assert_eq!(say(&mut back, now), Vec::<Vec<u8>>::new());
        // What it has missed and is still on its way when it comes back is as good as the next one.
        let mut next = copies(&mut sender, now, b"next").remove(0).1;
        assert!(back.handle_data(now, None, from, &mut next).is_ok());
        assert!(back.handle_data(now, None, from, &mut missed).is_ok());
        let mut replayed = recorded_late.clone();
        let again = back.handle_data(now, None, from, &mut replayed);
        assert!(again.is_err(), "{again:?}");
        assert_eq!(back.sessions().count(), 1);
        let until = now + Timing::default().back_off;
        back.handle_timeout(until);
        assert_eq!(say(&mut back, until).len(), 1, "it advertises again");
    }
}

/// I-31: what had paused for all members is heard by all at the same moment.
#[test]
fn a_group_backs_off_again_when_its_sender_has_paused() {
    let mut members: Vec<_> = (0..50).map(member).collect();
    let start = at(Duration::from_secs(20));
    let (mut sender, answer) = begun(start);
    let from = SocketAddr::new(address(1, 1), 1_001);
    let mut pass = |now: Instant, is_heard: bool| {
        let copy = copies(&mut sender, now, b"now").remove(0).1;
        for member in &mut members {
            member.handle_timeout(now);
            assert_eq!(say(member, now), Vec::<Vec<u8>>::new(), "{now:?}");
            if is_heard {
                member
                    .handle_data(now, None, from, &mut copy.clone())
                    .unwrap();
            }
            if now == start {
                member.handle_message(now, SENDER, &answer).unwrap();
            }
            assert_eq!(say(member, now), Vec::<Vec<u8>>::new(), "{now:?}");
        }
    };
    pass(start, true);
    pass(start + Duration::from_secs(24), true);
    // The pause begins in the sleep of all, who then back off, and have nobody to advertise to.
    pass(start + Duration::from_millis(30_001), false);
    pass(start + Duration::from_secs(41), false);
    pass(start + Duration::from_secs(45), true);
}

#[test]
fn a_group_goes_by_networks_of_its_own_family_alone() {
    let group: IpAddr = "ff35::1:2".parse().unwrap();
    let groups = || {
        vec![Group {
            address: group,
            secrets: vec![Secret::new([9; 32])],
        }]
    };
    let with = |second: &str, host: u8| {
        let ind = |it| bumpless_iprp::Ind::new(it).unwrap();
        let network = |it, address: String| bumpless_iprp::Network {
            ind: ind(it),
            address: address.parse().unwrap(),
        };
        let networks = [
            network(1, format!("fd00:a::{host}")),
            network(2, format!("{second}{host}")),
        ];
        bumpless_iprp::Networks::new(&networks).unwrap()
    };
    let sent_on = |second: &str| {
        let setup = SenderSetup {
            networks: with(second, 1),
            groups: groups(),
            ..sender_setup(1)
        };
        let mut sender: Sender<RingSuite> = Sender::new(setup).unwrap();
        let setup = ReceiverSetup {
            networks: with("10.2.0.", 2),
            groups: groups(),
            ..receiver_setup()
        };
        let mut member: Receiver<RingSuite> = Receiver::new(setup, Instant::ZERO).unwrap();
        let flow = Flow {
            source: "fd00:a::1".parse().unwrap(),
            destination: group,
            ..flow()
        };
        let now = at(Duration::from_secs(20));
        member.handle_monitored(now, &flow);
        let later = now + Duration::from_secs(10);
        member.handle_monitored(later, &flow);
        let said = say(&mut member, later);
        hear(&mut sender, later, &said[0]);
        let (mut inds, mut scratch) = (Vec::new(), [0; 1500]);
        sender.replicate(later, &flow, b"x", &mut scratch, |copy| {
            assert_eq!(copy.to, group);
            inds.push(copy.ind.get());
        });
        inds
    };
    assert_eq!(sent_on("fd00:b::"), [1, 2]);
    // What the member's second network has makes no difference: others may be members there.
    assert_eq!(sent_on("10.2.0."), [1]);
}
