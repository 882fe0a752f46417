//! Programs beside a node that register their sockets with its guard (V-87).

use std::net::UdpSocket;
use std::time::Duration;

use bumpless_registration::{Error, Refusal, Registration, Terms, register_at};
use serde_json::Value;

use super::support::hosts::{Hosts, pair_on_hosts, with_hosts};
use super::support::plan::Plan;
use super::support::process::said;
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

/// Sends 100 datagrams to `socket`, on network A of `left`.
fn send(site: &Site, socket: &UdpSocket) {
    let to = socket.local_addr().unwrap();
    site.hosts().at("twin", || {
        let sender = UdpSocket::bind("0.0.0.0:0").unwrap();
        (0..100).for_each(|_| drop(sender.send_to(&[7; 60], to)));
    });
}

/// How many datagrams wait at `socket`.
fn received(socket: &UdpSocket) -> usize {
    std::iter::from_fn(|| socket.recv(&mut [0; 60]).ok()).count()
}

fn registered(site: &Site) -> Value {
    site.status("left").unwrap()["reception"]["registration"]["flows"].clone()
}

/// A flow of `left` on network A.
fn flow(site: &Site, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
    let status = site.status("left").unwrap();
    let flows = status["reception"]["interfaces"][0]["flows"].as_array();
    let mut flows = flows.cloned().unwrap_or_default().into_iter();
    flows.find(wanted)
}

/// The one that this process has registered.
fn own_flow(site: &Site) -> Option<Value> {
    flow(site, |it| it["program"]["pid"] == std::process::id())
}

/// How many packets of ports that nobody registered were dropped.
fn dropped(site: &Site) -> u64 {
    let rest = flow(site, |it| it["name"] == "unregistered").expect("the rest");
    rest["dropped"]["capacity"].as_u64().unwrap()
}

pub fn a_program_registers_with_a_nodes_guard_until_it_ends() {
    with_hosts(|hosts| {
        let site = site(hosts);
        let (socket, registration) = register(&site, 4720);
        let registration = registration.expect("a registration");
        send(&site, &socket);
        let mut got = 0;
        wait_until("all of them", || {
            got += received(&socket);
            got == 100
        });
        let flow = own_flow(&site).expect("its flow");
        assert_eq!(
            (&flow["passed"], &flow["program"]["priority"]),
            (&100.into(), &10.into())
        );
        // A thousand packets that may come at once are more than the plan reckons with.
        wait_until("what a flood may do then", || {
            let weaknesses = site.status("left").unwrap()["weaknesses"].to_string();
            weaknesses.contains("what programs have registered may come at once")
        });
        // `right` looks at the same folder, and finds that another guard listens there.
        let weaknesses = site.status("right").unwrap()["weaknesses"].to_string();
        assert!(
            weaknesses.contains("no program can register"),
            "{weaknesses}"
        );
        drop(registration);
        wait_until("it is taken back", || registered(&site) == 0);
        let before = dropped(&site);
        wait_until("its port is anybody's", || {
            send(&site, &socket);
            dropped(&site) > before
        });
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

pub fn what_is_registered_stays_through_a_change_of_the_applications() {
    with_hosts(|hosts| {
        let site = site(hosts);
        let (socket, registration) = register(&site, 4720);
        let registration = registration.expect("a registration");
        let passed = || own_flow(&site).map(|flow| flow["passed"].as_u64().unwrap());
        send(&site, &socket);
        wait_until("its packets", || passed() == Some(100));
        let next = site.path("next.toml");
        let plan = site.plan.clone().synthetic("tank", 300_000, 100, "");
        std::fs::write(&next, plan.text(&site.path(""))).unwrap();
        let (config, next) = (site.config(), next.display().to_string());
        let (told, errors, code) = said(&["apply", config.to_str().unwrap(), &next]);
        assert_eq!(code, Some(0), "{told}{errors}");
        // Counts begin anew with the budgets of the change.
        wait_until("the budgets of the change", || passed() == Some(0));
        assert!(registration.holds());
        while received(&socket) > 0 {}
        send(&site, &socket);
        let mut got = 0;
        wait_until("all of them", || {
            got += received(&socket);
            got == 100 && passed() == Some(100)
        });
        drop(registration);
        wait_until("it is taken back", || own_flow(&site).is_none());
    });
}

/// A socket at the node's port, at another address of the host.
fn socket_beside_a_node() -> UdpSocket {
    UdpSocket::bind("10.77.101.1:4700").unwrap()
}
