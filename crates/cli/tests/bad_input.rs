//! Bad input of every kind, from anywhere, while a pair runs: counted by cause, never a crash, never
//! memory, never an effect.

mod support;

use std::io::Write;
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bumpless_base::Random;
use bumpless_testing::need_root;
use support::addresses::Addresses;
use support::forge::{Forger, Listener};
use support::plan::Plan;
use support::site::Site;
use support::{junk, let_run, wait_for, wait_until};

/// How often each crafted datagram is sent.
const TIMES: u64 = 20;
/// Datagrams at random in one flood.
const FLOOD: usize = 10_000;
/// Genuine datagrams that are replayed later.
const RECORDED: usize = 12;
/// More resident memory than before a flood means that something is kept of it.
const MEMORY_SLACK: u64 = 3 << 20;

fn running() -> Site {
    let mut plan = Plan::pair(2).tank(50, "");
    // In an envelope nothing forged comes as far as to what is counted here.
    plan.open = true;
    // Nor does all of a flood, where sockets keep strangers out (V-76).
    plan.transfer = "[reception]\nguard = \"off\"\n".to_owned();
    let mut site = Site::new(plan);
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site
}

fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => panic!("not of IPv4"),
    }
}

/// Nothing has come of it: the same primary in the same epoch, which goes on writing.
fn has_no_effect(site: &Site, before: &(String, String, u64)) {
    site.await_writes(3);
    assert_eq!(&site.await_redundant("tank"), before, "a role moved");
    for node in ["left", "right"] {
        for event in ["duplicate_node", "configuration_differs"] {
            let said = site.events_of(node, event);
            assert!(said.is_empty(), "{node} was impressed: {said:?}");
        }
        let mut lost = site.events_of(node, "role");
        lost.retain(|event| event["from"] == "primary");
        assert!(lost.is_empty(), "{node} gave its role up: {lost:?}");
    }
    site.writes().judge();
}

/// Sends each case and waits until exactly its counter shows it.
fn are_counted(site: &Site, node: &str, cases: &[junk::Case], send: impl Fn(&[u8])) {
    for (counter, datagram) in cases {
        let before = site.counter(node, counter);
        (0..TIMES).for_each(|_| send(datagram));
        wait_until(
            &format!(
                "{node} counts {counter} for {:02x?}",
                &datagram[..datagram.len().min(24)]
            ),
            || site.counter(node, counter) >= before + TIMES,
        );
    }
}

/// Sends junk in portions that a receive buffer takes.
fn flood(random: &mut Random, send: impl Fn(&[u8])) {
    for number in 0..FLOOD {
        send(&junk::random(random));
        if number % 250 == 0 {
            let_run(2);
        }
    }
}

/// Memory of `node` after it has taken everything that was sent to it: what it has discarded stands still.
fn memory(site: &mut Site, node: &str) -> u64 {
    let mut before = None;
    wait_until(&format!("{node} has taken all junk"), || {
        let junk = ["discard_unknown_source", "discard_unknown_type"];
        let taken = junk.map(|counter| site.counter(node, counter));
        let all = before.replace(taken) == Some(taken);
        // Longer than the figures of a status are old.
        let_run(100);
        all
    });
    site.node(node).resident()
}

fn whatever_strangers_send_is_counted_and_has_no_effect() {
    let mut site = running();
    let before = site.await_redundant("tank");
    let stranger = UdpSocket::bind(Addresses::find().stranger()).unwrap();
    let targets = ["left", "right"].map(|node| site.plan.address(node, 0));
    let send = |datagram: &[u8]| {
        for target in targets {
            stranger.send_to(datagram, target).unwrap();
        }
    };
    let cases = junk::blind_cases(&site.config());
    let unknown: Vec<_> = cases
        .into_iter()
        .map(|(_, datagram)| ("discard_unknown_source", datagram))
        .collect();
    are_counted(&site, "left", &unknown, send);
    are_counted(
        &site,
        "right",
        &[("discard_unknown_source", vec![0; 65_507])],
        send,
    );
    let mut random = Random::new(1);
    flood(&mut random, send);
    let warm = ["left", "right"].map(|node| memory(&mut site, node));
    for _ in 0..3 {
        flood(&mut random, send);
    }
    for (node, warm) in ["left", "right"].into_iter().zip(warm) {
        let after = memory(&mut site, node);
        assert!(
            after <= warm + MEMORY_SLACK,
            "{node} grew from {warm} to {after} bytes"
        );
    }
    has_no_effect(&site, &before);
}

