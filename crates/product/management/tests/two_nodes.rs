//! Two nodes on this computer: they find each other, agree on secrets, roll them, and refuse whoever is somebody else.

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use bumpless_management::{
    Host, Partner, PartnerState, Path, Profile, Ring, Running, Setup, start,
};
use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::{Authority, Identity, IdentityPaths, system_clock};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(86_400);
/// Far longer than anything here takes: who waits for so long has waited in vain.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
enum Told {
    Profile(Profile),
    Ring(Vec<[u8; 32]>, bool),
    State(PartnerState),
    Forgotten,
}

/// Does not take so many rings that seal and orders to forget, and tells all else.
struct Refusing {
    telling: Telling,
    seals: usize,
    forgets: usize,
}

impl Host for Refusing {
    fn set_profile(&mut self, partner: usize, profile: &Profile) -> bool {
        self.telling.set_profile(partner, profile)
    }

    fn set_keys(&mut self, partner: usize, ring: &Ring) -> bool {
        if ring.seals && self.seals > 0 {
            self.seals -= 1;
            return false;
        }
        self.telling.set_keys(partner, ring)
    }

    fn forget_keys(&mut self, partner: usize) -> bool {
        if self.forgets > 0 {
            self.forgets -= 1;
            return false;
        }
        self.telling.forget_keys(partner)
    }

    fn changed(&mut self, partner: usize, state: &PartnerState) {
        assert!(!state.has_key || self.seals == 0, "nothing seals yet");
        self.telling.changed(partner, state);
    }
}

struct Telling(Sender<Told>);

impl Host for Telling {
    fn set_profile(&mut self, _partner: usize, profile: &Profile) -> bool {
        self.0.send(Told::Profile(profile.clone())).is_ok()
    }

    fn set_keys(&mut self, _partner: usize, ring: &Ring) -> bool {
        let secrets = ring.secrets.iter().map(|secret| **secret).collect();
        self.0.send(Told::Ring(secrets, ring.seals)).is_ok()
    }

    fn forget_keys(&mut self, _partner: usize) -> bool {
        self.0.send(Told::Forgotten).is_ok()
    }

    fn changed(&mut self, _partner: usize, state: &PartnerState) {
        let _ = self.0.send(Told::State(state.clone()));
    }
}

struct Site {
    folder: TempDir,
    authority: Authority,
}

fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixTime::since_unix_epoch(since.unwrap())
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        let authority = Authority::create(&pki, "plant", DAY * 365, now()).unwrap();
        Self { folder, authority }
    }

    fn issue(&self, name: &str) {
        let out = self.folder.path().join(name);
        let name = self.authority.name(name).unwrap();
        self.authority.issue(&name, DAY, now(), &out).unwrap();
    }

    /// Revokes `right.tank`, and brings the list to `left.tank`.
    fn revoke_right(&self) {
        self.authority.revoke("right.tank", now()).unwrap();
        let list = std::fs::read(self.folder.path().join("pki/revoked.pem")).unwrap();
        std::fs::write(self.folder.path().join("left.tank/revoked.pem"), list).unwrap();
    }

    fn paths(&self, folder: &str) -> IdentityPaths {
        IdentityPaths::in_folder(&self.folder.path().join(folder))
    }
}

fn address(last: u8) -> IpAddr {
    [127, 0, 0, last].into()
}

/// Ports that were free a moment ago.
fn ports() -> [u16; 2] {
    let both = [1, 2].map(|last| TcpListener::bind((address(last), 0)).unwrap());
    both.map(|listener| listener.local_addr().unwrap().port())
}

/// How a node is set up whose certificate is in `folder`.
fn setup(site: &Site, folder: &str, node: u8, ports: [u16; 2], lifetime: Duration) -> Setup {
    let names = ["left", "right"];
    let (own, other) = (usize::from(node), usize::from(1 - node));
    let partner = format!("{}.tank", names[other]);
    Setup {
        identity: site.paths(folder),
        profile: Profile {
            pair: "tank".into(),
            node: names[own].into(),
            number: node,
            payload_bytes: 1400 + u16::from(node),
            ..Profile::default()
        },
        partners: vec![Partner {
            name: site.authority.name(&partner).unwrap(),
            paths: vec![Path {
                from: address(node + 1),
                to: SocketAddr::new(address(2 - node), ports[other]),
            }],
            calls: node == 0,
        }],
        listen: vec![SocketAddr::new(address(node + 1), ports[own])],
        key_lifetime: lifetime,
    }
}

