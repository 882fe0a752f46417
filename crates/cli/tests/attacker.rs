//! What an attacker who has the networks can do to a pair of real processes, and a witness that lies. The nodes are in
//! namespaces of their own, the attacker is in the switches between them.

mod support;

use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bumpless_base::{Counter, Random};
use support::attacker::{Attacker, Flood, Way, bent};
use support::hosts::{Hosts, pair_on_hosts, with_hosts};
use support::junk;
use support::liar::Liars;
use support::plan::Plan;
use support::site::Site;
use support::stalls::{Watch, a_miss_is_excused_only_by_stalls_in_half_of_the_time_that_it_had};
use support::{TIMEOUT, let_run, wait_until};

/// What the attacker has heard of each way before it begins.
const HEARD: usize = 150;

/// A pair whose nodes see everything that is sent to them: what the guard of their networks drops beyond a partner's budget they would
/// not have to refuse.
fn start(mut plan: Plan, hosts: Hosts) -> (Site, (String, String, u64)) {
    plan.transfer += "\n[reception]\nguard = \"off\"\n";
    let mut site = Site::new(plan).on(hosts);
    site.start_surroundings();
    site.start("left");
    site.start("right");
    let roles = site.await_redundant("tank");
    (site, roles)
}

/// How many datagrams `node` has refused to open.
fn refused(site: &Site, node: &str) -> u64 {
    let status = site.status(node).unwrap();
    let causes = [
        Counter::DiscardUnprotected,
        Counter::DiscardUnknownKey,
        Counter::DiscardMisdirected,
        Counter::DiscardForged,
        Counter::DiscardReplayed,
        Counter::DiscardUntried,
        Counter::DiscardTruncated,
        Counter::DiscardUnknownType,
        Counter::DiscardUnknownVersion,
        Counter::DiscardMalformed,
        Counter::DiscardCorrupt,
    ];
    let count = |cause: Counter| status["counters"][cause.name()].as_u64().unwrap();
    causes.into_iter().map(count).sum()
}

/// Does `attack`, which sends `count` datagrams to `node`, and waits until as many were refused there.
fn is_refused(site: &Site, what: &str, (node, count): (&str, usize), attack: impl FnOnce()) {
    let before = refused(site, node);
    attack();
    wait_until(&format!("{node} refuses: {what}"), || {
        refused(site, node) >= before + count as u64
    });
}

/// The same primary in the same epoch goes on writing, and both tell of nothing that they were made to believe.
fn has_no_effect(site: &Site, before: &(String, String, u64)) {
    site.await_writes(3);
    assert_eq!(&site.await_redundant("tank"), before, "a role moved");
    for node in ["left", "right"] {
        for event in ["duplicate_node", "configuration_differs"] {
            let said = site.events_of(node, event);
            assert!(said.is_empty(), "{node} was impressed: {said:?}");
        }
        assert_eq!(site.counter(node, "states_unopened"), 0);
    }
    site.writes().judge();
}

fn nothing_is_believed_that_was_repeated_changed_turned_round_or_made_up_on_the_way() {
    with_hosts(|hosts| {
        let (site, before) = start(pair_on_hosts().tank(50, ""), hosts);
        let mut attacker = Attacker::new(site.hosts());
        attacker.listen(HEARD);
        let mut random = Random::new(1);
        for way in Way::ALL {
            let heard = attacker.heard(way);
            let here = |count| (way.target(), count);
            is_refused(&site, "what came before", here(heard.len()), || {
                attacker.send_all(way, &heard);
            });
            let turned = attacker.heard(way.back());
            is_refused(&site, "what it has said itself", here(turned.len()), || {
                attacker.send_all(way, &turned);
            });
            let spliced = attacker.heard(way.beside());
            is_refused(&site, "what was said beside", here(spliced.len()), || {
                attacker.send_all(way, &spliced);
            });
            let changed: Vec<_> = heard.iter().map(|it| bent(it, &mut random)).collect();
            is_refused(&site, "what was changed", here(changed.len()), || {
                attacker.send_all(way, &changed);
            });
            // Every kind of message as it is without protection, and what only looks like one.
            let kinds = junk::blind_cases(&site.config()).into_iter();
            let mut made_up: Vec<_> = kinds.map(|(_, bytes)| bytes).collect();
            made_up.retain(|bytes| !bytes.is_empty() && bytes.len() <= 1472);
            made_up.extend((0..100).map(|_| junk::random(&mut random)));
            made_up.retain(|bytes| !bytes.is_empty() && bytes.len() <= 1472);
            is_refused(&site, "what was made up", here(made_up.len()), || {
                attacker.send_all(way, &made_up);
            });
        }
        has_no_effect(&site, &before);
    });
}