fn junk_from_the_address_of_a_partner_that_is_away_has_no_effect() {
    let mut site = running();
    let (primary, backup, _) = site.await_redundant("tank");
    site.kill(&backup);
    site.await_status("the partner is silent", &primary, |status| {
        status["groups"][0]["partner_heard"] == false
    });
    let partner = UdpSocket::bind(site.plan.address(&backup, 0)).unwrap();
    let target = site.plan.address(&primary, 0);
    let send = |datagram: &[u8]| {
        partner.send_to(datagram, target).unwrap();
    };
    let epoch = site.group(&primary, "tank").unwrap()["epoch"].clone();
    let cases = junk::blind_cases(&site.config());
    are_counted(&site, &primary, &cases, send);
    flood(&mut Random::new(2), send);
    let group = site.group(&primary, "tank").unwrap();
    assert_eq!(
        (&group["role"], &group["epoch"]),
        (&"primary".into(), &epoch),
        "{group}"
    );
    assert_eq!(
        group["partner_heard"], false,
        "junk passes for a partner: {group}"
    );
    drop(partner);
    site.await_writes(3);
    site.start(&backup);
    assert_eq!(site.await_redundant("tank").0, primary);
    site.writes().judge();
}

/// The first datagram from one node to another of which `wanted` makes something.
fn overhear<T>(
    listener: &Listener,
    (from, to): (SocketAddrV4, SocketAddrV4),
    wanted: impl Fn(&[u8]) -> Option<T>,
) -> T {
    wait_for("a datagram to overhear", || {
        std::iter::from_fn(|| listener.next(from, to)).find_map(|datagram| wanted(&datagram))
    })
}

fn forged_datagrams_of_a_partner_are_counted_by_cause_and_have_no_effect() {
    need_root();
    let mut site = running();
    let before = site.await_redundant("tank");
    assert_eq!(before.0, "left", "the preferred node is primary");
    let [left, right] = ["left", "right"].map(|node| v4(site.plan.address(node, 0)));
    let forger = Forger::new();
    let to_left = |datagram: &[u8]| forger.send(right, left, datagram);
    let to_right = |datagram: &[u8]| forger.send(left, right, datagram);
    are_counted(&site, "left", &junk::blind_cases(&site.config()), to_left);
    let listener = Listener::new();
    let heard = overhear(&listener, (left, right), junk::data_in);
    are_counted(&site, "right", &junk::informed_cases(&heard), to_right);
    // An acknowledgement of a cycle that was never sent.
    let mut stale = overhear(&listener, (right, left), junk::ack_in);
    stale.cycle = stale.cycle.wrapping_add(1_000_000);
    let stale = junk::ack(&stale, &[(0, 0)]);
    are_counted(&site, "left", &[("discard_stale_ack", stale)], to_left);
    let mut random = Random::new(3);
    flood(&mut random, to_left);
    flood(&mut random, to_right);
    let warm = ["left", "right"].map(|node| memory(&mut site, node));
    for _ in 0..2 {
        flood(&mut random, to_left);
        flood(&mut random, to_right);
    }
    for (node, warm) in ["left", "right"].into_iter().zip(warm) {
        let after = memory(&mut site, node);
        assert!(
            after <= warm + MEMORY_SLACK,
            "{node} grew from {warm} to {after} bytes"
        );
    }
    has_no_effect(&site, &before);
}

