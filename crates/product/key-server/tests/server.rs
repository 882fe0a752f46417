//! A server with two groups, and those who ask it: members, members of another group, and who speaks another protocol.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use bumpless_key_server::{Config, Options, Request, run};
use bumpless_keys::{Member, Server};
use bumpless_management::{Connection, Profile, Session};
use bumpless_net_linux::Clock;
use bumpless_node::control;
use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::{Authority, Identity, IdentityPaths, system_clock};
use bumpless_secure::group::Schedule;
use bumpless_sessions::Identities;
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(86_400);
/// Far longer than anything here takes: who waits for so long has waited in vain.
const PATIENCE: Duration = Duration::from_secs(20);

fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixTime::since_unix_epoch(since.unwrap())
}

/// A site with a server, which runs until this is dropped.
struct Site {
    folder: TempDir,
    authority: Authority,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::create(&folder.path().join("pki"), "plant", DAY * 365, now());
        let authority = authority.unwrap();
        // A port that was free a moment ago.
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let site = Self {
            folder,
            authority,
            address,
            stop: Arc::default(),
            server: None,
        };
        for name in ["main.keys", "left.tank", "right.tank", "left.other"] {
            let whole = site.authority.name(name).unwrap();
            let out = site.path(name);
            site.authority.issue(&whole, DAY, now(), &out).unwrap();
        }
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(mut self) -> Self {
        let text = format!(
            "[key_server]\nname = \"main\"\nlisten = [\"{}\"]\nsocket = \"keys.sock\"\n\
             [[group]]\nname = \"tank\"\nmembers = [\"left.tank\", \"right.tank\"]\n\
             [[group]]\nname = \"other\"\nmembers = [\"left.other\"]\n",
            self.address
        );
        let file = self.path("keys.toml");
        fs::write(&file, &text).unwrap();
        let config = Config::parse(&text, "keys.toml").unwrap();
        let options = Options {
            json: true,
            stop: Arc::clone(&self.stop),
        };
        let running = thread::spawn(move || run(&config, &file, &options).unwrap());
        self.server = Some(running);
        wait("the server answers", || self.ask(&Request::Status).is_ok());
        self
    }

    fn ask(&self, request: &Request) -> std::io::Result<serde_json::Value> {
        control::request(&self.path("keys.sock"), request)
    }

    /// The member that is called `name`, and asks for `group`.
    fn member(&self, name: &str, group: &str) -> (Member, Identities) {
        let paths = IdentityPaths::in_folder(&self.path(name));
        let identity = Identity::load_as_named(&paths, system_clock()).unwrap();
        let server = Server {
            name: self.authority.name("main.keys").unwrap(),
            address: self.address,
        };
        let (group, now) = (group.to_owned(), Clock.now());
        let member = Member::new(group, vec![server], Schedule::default(), now);
        (member, Identities::new(paths, identity, Instant::now()))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn latest(member: &Member) -> u64 {
    member
        .schedule()
        .keys()
        .last()
        .map_or(0, |key| key.place.token)
}

#[test]
fn members_are_told_of_a_roll_at_once_and_others_are_given_nothing() {
    let site = Site::new().start();
    let (mut left, mut of_left) = site.member("left.tank", "tank");
    let (mut right, mut of_right) = site.member("right.tank", "tank");
    let (mut stranger, mut of_stranger) = site.member("left.other", "tank");
    let (mut nowhere, mut of_nowhere) = site.member("left.other", "nowhere");
    wait("both have keys, the others are refused", || {
        left.drive(&mut of_left, Clock.now());
        right.drive(&mut of_right, Clock.now());
        stranger.drive(&mut of_stranger, Clock.now());
        nowhere.drive(&mut of_nowhere, Clock.now());
        let refused = |it: &Member| it.problems().any(|(_, why)| why.contains("no member"));
        latest(&left) > 0 && latest(&right) > 0 && refused(&stranger) && refused(&nowhere)
    });
    assert_eq!((latest(&stranger), latest(&nowhere)), (0, 0));
    assert_eq!(
        left.schedule().keys().len(),
        25,
        "one that seals, 24 in advance"
    );
    let place = |it: &Member| it.schedule().place(Clock.now());
    assert_eq!(place(&left), place(&right));

    let (before, pushes) = (latest(&left), left.pushes());
    let group = Some("tank".to_owned());
    assert_eq!(site.ask(&Request::Roll { group }).unwrap()["ok"], true);
    wait("it is told unasked", || {
        left.drive(&mut of_left, Clock.now());
        left.pushes() > pushes
    });
    assert!(latest(&left) > before);
    let unknown = site
        .ask(&Request::Roll {
            group: Some("x".into()),
        })
        .unwrap();
    let error = unknown["error"].as_str().unwrap();
    assert!(error.contains("there are: tank, other"), "{error}");
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
