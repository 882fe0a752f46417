//! A member, with its own time, and servers that do what no server does.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration as Span, SystemTime};

use bumpless_base::{Duration, Instant};
use bumpless_keys::{Connection, Member, Message, Server, Session};
use bumpless_net_linux::Clock;
use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::{Authority, Identity, IdentityPaths, NodeName, system_clock};
use bumpless_secure::RingSuite;
use bumpless_secure::group::{Grant, GroupKey, Issuer, Numbers, Schedule, Terms};
use bumpless_sessions::Identities;
use tempfile::TempDir;
use zeroize::Zeroizing;

const DAY: Span = Span::from_secs(86_400);
/// Far longer than anything here takes: who waits for so long has waited in vain.
const PATIENCE: Span = Span::from_secs(20);

/// What is granted at `now`.
fn grant(now: Instant) -> Grant {
    let terms = Terms {
        lifetime: Duration::from_secs(3600),
        future: 2,
    };
    let numbers = Numbers {
        era: 1,
        ..Numbers::default()
    };
    let mut issuer = Issuer::new(terms, Schedule::default(), numbers);
    let mut drawn = 0;
    issuer.refill(
        &mut || {
            drawn += 1;
            Some(GroupKey::new::<RingSuite>(Zeroizing::new([drawn; 32])))
        },
        now,
    );
    issuer.grant(now).unwrap()
}

/// A server of the test's own.
struct Fake {
    name: NodeName,
    folder: PathBuf,
    address: SocketAddr,
    listener: Option<TcpListener>,
    connection: Option<Connection>,
    /// Questions in the last connection.
    asked: usize,
}

impl Fake {
    fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        self.listener = Some(listener);
    }

    fn server(&self) -> Server {
        Server {
            name: self.name.clone(),
            address: self.address,
        }
    }

    /// Goes on; `true` for each question that has come.
    fn hears(&mut self, member: &NodeName) -> bool {
        let clock = std::time::Instant::now();
        if let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) {
            let paths = IdentityPaths::in_folder(&self.folder);
            let identity = Identity::load_as_named(&paths, system_clock()).unwrap();
            let session = Session::answer(&identity, member).unwrap();
            self.connection = Some(Connection::answer(stream, session, clock).unwrap());
            self.asked = 0;
        }
        let mut heard = Vec::new();
        let connection = self.connection.as_mut();
        if connection.is_some_and(|it| it.drive(clock, &mut heard).is_err()) {
            self.connection = None;
        }
        self.asked += heard.len();
        !heard.is_empty()
    }

    fn say(&mut self, message: &Message) {
        if let Some(connection) = &mut self.connection {
            connection.say(message);
            let _ = connection.flush();
        }
    }

    fn answers(&mut self, member: &NodeName, now: Instant) {
        if self.hears(member) {
            self.say(&Message::Answer(grant(now)));
        }
    }
}

/// A member with two servers, and what its clock shows.
struct World {
    _folder: TempDir,
    name: NodeName,
    member: Member,
    identities: Identities,
    servers: [Fake; 2],
    now: Instant,
}

fn issue(authority: &Authority, at: &Path, name: &str) -> (NodeName, PathBuf) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = UnixTime::since_unix_epoch(since.unwrap());
    let whole = authority.name(name).unwrap();
    let folder = at.join(name);
    authority.issue(&whole, DAY, now, &folder).unwrap();
    (whole, folder)
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let today = UnixTime::since_unix_epoch(since.unwrap());
        let authority = Authority::create(&at.join("pki"), "plant", DAY * 365, today).unwrap();
        let servers = ["first.keys", "second.keys"].map(|name| {
            let (name, folder) = issue(&authority, at, name);
            let mut fake = Fake {
                name,
                folder,
                address: SocketAddr::from(([127, 0, 0, 1], 0)),
                listener: None,
                connection: None,
                asked: 0,
            };
            fake.listen();
            fake
        });
        let (name, own) = issue(&authority, at, "left.tank");
        let paths = IdentityPaths::in_folder(&own);
        let identity = Identity::load_as_named(&paths, system_clock()).unwrap();
        let known = servers.iter().map(Fake::server).collect();
        let now = Clock.now();
        let member = Member::new("tank".into(), known, Schedule::default(), now);
        Self {
            _folder: folder,
            name,
            member,
            identities: Identities::new(paths, identity, std::time::Instant::now()),
            servers,
            now,
        }
    }

    fn turn(&mut self) {
        self.now += Duration::from_millis(1);
        self.member.drive(&mut self.identities, self.now);
    }

    fn told(&self, server: usize, words: &str) -> bool {
        let name = &self.servers[server].name;
        let mut problems = self.member.problems();
        problems.any(|(of, why)| of.name == *name && why.contains(words))
    }

    fn uses(&self, server: usize) -> bool {
        self.member.server() == Some(&self.servers[server].server())
    }

    /// Lets time go on until `condition` holds.
    fn wait(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        let until = std::time::Instant::now() + PATIENCE;
        loop {
            self.turn();
            if condition(self) {
                return;
            }
            assert!(std::time::Instant::now() < until, "waited in vain: {what}");
            thread::sleep(Span::from_millis(1));
        }
    }
}

#[test]
fn a_server_that_says_nothing_is_left_for_the_next_one_after_two_seconds() {
    let mut world = World::new();
    let name = world.name.clone();
    world.wait("the first one is asked", |world| {
        world.servers[0].hears(&name)
    });
    assert!(!world.told(0, "") && world.member.server().is_none());
    world.now += Duration::from_secs(2);
    world.wait("the second one is used", |world| {
        world.servers[1].answers(&name, world.now);
        world.uses(1)
    });
    assert!(world.told(0, "does not answer in time"));
    assert_eq!(world.servers[0].asked, 1, "it was asked once");
}

#[test]
fn the_first_server_of_the_list_is_used_again_when_it_answers() {
    let mut world = World::new();
    let name = world.name.clone();
    world.servers[0].listener = None;
    world.wait("the second one is used", |world| {
        world.servers[1].answers(&name, world.now);
        world.uses(1)
    });
    world.servers[0].listen();
    world.now += Duration::from_secs(5);
    world.wait("the first one is used", |world| {
        let [first, second] = &mut world.servers;
        first.answers(&name, world.now);
        second.answers(&name, world.now);
        world.uses(0)
    });
}

#[test]
fn what_nobody_has_asked_for_is_not_taken() {
    for message in [Message::Push, Message::Answer] {
        let mut world = World::new();
        let name = world.name.clone();
        // The question is on its way, or not: an answer is said twice, a push before any answer.
        world.wait("the first one is asked", |world| {
            world.servers[0].hears(&name)
        });
        let first = grant(world.now);
        let is_answer = matches!(message(first.clone()), Message::Answer(_));
        if is_answer {
            world.servers[0].say(&Message::Answer(first));
            world.wait("it is used", |world| world.uses(0));
        }
        let known: Vec<_> = world.member.schedule().keys().to_vec();
        assert_eq!(known.is_empty(), !is_answer);
        world.servers[0].say(&message(grant(world.now)));
        world.wait("the session is ended", |world| world.told(0, ""));
        assert_eq!(world.member.schedule().keys(), known);
        assert!(!world.uses(0));
    }
}