fn begin(setup: Setup) -> (Running, Receiver<Told>) {
    begin_with(setup, |telling| Box::new(telling))
}

fn begin_with(
    setup: Setup,
    host: impl FnOnce(Telling) -> Box<dyn Host>,
) -> (Running, Receiver<Told>) {
    let names = (setup.profile.node.clone(), setup.profile.pair.clone());
    let identity = Identity::load(&setup.identity, &names.0, &names.1, system_clock()).unwrap();
    let (sender, told) = channel();
    let running = start(setup, identity, host(Telling(sender))).unwrap();
    (running, told)
}

/// The next one for which `wanted` gives something.
fn await_told<T>(told: &Receiver<Told>, mut wanted: impl FnMut(&Told) -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let next = told.recv_timeout(left).expect("it is told in time");
        if let Some(found) = wanted(&next) {
            return found;
        }
    }
}

/// The secret that seals, when it is not `before`.
fn sealing(told: &Receiver<Told>, before: Option<[u8; 32]>) -> [u8; 32] {
    await_told(told, |it| match it {
        Told::Ring(secrets, true) if Some(secrets[0]) != before => Some(secrets[0]),
        _ => None,
    })
}

fn problem(told: &Receiver<Told>) -> String {
    await_told(told, |it| match it {
        Told::State(state) => {
            assert!(!state.connected && !state.has_key, "{state:?}");
            state.problem.clone()
        }
        other => panic!("{other:?} of somebody else"),
    })
}

/// Left and right, each with its certificate.
fn pair(site: &Site, lifetime: Duration) -> [(Running, Receiver<Told>); 2] {
    let ports = ports();
    site.issue("left.tank");
    site.issue("right.tank");
    let begin = |node: u8, folder: &str| begin(setup(site, folder, node, ports, lifetime));
    [begin(0, "left.tank"), begin(1, "right.tank")]
}

#[test]
fn both_get_one_secret_and_hear_what_does_not_fit() {
    let site = Site::new();
    let [(_left, left), (_right, right)] = pair(&site, DAY);
    let secret = sealing(&left, None);
    assert_eq!(secret, sealing(&right, None));
    assert_ne!(secret, [0; 32]);
    let state = await_told(&left, |it| match it {
        Told::State(state) if state.connected => Some(state.clone()),
        _ => None,
    });
    assert_eq!(
        state.mismatches,
        ["the payload of a packet is 1400 here and 1401 at 'right'"]
    );
    assert!(state.has_key && state.problem.is_none());
}

#[test]
fn what_the_partner_can_take_is_known_before_anything_is_sealed_for_it() {
    let site = Site::new();
    let [(_left, left), (_right, right)] = pair(&site, DAY);
    for (told, partner) in [(left, "right"), (right, "left")] {
        let first = told.recv_timeout(PATIENCE).unwrap();
        let profile = match first {
            Told::State(_) => told.recv_timeout(PATIENCE).unwrap(),
            first => first,
        };
        let Told::Profile(profile) = profile else {
            panic!("{profile:?}");
        };
        assert_eq!(profile.node, partner);
        assert!(matches!(told.recv_timeout(PATIENCE), Ok(Told::Ring(..))));
    }
}

#[test]
fn secrets_roll_and_each_is_opened_before_it_seals() {
    let site = Site::new();
    let [(_left, left), (_right, right)] = pair(&site, Duration::from_millis(1));
    let rolls = |told: &Receiver<Told>| {
        let (mut opens, mut seals) = (Vec::new(), Vec::new());
        while seals.len() < 5 {
            await_told(told, |it| {
                let Told::Ring(secrets, sealing) = it else {
                    return None;
                };
                if *sealing && !seals.contains(&secrets[0]) {
                    assert!(opens.contains(&secrets[0]), "it opened before");
                    seals.push(secrets[0]);
                }
                opens.extend(secrets.clone());
                Some(())
            });
        }
        seals
    };
    assert_eq!(rolls(&left), rolls(&right), "the same in the same order");
}

