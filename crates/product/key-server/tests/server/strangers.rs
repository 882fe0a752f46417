//! Who does not show that he is a member.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Instant;

use bumpless_key_server::Request;
use bumpless_management::{Connection, Profile, Session};
use bumpless_net_linux::Clock;
use socket2::{Domain, Socket, Type};

use crate::site::{Site, latest, wait};

/// Connects from 127.0.0.`host`, and says nothing.
fn call(site: &Site, host: u8) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0));
    socket.bind(&from.into()).unwrap();
    socket.connect(&site.address.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.into()
}

fn is_open(mut stream: &TcpStream) -> bool {
    matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// How many connections there are that have not shown who they are.
fn unknown(site: &Site) -> u64 {
    let status = site.ask(&Request::Status).unwrap();
    status["unknown_connections"].as_u64().unwrap()
}

#[test]
fn strangers_take_four_places_of_an_address_and_sixty_four_in_all() {
    let site = Site::new().start();
    let of_one: Vec<_> = (0..10).map(|_| call(&site, 2)).collect();
    wait("the first ones gave their places to the last ones", || {
        assert!(unknown(&site) <= 4);
        let open: Vec<_> = of_one.iter().map(is_open).collect();
        open == [[false; 6].as_slice(), &[true; 4]].concat()
    });
    let others = (3..23).flat_map(|host| [host; 4]);
    let others: Vec<_> = others.map(|host| call(&site, host)).collect();
    wait("there is no more room for others", || {
        let there = unknown(&site);
        assert!(there <= 64, "{there}");
        there == 64 && !of_one.iter().any(is_open)
    });
    let (mut left, mut of_left) = site.member("left.tank", "tank");
    wait("a member comes in all the same", || {
        left.drive(&mut of_left, Clock.now());
        latest(&left) > 0
    });
    assert!(others.iter().any(is_open), "those who wait are still there");
}

#[test]
fn who_speaks_another_protocol_is_refused_before_anything_is_said() {
    let site = Site::new().start();
    let (_, mut identities) = site.member("left.tank", "tank");
    let identity = identities.fresh(Instant::now());
    let server = site.authority.name("main.keys").unwrap();
    let session = Session::call(&identity, &server, Profile::default()).unwrap();
    let way = (None, site.address);
    let mut management = Connection::call(session, way, Instant::now()).unwrap();
    let mut refused = None;
    wait("it is refused", || {
        let mut events = Vec::new();
        refused = management.drive(Instant::now(), &mut events).err();
        assert!(events.is_empty(), "{events:?}");
        refused.is_some()
    });
    let why = refused.unwrap().to_string();
    assert!(why.contains("protocol"), "{why}");
}
