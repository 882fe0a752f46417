//! A site with a key server and certificates for its members, in one process.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use bumpless_key_server::{Config, Options, Request, run};
use bumpless_keys::{Member, Server};
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

pub fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixTime::since_unix_epoch(since.unwrap())
}

/// A site with a server, which runs until this is dropped.
pub struct Site {
    folder: TempDir,
    pub authority: Authority,
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Site {
    pub fn new() -> Self {
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

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn start(self) -> Self {
        self.start_with("members = [\"left.tank\", \"right.tank\"]")
    }

    /// Starts the server with these `settings` of the group 'tank'.
    pub fn start_with(mut self, settings: &str) -> Self {
        let text = format!(
            "[key_server]\nname = \"main\"\nlisten = [\"{}\"]\nsocket = \"keys.sock\"\n\
             [[group]]\nname = \"tank\"\n{settings}\n\
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

    /// Ends the server.
    pub fn stop(mut self) -> Self {
        self.stop.store(true, Ordering::Relaxed);
        self.server.take().unwrap().join().unwrap();
        self.stop = Arc::default();
        self
    }

    pub fn roll(&self, group: &str) {
        let group = Some(group.to_owned());
        assert_eq!(self.ask(&Request::Roll { group }).unwrap()["ok"], true);
    }

    pub fn ask(&self, request: &Request) -> std::io::Result<serde_json::Value> {
        control::request(&self.path("keys.sock"), request)
    }

    /// The member that is called `name`, and asks for `group`.
    pub fn member(&self, name: &str, group: &str) -> (Member, Identities) {
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

impl Site {
    /// Revokes the certificate of `name`; whoever has his certificate in `folder` is told.
    pub fn revoke(&self, name: &str, folder: &str) {
        self.authority.revoke(name, now()).unwrap();
        let list = fs::read(self.path("pki/revoked.pem")).unwrap();
        fs::write(self.path(folder).join("revoked.pem"), list).unwrap();
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

/// Waits until `condition` holds.
pub fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The number of the latest key that `member` has.
pub fn latest(member: &Member) -> u64 {
    member
        .schedule()
        .keys()
        .last()
        .map_or(0, |key| key.place.token)
}