/// The next datagrams from one node to another that `wanted` takes.
fn record(path: (SocketAddrV4, SocketAddrV4), wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let listener = Listener::new();
    let next = |_| {
        overhear(&listener, path, |datagram| {
            wanted(datagram).then(|| datagram.to_vec())
        })
    };
    (0..RECORDED).map(next).collect()
}

fn datagrams_of_an_earlier_session_are_refused() {
    need_root();
    let mut site = running();
    let (primary, backup, _) = site.await_redundant("tank");
    let [from, to] = [&backup, &primary].map(|node| v4(site.plan.address(node, 0)));
    let old = record((from, to), |_| true);
    site.kill(&backup);
    site.start(&backup);
    let before = site.await_redundant("tank");
    assert_eq!(before.0, primary);
    let forger = Forger::new();
    let counted = site.counter(&primary, "discard_wrong_session");
    for _ in 0..5 {
        old.iter()
            .for_each(|datagram| forger.send(from, to, datagram));
        let_run(20);
    }
    let most = 5 * old.len() as u64;
    // Heartbeats and acknowledgements, all of the session that has ended.
    wait_until("every old datagram is counted", || {
        site.counter(&primary, "discard_wrong_session") >= counted + most
    });
    has_no_effect(&site, &before);
}

fn states_of_an_earlier_session_are_refused() {
    need_root();
    let mut site = running();
    let (primary, backup, _) = site.await_redundant("tank");
    let [from, to] = [&primary, &backup].map(|node| v4(site.plan.address(node, 0)));
    let old = record((from, to), |datagram| junk::data_in(datagram).is_some());
    // The backup is another incarnation, the primary the same: so is its counting of cycles.
    site.kill(&backup);
    site.start(&backup);
    let before = site.await_redundant("tank");
    let forger = Forger::new();
    let counted = site.counter(&backup, "discard_wrong_session");
    for _ in 0..5 {
        old.iter()
            .for_each(|datagram| forger.send(from, to, datagram));
        let_run(20);
    }
    wait_until("every old state is counted", || {
        site.counter(&backup, "discard_wrong_session") >= counted + 5 * old.len() as u64
    });
    has_no_effect(&site, &before);
}

fn junk_at_the_witnesses_disturbs_nothing_and_is_not_answered() {
    let mut site = running();
    let (primary, backup, epoch) = site.await_redundant("tank");
    let stranger = UdpSocket::bind(Addresses::find().stranger()).unwrap();
    stranger
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let targets: Vec<_> = site
        .plan
        .witnesses
        .iter()
        .map(|(_, address)| *address)
        .collect();
    let mut random = Random::new(4);
    let send = |datagram: &[u8]| {
        for target in &targets {
            stranger.send_to(datagram, target).unwrap();
        }
    };
    junk::blind_cases(&site.config())
        .iter()
        .for_each(|(_, datagram)| send(datagram));
    flood(&mut random, send);
    let warm = [0, 1].map(|number| site.witness(number).resident());
    flood(&mut random, send);
    flood(&mut random, send);
    for (number, warm) in [0, 1].into_iter().zip(warm) {
        let after = site.witness(number).resident();
        assert!(
            after <= warm + MEMORY_SLACK,
            "witness {number} grew from {warm} to {after}"
        );
    }
    let mut answer = [0; 100];
    let answered = stranger.recv(&mut answer);
    assert!(
        answered.is_err(),
        "a witness is no amplifier: {answer:02x?}"
    );
    let (now, _, same) = site.await_redundant("tank");
    assert_eq!((&now, same), (&primary, epoch));
    site.kill(&primary);
    assert!(site.await_primary(&backup, "tank") > epoch);
}