fn an_older_version_or_a_message_out_of_its_envelope_is_not_taken_for_want_of_better() {
    with_hosts(|hosts| {
        let (site, before) = start(pair_on_hosts().tank(50, ""), hosts);
        let mut attacker = Attacker::new(site.hosts());
        attacker.listen(10);
        let way = Way::new(0, true);
        let heard = attacker.heard(way);
        // The version is the second word of each message (W-32).
        let versions: Vec<_> = [0u8, 2, 3, 255]
            .iter()
            .flat_map(|&version| heard.iter().map(move |it| (version, it)))
            .map(|(version, it)| {
                let mut other = it.clone();
                other[3] = version;
                other
            })
            .collect();
        let count = (way.target(), versions.len());
        is_refused(&site, "another version", count, || {
            attacker.send_all(way, &versions);
        });
        let unprotected = site.counter(way.target(), "discard_unprotected");
        let mut header = junk::data_header(1);
        header.version = bumpless_wire::WireVersion::V1;
        let heartbeat = junk::heartbeat(&junk::foreign_heartbeat(&site.config()));
        let plain = vec![junk::data(&header, &[0; 100]), heartbeat];
        is_refused(&site, "plain messages", (way.target(), 2), || {
            attacker.send_all(way, &plain);
        });
        wait_until("they are told apart", || {
            site.counter(way.target(), "discard_unprotected") >= unprotected + 2
        });
        has_no_effect(&site, &before);
    });
}

fn what_was_said_before_a_restart_moves_nothing_after_it() {
    with_hosts(|hosts| {
        let (mut site, (primary, backup, epoch)) = start(pair_on_hosts().tank(50, ""), hosts);
        let mut attacker = Attacker::new(site.hosts());
        attacker.listen(HEARD);
        // Of both, and of processes that are gone.
        site.kill(&backup);
        site.start(&backup);
        let before = site.await_redundant("tank");
        assert_eq!(before, (primary.clone(), backup.clone(), epoch));
        for way in Way::ALL {
            attacker.send_all(way, &attacker.heard(way));
        }
        has_no_effect(&site, &before);
        // A whole earlier pair, while the new backup takes over.
        site.kill(&primary);
        for way in Way::ALL {
            attacker.send_all(way, &attacker.heard(way));
        }
        let higher = site.await_primary(&backup, "tank");
        assert!(higher > epoch);
        let resumed = site.await_event(&backup, "resumed", |_| true);
        let cause = resumed["cause"].as_str().unwrap();
        assert!(cause.contains("received from the partner"), "{cause}");
        site.start(&primary);
        for way in Way::ALL {
            attacker.send_all(way, &attacker.heard(way));
        }
        site.await_redundant("tank");
        site.await_writes(3);
        site.writes().judge();
    });
}

fn a_flood_of_forged_senders_ends_without_a_trace_and_a_restarted_node_is_heard_after_it() {
    with_hosts(|hosts| {
        let (mut site, (primary, backup, _)) = start(pair_on_hosts().tank(50, ""), hosts);
        let mut attacker = Attacker::new(site.hosts());
        attacker.listen(10);
        let mut random = Random::new(2);
        let mut flood = |attacker: &Attacker| {
            for _ in 0..6 {
                for way in Way::ALL {
                    let heard = attacker.heard(way);
                    for number in 0..400 {
                        // Of a process that nobody knows: a key is derived for each that is tried.
                        let mut forged = heard[number % heard.len()].clone();
                        forged[9..17].fill_with(|| random.next_u64() as u8);
                        attacker.send(way, &forged);
                    }
                    let_run(2);
                }
            }
        };
        let resident = ["left", "right"].map(|node| site.node(node).resident());
        flood(&attacker);
        for node in ["left", "right"] {
            wait_until("some were not even tried", || {
                site.counter(node, "discard_untried") > 0
            });
        }
        site.await_redundant("tank");
        for (node, before) in ["left", "right"].into_iter().zip(resident) {
            let after = site.node(node).resident();
            assert!(
                after < before + (4 << 20),
                "{node}: {before} to {after} bytes"
            );
        }
        site.kill(&backup);
        flood(&attacker);
        site.start(&backup);
        flood(&attacker);
        let (now, ..) = site.await_redundant("tank");
        assert_eq!(now, primary);
        site.await_writes(3);
        site.writes().judge();
    });
}