#[test]
fn a_partner_that_starts_again_gets_another_secret() {
    let site = Site::new();
    let ports = ports();
    site.issue("left.tank");
    site.issue("right.tank");
    let begin = |node: u8, folder: &str| begin(setup(&site, folder, node, ports, DAY));
    let (_left, left) = begin(0, "left.tank");
    let (right, told) = begin(1, "right.tank");
    let first = sealing(&left, None);
    drop((right, told));
    let (_right, right) = begin(1, "right.tank");
    let second = sealing(&left, Some(first));
    assert_eq!(second, sealing(&right, None));
}

#[test]
fn a_node_of_another_pair_gets_no_key() {
    let site = Site::new();
    let ports = ports();
    site.issue("left.tank");
    site.issue("right.boiler");
    let (_left, left) = begin(setup(&site, "left.tank", 0, ports, DAY));
    let mut other = setup(&site, "right.boiler", 1, ports, DAY);
    other.profile.pair = "boiler".into();
    let (_other, _told) = begin(other);
    let problem = problem(&left);
    assert!(problem.contains("right.boiler.plant"), "{problem}");
}

#[test]
fn a_node_of_another_authority_gets_no_key_and_both_say_why() {
    let (site, foreign) = (Site::new(), Site::new());
    let ports = ports();
    site.issue("left.tank");
    foreign.issue("right.tank");
    let (_left, left) = begin(setup(&site, "left.tank", 0, ports, DAY));
    let (_right, right) = begin(setup(&foreign, "right.tank", 1, ports, DAY));
    for told in [left, right] {
        let problem = problem(&told);
        assert!(problem.contains("authorit"), "{problem}");
    }
}

#[test]
fn the_keys_of_a_certificate_that_is_revoked_are_over_and_it_gets_no_others() {
    let site = Site::new();
    let [(_left, left), (_right, right)] = pair(&site, DAY);
    sealing(&left, None);
    sealing(&right, None);
    site.revoke_right();
    await_told(&left, |it| matches!(it, Told::Forgotten).then_some(()));
    let problem = problem(&left);
    assert!(problem.contains("revoked"), "{problem}");
}

#[test]
fn what_a_data_plane_does_not_take_is_said_again_until_it_does() {
    let site = Site::new();
    let ports = ports();
    site.issue("left.tank");
    site.issue("right.tank");
    let refusing = |telling| -> Box<dyn Host> {
        Box::new(Refusing {
            telling,
            seals: 3,
            forgets: 3,
        })
    };
    let (_left, left) = begin_with(setup(&site, "left.tank", 0, ports, DAY), refusing);
    let (_right, right) = begin_with(setup(&site, "right.tank", 1, ports, DAY), refusing);
    assert_eq!(sealing(&left, None), sealing(&right, None));
    site.revoke_right();
    await_told(&left, |it| matches!(it, Told::Forgotten).then_some(()));
}

#[test]
fn connections_that_say_nothing_or_nonsense_keep_nobody_out() {
    let site = Site::new();
    let ports = ports();
    site.issue("left.tank");
    site.issue("right.tank");
    let (_right, right) = begin(setup(&site, "right.tank", 1, ports, DAY));
    let from_left = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::new(address(1), 0).into()).unwrap();
        let there = SocketAddr::new(address(2), ports[1]);
        socket.connect(&there.into()).unwrap();
        TcpStream::from(socket)
    };
    let mut held: Vec<_> = (0..50).map(|_| from_left()).collect();
    for (number, stream) in held.iter_mut().enumerate() {
        // It may have been given up already.
        let _ = stream.write_all(&vec![number as u8; number * 400]);
    }
    let (_left, left) = begin(setup(&site, "left.tank", 0, ports, DAY));
    assert_eq!(sealing(&left, None), sealing(&right, None));
    drop(held);
}