fn junk_on_the_control_socket_keeps_nobody_from_it() {
    let site = running();
    let before = site.await_redundant("tank");
    let node = &before.0;
    let connect = || UnixStream::connect(site.socket(node)).unwrap();
    let mut random = Random::new(5);
    for _ in 0..50 {
        // The node may hang up in the middle; that is its right.
        let _ = connect().write_all(&junk::random(&mut random));
        let _ = connect().write_all(&vec![b'{'; 100_000]);
        drop(connect());
    }
    for request in ["{}", "{\"command\":\"format\"}", "null", "[[[[", "\u{0}"] {
        let reply = site.ask(node, request).unwrap();
        assert_eq!(reply["schema"], "bumpless.error/1", "{request}: {reply}");
        assert!(
            reply["error"].as_str().unwrap().contains("not understood"),
            "{reply}"
        );
    }
    let wrong = site
        .ask(node, r#"{"command":"switchover","group":"tnak"}"#)
        .unwrap();
    assert!(wrong["error"].as_str().unwrap().contains("tank"), "{wrong}");
    has_no_effect(&site, &before);
}

fn callers_who_say_nothing_do_not_keep_others_from_the_control_socket() {
    let mut site = running();
    let before = site.await_redundant("tank");
    let silent: Vec<_> = (0..300)
        .map(|_| UnixStream::connect(site.socket(&before.0)).unwrap())
        .collect();
    let config = site.config();
    let arguments = ["status", config.to_str().unwrap(), "--node", &before.0];
    let status = support::process::bumpless(&arguments);
    assert!(status.status.success(), "{status:?}");
    // Nor do they keep the node from ending.
    site.interrupt_all();
    drop(silent);
}

fn junk_at_the_plant_keeps_nobody_from_writing() {
    let mut site = running();
    let before = site.await_redundant("tank");
    let mut random = Random::new(6);
    let connect = || TcpStream::connect(site.plan.plant).unwrap();
    for _ in 0..100 {
        // The plant may hang up in the middle; that is its right.
        let _ = connect().write_all(&junk::random(&mut random));
    }
    // More callers than the plant takes, who say nothing.
    let silent: Vec<_> = (0..100).map(|_| connect()).collect();
    site.await_writes(5);
    has_no_effect(&site, &before);
    drop(silent);
    assert!(site.plant().is_running());
}

fn own_heartbeats_of_an_earlier_session_that_come_back_have_no_effect() {
    need_root();
    let mut site = running();
    let (primary, backup, _) = site.await_redundant("tank");
    let [own, partner] = [&backup, &primary].map(|node| v4(site.plan.address(node, 0)));
    let old = record((own, partner), |_| true);
    site.kill(&backup);
    site.start(&backup);
    let before = site.await_redundant("tank");
    let forger = Forger::new();
    let refused = || {
        let causes = ["discard_wrong_node", "discard_wrong_session"];
        let counts = causes.map(|cause| site.counter(&backup, cause));
        counts.iter().sum::<u64>()
    };
    let counted = refused();
    old.iter()
        .for_each(|datagram| forger.send(partner, own, datagram));
    wait_until("every heartbeat of its own is counted", || {
        refused() >= counted + old.len() as u64
    });
    has_no_effect(&site, &before);
}

bumpless_testing::tests![
    whatever_strangers_send_is_counted_and_has_no_effect,
    junk_from_the_address_of_a_partner_that_is_away_has_no_effect,
    forged_datagrams_of_a_partner_are_counted_by_cause_and_have_no_effect,
    datagrams_of_an_earlier_session_are_refused,
    states_of_an_earlier_session_are_refused,
    junk_at_the_witnesses_disturbs_nothing_and_is_not_answered,
    junk_on_the_control_socket_keeps_nobody_from_it,
    callers_who_say_nothing_do_not_keep_others_from_the_control_socket,
    junk_at_the_plant_keeps_nobody_from_writing,
    own_heartbeats_of_an_earlier_session_that_come_back_have_no_effect,
];