fn junk_at_link_rate_costs_no_deadline_while_keys_roll_each_second() {
    with_hosts(|hosts| {
        let mut plan = pair_on_hosts().tank(50, "");
        plan.key_lifetime_s = Some(1);
        plan.network = "bandwidth_mbit = 100\n".into();
        // As prompt as what looks for stalls, where that is permitted.
        plan.transfer = "\n[realtime]\npriority = 20\n".into();
        // Longer than a loaded machine stands still.
        (plan.lease_ms, plan.start_wait_ms) = (1_000, 2_100);
        let (site, before) = start(plan, hosts);
        let mut attacker = Attacker::new(site.hosts());
        attacker.listen(10);
        let rolls = from_environment("BUMPLESS_ROLLS").unwrap_or(4);
        let link = from_environment("BUMPLESS_LINK_MBIT");
        let mbit = link.unwrap_or(100) as usize;
        let ends = || ["left", "right"].map(|node| fate(&site, node));
        let fates = ends();
        let watch = Watch::start(&site);
        // A quarter of the rolls at a time, on one network after the other.
        let mut flood = Flood::default();
        for (quarter, network) in [0, 1, 0, 1].into_iter().enumerate() {
            let keys = ["left", "right"].map(|node| agreed(&site, node));
            let more = (rolls + quarter as u64) / 4;
            let began = Instant::now();
            flood = flood.and(attacker.flood_until((network, mbit), || {
                let limit = TIMEOUT + Duration::from_secs(4 * more);
                assert!(began.elapsed() < limit, "keys do not roll");
                let mut nodes = ["left", "right"].into_iter().zip(keys);
                nodes.all(|(node, keys)| agreed(&site, node) >= keys + more)
            }));
        }
        let rate = flood.mbit_per_s();
        println!("{flood:?}, {rate:.0} Mbit/s to each node");
        // What waits in sockets is worked off.
        let_run(300);
        let came = ends().into_iter().zip(fates);
        let [refused, full] = came.fold([0, 0], |[refused, full], (after, before)| {
            [refused + after.0 - before.0, full + after.1 - before.1]
        });
        println!("refused: {refused}; the kernel had no room for {full}");
        watch.end(&site).judge();
        has_no_effect(&site, &before);
        if link.is_none() {
            assert!(
                ["left", "right"].map(|it| site.counter(it, "discard_forged") > 0) == [true; 2]
            );
            // On a quiet machine all of it is refused; a busy one's kernel loses some before any socket, and counts that nowhere.
            let sent = flood.datagrams as u64;
            assert!(3 * (refused + full) >= sent, "{sent} were sent");
            assert!(rate >= 20.0, "no flood: {rate:.0} Mbit/s to each node");
        }
    });
}

/// The number that a variable has, if it is there.
fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// How many datagrams `node` has refused to open, and for how many its kernel had no room.
fn fate(site: &Site, node: &str) -> (u64, u64) {
    (
        refused(site, node),
        site.counter(node, "discard_socket_full"),
    )
}

/// How many keys `node` has agreed on with each of the others at least.
fn agreed(site: &Site, node: &str) -> u64 {
    let status = site.status(node).unwrap();
    let sessions = status["sessions"].as_array().unwrap().iter();
    let agreed = sessions.map(|it| it["keys_agreed"].as_u64().unwrap());
    agreed.min().unwrap()
}

