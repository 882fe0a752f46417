//! One seed: what is sealed, what the attacker makes of it, and what comes of that.

use bumpless_base::random::mix64;
use bumpless_base::{Duration, Random};
use bumpless_secure::state::{
    Expected, Method, Replay, StateHeader, StateOpener, StateSealer, StateWay,
};
use bumpless_secure::{Keyring, RingStates, RingSuite, Secret};

use crate::check::{Apart, Asked, Reader, Sealed, Verdict, is_cipher};

/// Bytes at the front of a state that stay readable.
pub const CLEAR: usize = 4;
/// What the attacker can do, by number.
pub const ATTACKS: usize = 7;

const CHANNELS: [u16; 2] = [7, 8];
const STEPS: usize = 150;
/// Secrets that are opened with at a time.
const SECRETS: usize = 3;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// When the world begins, by clocks that are right, since 1970.
const BEGINNING: u64 = 1_700_000_000 * SECOND;
const METHODS: [Method; 4] = [
    Method::Checksum,
    Method::Authenticated,
    Method::Aes256Gcm,
    Method::ChaCha20Poly1305,
];

/// A direction of a channel: who seals, and who opens.
struct Way {
    way: StateWay,
    sealer: StateSealer<RingStates>,
    method: Method,
    /// Number of the sealer's process, and how many states it has sealed.
    process: u32,
    number: u64,
    opener: StateOpener<RingStates>,
    reader: Reader,
}

pub struct World {
    random: Random,
    method: Method,
    asked: Asked,
    now: u64,
    /// How wrong each node's clock is.
    wrong: [i64; 2],
    /// The first one seals.
    secrets: Vec<u8>,
    given: u8,
    processes: u32,
    ways: Vec<Way>,
    record: Vec<Sealed>,
    apart: Apart,
    pub opened: u64,
    /// By attack.
    pub refused: [u64; ATTACKS],
}

