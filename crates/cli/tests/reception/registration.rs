//! Programs beside a node that register their sockets with its guard (V-87).

use std::net::UdpSocket;
use std::time::Duration;

use bumpless_registration::{Error, Refusal, Registration, Terms, register_at};
use serde_json::Value;

use super::support::hosts::{Hosts, pair_on_hosts, with_hosts};
use super::support::plan::Plan;
use super::support::site::Site;
use super::support::wait_until;

const TERMS: Terms = Terms {
    capacity: 1000,
    period: Duration::from_secs(60),
    priority: 10,
};

fn plan() -> Plan {
    let mut plan = pair_on_hosts().tank(50, "");
    plan.transfer = "[reception]\nother_per_s = 100\n\
         [registration]\ngroup = \"root\"\nsocket = \"programs.sock\"\nflows = 2\npriority_max = 20\n"
        .to_owned();
    plan
}

/// A pair beside which programs may register; other ports have next to nothing.
fn site(hosts: Hosts) -> Site {
    hosts.put_stranger_on_both();
    let mut site = Site::new(plan()).on(hosts);
    site.start_surroundings();
    site.start("left");
    wait_until("the socket for programs", || {
        site.path("programs.sock").exists()
    });
    site.start("right");
    site.await_redundant("tank");
    site
}

/// A program's socket on `left`, and its registration.
fn register(site: &Site, port: u16) -> (UdpSocket, Result<Registration, Error>) {
    site.hosts().at("left", || {
        let socket = UdpSocket::bind(("10.77.1.1", port)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let registration = register_at(&site.path("programs.sock"), &socket, &TERMS);
        (socket, registration)
    })
}

/// Sends `count` datagrams to `port` on network A of `left`; how many `socket` got.
fn received(site: &Site, socket: &UdpSocket, count: usize) -> usize {
    let to = socket.local_addr().unwrap();
    site.hosts().at("twin", || {
        let sender = UdpSocket::bind("0.0.0.0:0").unwrap();
        (0..count).for_each(|_| drop(sender.send_to(&[7; 60], to)));
    });
    // What arrives on a pair of virtual interfaces has arrived when it is sent, or a moment later.
    std::thread::sleep(Duration::from_millis(100));
    std::iter::from_fn(|| socket.recv(&mut [0; 60]).ok()).count()
}

fn registered(site: &Site) -> Value {
    site.status("left").unwrap()["reception"]["registration"]["flows"].clone()
}

/// The flow that this process has registered, on network A.
fn own_flow(site: &Site) -> Option<Value> {
    let status = site.status("left").unwrap();
    let flows = status["reception"]["interfaces"][0]["flows"].as_array();
    let mut flows = flows.cloned().unwrap_or_default().into_iter();
    flows.find(|it| it["program"]["pid"] == std::process::id())
}

pub fn a_program_registers_with_a_nodes_guard_until_it_ends() {
    with_hosts(|hosts| {
        let site = site(hosts);
        let (socket, registration) = register(&site, 4720);
        let registration = registration.expect("a registration");
        assert_eq!(received(&site, &socket, 100), 100);
        let flow = own_flow(&site).expect("its flow");
        assert_eq!(
            (&flow["passed"], &flow["program"]["priority"]),
            (&100.into(), &10.into())
        );
        // `right` looks at the same folder, and finds that another guard listens there.
        let weaknesses = site.status("right").unwrap()["weaknesses"].to_string();
        assert!(
            weaknesses.contains("no program can register"),
            "{weaknesses}"
        );
        drop(registration);
        wait_until("it is taken back", || registered(&site) == 0);
        let others = received(&site, &socket, 100);
        assert!(
            others < 100,
            "{others} packets of a port that nobody registered"
        );
        assert!(own_flow(&site).is_none());
    });
}

pub fn nobody_registers_a_nodes_own_port_or_more_than_may_be() {
    with_hosts(|hosts| {
        let site = site(hosts);
        let refused = |result: Result<Registration, Error>| match result {
            Err(Error::Refused(refusal, sentence)) => (refusal, sentence),
            other => panic!("{other:?}"),
        };
        let held = [4720, 4721].map(|port| register(&site, port));
        let (cause, words) = refused(register(&site, 4722).1);
        assert!(
            cause == Refusal::Full && words.contains("`flows` in [registration]"),
            "{words}"
        );
        drop(held);
        wait_until("both gone", || registered(&site) == 0);
        let own = site.hosts().at("left", || {
            let socket = socket_beside_a_node();
            register_at(&site.path("programs.sock"), &socket, &TERMS)
        });
        let (cause, words) = refused(own);
        assert!(
            cause == Refusal::Taken && words.contains("strangers at port 4700"),
            "{words}"
        );
    });
}

/// A socket at the node's port, at another address of the host.
fn socket_beside_a_node() -> UdpSocket {
    UdpSocket::bind("10.77.101.1:4700").unwrap()
}