fn connections_that_say_nothing_garbage_or_of_endless_length_keep_no_partner_out() {
    with_hosts(|hosts| {
        let mut plan = pair_on_hosts().tank(50, "");
        plan.key_lifetime_s = Some(3600);
        let (mut site, (primary, backup, _)) = start(plan, hosts);
        // From the partner's own address, which is the only one that is let to the door.
        let doors = ["left", "right"].map(|node| [0, 1].map(|net| site.plan.address(node, net)));
        let mut held = Vec::new();
        for (number, door) in doors.iter().flatten().cycle().take(48).enumerate() {
            for host in ["left", "right"] {
                let connected = site.hosts().at(host, || TcpStream::connect(door));
                // Who calls and is not called has no door.
                let Ok(mut stream) = connected else { continue };
                let said: &[u8] = match number % 3 {
                    0 => b"",
                    1 => b"GET / HTTP/1.1\r\n\r\n",
                    // A record of TLS of the greatest length, without its content.
                    _ => &[22, 3, 1, 0xFF, 0xFF, 1, 0xFF, 0xFF, 0xFF],
                };
                let _ = stream.write_all(said);
                held.push(stream);
            }
        }
        assert!(!held.is_empty(), "there was no door at all");
        site.kill(&backup);
        site.start(&backup);
        let (now, ..) = site.await_redundant("tank");
        assert_eq!(now, primary);
        site.await_writes(3);
        site.writes().judge();
    });
}

fn a_witness_that_grants_everything_to_everybody_makes_no_second_writer_while_nodes_hear_each_other()
 {
    with_hosts(|hosts| {
        let mut site = Site::new(pair_on_hosts().tank(50, "")).on(hosts);
        let liars = Liars::new(&site);
        site.start_plant(&[]);
        site.start("left");
        site.start("right");
        for _ in 0..2 {
            let (primary, backup, epoch) = site.await_redundant("tank");
            site.await_writes(5);
            assert_eq!(site.await_redundant("tank").2, epoch);
            // Its network to one node: the other still hears it, and so does the witness.
            site.hosts().cut("A");
            site.await_redundancy("tank", "degraded");
            site.await_writes(5);
            site.hosts().mend("A");
            site.await_redundant("tank");
            site.kill(&primary);
            site.await_primary(&backup, "tank");
            site.start(&primary);
        }
        site.await_redundant("tank");
        let grants = liars.grants.each_ref().map(|it| it.load(Ordering::Relaxed));
        assert!(grants.iter().all(|&grants| grants > 0), "{grants:?}");
        site.writes().judge();
    });
}

fn a_witness_without_the_key_is_not_believed_whatever_it_grants() {
    with_hosts(|hosts| {
        let mut site = Site::new(pair_on_hosts().tank(50, "")).on(hosts);
        site.start_plant(&[]);
        // It answers each request with what it has just heard, and with a grant in the open.
        let socket = |number: usize| {
            let address = site.plan.witnesses[number].1;
            site.hosts()
                .at("field", || UdpSocket::bind(address))
                .unwrap()
        };
        let sockets = [0, 1].map(socket);
        let pair = bumpless_config::pair_id(&site.plan.name);
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let threads = sockets.map(|socket| {
            let done = std::sync::Arc::clone(&done);
            let tenth = std::time::Duration::from_millis(100);
            socket.set_read_timeout(Some(tenth)).unwrap();
            std::thread::spawn(move || {
                let mut heard = [0; 2048];
                while !done.load(Ordering::Relaxed) {
                    if let Ok((length, from)) = socket.recv_from(&mut heard) {
                        let _ = socket.send_to(&heard[..length], from);
                        let _ = socket.send_to(&junk::grant(pair), from);
                    }
                }
            })
        });
        site.start("left");
        for cause in ["discard_misdirected", "discard_unprotected"] {
            site.await_status("it is refused", "left", |status| {
                status["counters"][cause].as_u64() >= Some(10)
            });
        }
        let group = site.group("left", "tank").unwrap();
        assert_ne!(group["role"], "primary", "{group}");
        assert_eq!(site.counter("left", "witness_replies"), 0);
        done.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

bumpless_testing::tests![
    nothing_is_believed_that_was_repeated_changed_turned_round_or_made_up_on_the_way,
    an_older_version_or_a_message_out_of_its_envelope_is_not_taken_for_want_of_better,
    what_was_said_before_a_restart_moves_nothing_after_it,
    a_flood_of_forged_senders_ends_without_a_trace_and_a_restarted_node_is_heard_after_it,
    junk_at_link_rate_costs_no_deadline_while_keys_roll_each_second,
    a_miss_is_excused_only_by_stalls_in_half_of_the_time_that_it_had,
    connections_that_say_nothing_garbage_or_of_endless_length_keep_no_partner_out,
    a_witness_that_grants_everything_to_everybody_makes_no_second_writer_while_nodes_hear_each_other,
    a_witness_without_the_key_is_not_believed_whatever_it_grants,
];