fn keys(secrets: &[u8]) -> Keyring<RingSuite> {
    let secrets = secrets.iter().map(|&byte| Secret::new([byte; 32]));
    Keyring::new(secrets.collect()).expect("secrets that differ")
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(mix64(seed ^ 0x5EA1));
        let method = METHODS[random.below(4) as usize];
        let expected = match is_cipher(method) && random.chance(0.3) {
            true => Expected::AnyCipher,
            false => Expected::Only(method),
        };
        let max_age = Duration::from_millis(200 + random.below(5_000));
        let replay = [
            Replay::None,
            Replay::Counter,
            Replay::Session,
            Replay::Timestamp { max_age },
        ][random.below(4) as usize];
        let mut world = Self {
            method,
            asked: Asked { expected, replay },
            now: BEGINNING,
            wrong: [0; 2],
            secrets: vec![1],
            given: 1,
            processes: 0,
            ways: Vec::new(),
            record: Vec::new(),
            apart: Apart::default(),
            opened: 0,
            refused: [0; ATTACKS],
            random,
        };
        for channel in CHANNELS {
            for from in 0..2 {
                let way = StateWay { channel, from };
                let (sealer, process) = world.process(method, way);
                world.ways.push(Way {
                    way,
                    sealer,
                    method,
                    process,
                    number: 0,
                    opener: StateOpener::new(expected, way, replay),
                    reader: Reader::default(),
                });
            }
        }
        world
    }

    /// The sealer of a process that starts.
    fn process(&mut self, method: Method, way: StateWay) -> (StateSealer<RingStates>, u32) {
        self.processes += 1;
        let origin = self.random.next_u64();
        (StateSealer::new(method, way, origin), self.processes)
    }

    /// What the clock of `node` shows.
    fn shows(&self, node: u8) -> u64 {
        self.now
            .saturating_add_signed(self.wrong[usize::from(node)])
    }

    fn times_count(&self) -> bool {
        matches!(self.asked.replay, Replay::Timestamp { .. })
    }

    pub fn run(&mut self) -> Verdict {
        for _ in 0..STEPS {
            self.now += self.random.below(20 * MS);
            let at = self.random.below(self.ways.len() as u64) as usize;
            match self.random.below(24) {
                0..=9 => {
                    self.seal(at)?;
                    // Else it is held back, and comes later if at all.
                    if self.random.chance(0.8) {
                        let bytes = self.record.last().expect("one was sealed").bytes.clone();
                        self.offer(at, &bytes)?;
                    }
                }
                10..=18 => self.attack(at)?,
                19 => self.start_sealer(at),
                20 => self.start_opener(at),
                21 => self.set_clock(),
                22 => self.roll(),
                _ => self.now += self.random.below(20 * SECOND),
            }
        }
        // Whatever there was: when clocks are right again, each way goes on.
        self.wrong = [0; 2];
        self.now += 12 * SECOND;
        for at in 0..self.ways.len() {
            self.start_sealer_with(at, self.method);
            self.seal(at)?;
            let bytes = self.record.last().expect("one was sealed").bytes.clone();
            let opened = self.opened;
            self.offer(at, &bytes)?;
            if self.opened == opened {
                return Err("opens: a sound process is not heard in the end".into());
            }
        }
        Ok(())
    }

    fn seal(&mut self, at: usize) -> Verdict {
        let len = 24 + self.random.below(80) as usize;
        let plain: Vec<u8> = (0..len).map(|_| self.random.next_u64() as u8).collect();
        let from = self.ways[at].way.from;
        let published = match self.times_count() {
            true => self.shows(from),
            false => 0,
        };
        let keys = keys(&self.secrets);
        let way = &mut self.ways[at];
        let mut bytes = vec![0; len + StateHeader::OVERHEAD];
        StateSealer::<RingStates>::room(&mut bytes).copy_from_slice(&plain);
        let sealed = way
            .sealer
            .seal(Some(&keys), (len, CLEAR), published, &mut bytes);
        assert_eq!(sealed, Ok(bytes.len()));
        way.number += 1;
        let sealed = Sealed {
            way: way.way,
            bytes,
            plain,
            method: way.method,
            secret: way.method.takes_key().then(|| self.secrets[0]),
            process: way.process,
            number: way.number,
            at: published,
        };
        self.apart.judge(&sealed)?;
        self.record.push(sealed);
        Ok(())
    }

    /// Shows `bytes` to who opens; whether it does.
    fn offer(&mut self, at: usize, bytes: &[u8]) -> Result<bool, String> {
        let way = &mut self.ways[at];
        let reads = 1 - way.way.from;
        let now = self
            .now
            .saturating_add_signed(self.wrong[usize::from(reads)]);
        let keys = keys(&self.secrets);
        let mut room = vec![0; bytes.len()];
        let opened = way.opener.open(Some(&keys), (bytes, CLEAR), now, &mut room);
        let opened = opened.map_err(|why| why.to_string());
        let known = (&self.asked, &self.record[..]);
        let opened = opened.as_ref().map(|it| &**it).map_err(|why| &**why);
        let opens = opened.is_ok();
        way.reader
            .judge((way.way, bytes), opened, known, (&self.secrets, now))?;
        self.opened += u64::from(opens);
        Ok(opens)
    }

    fn attack(&mut self, at: usize) -> Verdict {
        let number = self.random.below(ATTACKS as u64) as usize;
        let Some(bytes) = self.forged(number, at) else {
            return Ok(());
        };
        if !self.offer(at, &bytes)? {
            self.refused[number] += 1;
        }
        Ok(())
    }

    /// What the attacker makes of what was sealed. `None`: nothing at present.
    fn forged(&mut self, number: usize, at: usize) -> Option<Vec<u8>> {
        let way = self.ways[at].way;
        let drawn = self.draw(|_| true)?;
        let mut bytes = match number {
            // What it held back, or has let through before.
            0 => return self.draw(|it| it.way == way).map(|it| it.bytes),
            // A state of another channel or node, and one that says that it is of this one.
            1 => return self.draw(|it| it.way != way).map(|it| it.bytes),
            2 => {
                let mut bytes = self.draw(|it| it.way != way)?.bytes;
                bytes[4..6].copy_from_slice(&way.channel.to_be_bytes());
                bytes[6] = way.from;
                return Some(bytes);
            }
            // A part of one and a part of another one.
            3 => {
                let other = self.draw(|it| it.bytes.len() == drawn.bytes.len())?;
                let cut = 1 + self.random.below(drawn.bytes.len() as u64 - 1) as usize;
                let parts = [&drawn.bytes[..cut], &other.bytes[cut..]];
                return Some(parts.concat()).filter(|it| *it != drawn.bytes && *it != other.bytes);
            }
            // Its own, which takes no secret: for who can be brought to ask for less.
            4 => return self.downgraded(way, &drawn),
            _ => drawn.bytes,
        };
        if number == 5 {
            // Numbers and times of the header.
            bytes[8 + self.random.below(24) as usize] ^= 1 << self.random.below(8);
        } else {
            for _ in 0..=self.random.below(3) {
                let place = self.random.below(bytes.len() as u64) as usize;
                bytes[place] ^= 1 << self.random.below(8);
            }
            let keep = bytes.len() - self.random.below(2) as usize;
            bytes.truncate(keep);
        }
        Some(bytes)
    }

    /// A state of the attacker's own with a check sequence that is right. Where no more is asked for it opens: who asks for
    /// no more has been told so (N-62).
    fn downgraded(&mut self, way: StateWay, like: &Sealed) -> Option<Vec<u8>> {
        if self.method == Method::Checksum {
            return None;
        }
        let header = StateHeader::parse(&like.bytes).ok()?;
        let mut sealer =
            StateSealer::<RingStates>::new(Method::Checksum, way, header.origin.wrapping_add(1));
        let mut bytes = vec![0x66; like.bytes.len()];
        let len = like.plain.len();
        let published = match self.times_count() {
            true => self.shows(way.from),
            false => 0,
        };
        sealer
            .seal(None, (len, CLEAR), published, &mut bytes)
            .ok()?;
        Some(bytes)
    }

    fn draw(&mut self, wanted: impl Fn(&Sealed) -> bool) -> Option<Sealed> {
        let found: Vec<_> = self.record.iter().filter(|it| wanted(it)).collect();
        let at = self.random.below(found.len().max(1) as u64) as usize;
        found.get(at).map(|it| (*it).clone())
    }

    /// The process that seals starts again; now and then with a configuration that asks for less, or for something else.
    fn start_sealer(&mut self, at: usize) {
        let method = match self.random.chance(0.25) {
            true => METHODS[self.random.below(4) as usize],
            false => self.method,
        };
        self.start_sealer_with(at, method);
    }

    fn start_sealer_with(&mut self, at: usize, method: Method) {
        let (sealer, process) = self.process(method, self.ways[at].way);
        let way = &mut self.ways[at];
        (way.sealer, way.method) = (sealer, method);
        (way.process, way.number) = (process, 0);
    }

    fn start_opener(&mut self, at: usize) {
        let way = &mut self.ways[at];
        way.opener = StateOpener::new(self.asked.expected, way.way, self.asked.replay);
        way.reader = Reader::default();
    }

    /// Somebody sets the clock of a node: right, a little wrong, or by an hour.
    fn set_clock(&mut self) {
        let node = self.random.below(2) as usize;
        let by = match self.random.below(4) {
            0 => 0,
            1 => self.random.below(SECOND) as i64,
            2 => self.random.below(10 * SECOND) as i64,
            _ => 3_600 * SECOND as i64,
        };
        self.wrong[node] = if self.random.chance(0.5) { by } else { -by };
    }

    /// The nodes have agreed on another secret.
    fn roll(&mut self) {
        if self.given < u8::MAX {
            self.given += 1;
            self.secrets.insert(0, self.given);
            self.secrets.truncate(SECRETS);
        }
    }
}
