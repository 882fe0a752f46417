//! What a connection promises whatever is said on it. Time is what the test says it is.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bumpless_sessions::{Connection, Conversation, Ended, SessionError};
use rustix::event::{Timespec, poll};
use socket2::{Domain, Socket, Type};

/// Bytes as they come, without TLS. Only `y` is understood; `!` must not be said.
#[derive(Default)]
struct Plain {
    out: Vec<u8>,
    is_alive: bool,
    room: Option<usize>,
}

impl Conversation for Plain {
    type Message = u8;
    type Event = u8;
    const LONGEST: usize = 1;

    fn receive(&mut self, bytes: &[u8], events: &mut Vec<u8>) -> Result<bool, SessionError> {
        if bytes.contains(&b'!') {
            return Err(SessionError::Malformed);
        }
        events.extend_from_slice(bytes);
        Ok(bytes.contains(&b'y'))
    }
    fn say(&mut self, message: &u8) -> bool {
        self.out.push(*message);
        self.room.is_none_or(|room| self.out.len() <= room)
    }
    fn alive(&self) -> Option<u8> {
        self.is_alive.then_some(b'y')
    }
    fn transmit(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.out);
    }
    fn close(&mut self) {
        self.out.push(b'.');
    }
}

/// A connection that has come, and its other end.
fn pair(session: Plain, now: Instant) -> (Connection<Plain>, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    (Connection::answer(stream, session, now).unwrap(), other)
}

/// Drives at `now` once something has come.
fn heard(connection: &mut Connection<Plain>, now: Instant) -> Result<Vec<u8>, Ended> {
    let timeout = Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    assert_ne!(poll(&mut [connection.poll()], Some(&timeout)).unwrap(), 0);
    let mut events = Vec::new();
    connection.drive(now, &mut events).map(|()| events)
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn who_says_nothing_for_six_seconds_is_given_up() {
    let now = Instant::now();
    let (mut connection, mut other) = pair(Plain::default(), now);
    let mut events = Vec::new();
    connection.drive(now + SECOND * 5, &mut events).unwrap();
    other.write_all(b"y").unwrap();
    heard(&mut connection, now + SECOND * 5).unwrap();
    connection.drive(now + SECOND * 10, &mut events).unwrap();
    let ended = connection.drive(now + SECOND * 11, &mut events);
    assert!(matches!(ended, Err(Ended::Silent)), "{ended:?}");
}

#[test]
fn who_dribbles_what_is_not_understood_is_given_up_too() {
    let now = Instant::now();
    let (mut connection, mut other) = pair(Plain::default(), now);
    for second in 1..6 {
        other.write_all(b"n").unwrap();
        assert_eq!(heard(&mut connection, now + SECOND * second).unwrap(), b"n");
    }
    other.write_all(b"n").unwrap();
    let ended = heard(&mut connection, now + SECOND * 6);
    assert!(matches!(ended, Err(Ended::Silent)), "{ended:?}");
}

#[test]
fn one_says_that_one_is_there_every_two_seconds_where_that_is_said() {
    let now = Instant::now();
    let alive = Plain {
        is_alive: true,
        ..Plain::default()
    };
    for (session, expected) in [(alive, &b"yy."[..]), (Plain::default(), b".")] {
        let (mut connection, mut other) = pair(session, now);
        for half in 0..11 {
            connection
                .drive(now + SECOND * half / 2, &mut Vec::new())
                .unwrap();
        }
        connection.close();
        let mut said = Vec::new();
        other.read_to_end(&mut said).unwrap();
        assert_eq!(said, expected);
    }
}

#[test]
fn what_finds_no_room_ends_the_connection() {
    let now = Instant::now();
    let full = Plain {
        room: Some(1),
        ..Plain::default()
    };
    let (mut connection, _other) = pair(full, now);
    connection.say(&b'a');
    connection.drive(now, &mut Vec::new()).unwrap();
    connection.say(&b'b');
    connection.say(&b'c');
    let ended = connection.drive(now, &mut Vec::new());
    assert!(matches!(ended, Err(Ended::Silent)), "{ended:?}");
}

#[test]
fn an_end_and_what_must_not_be_said_are_told_apart() {
    let now = Instant::now();
    let (mut connection, mut other) = pair(Plain::default(), now);
    other.write_all(b"!").unwrap();
    let ended = heard(&mut connection, now);
    assert!(
        matches!(ended, Err(Ended::Session(SessionError::Malformed))),
        "{ended:?}"
    );
    let (mut connection, other) = pair(Plain::default(), now);
    drop(other);
    let ended = heard(&mut connection, now);
    assert!(
        matches!(ended, Err(Ended::Session(SessionError::Closed))),
        "{ended:?}"
    );
}

/// The queue of who listens is full, so what would be an answer does not come.
#[test]
fn a_call_that_nobody_answers_is_given_up_after_a_second() {
    let now = Instant::now();
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener
        .bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())
        .unwrap();
    listener.listen(0).unwrap();
    let to = listener.local_addr().unwrap().as_socket().unwrap();
    let _waiting = TcpStream::connect(to).unwrap();
    let mut connection = Connection::call(Plain::default(), (None, to), now).unwrap();
    let mut events = Vec::new();
    connection.drive(now + SECOND / 2, &mut events).unwrap();
    match connection.drive(now + SECOND, &mut events) {
        Err(Ended::System(error)) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        other => panic!("{other:?}"),
    }
}
