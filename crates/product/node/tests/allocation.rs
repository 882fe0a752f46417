//! Neither steady state nor a change of the applications allocates on the data plane: a whole pair in one process, on loopback, with
//! an allocator that counts what each data-plane thread asks for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bumpless_config::Config;
use bumpless_net_linux::{Link, ReceiveOutcome, Segment, SendOutcome};
use bumpless_node::control::{Request, request};
use bumpless_node::key_file;
use bumpless_node::witness::{self, WitnessOptions};
use bumpless_node::{OpenedLink, RunOptions, open_udp, run};
use serde_json::Value;

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ARMED: AtomicBool = AtomicBool::new(false);
/// Whether each link is to allocate once: what the counter must see.
static DELIBERATE: AtomicBool = AtomicBool::new(false);
/// Links of both nodes.
const LINKS: u64 = 4;

struct Counting;

impl Counting {
    fn note() {
        if ARMED.load(Ordering::Relaxed) && WATCHED.try_with(Cell::get).unwrap_or(false) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::note();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A real link; whichever thread receives on it is a data-plane thread.
struct Watching {
    link: Box<dyn Link + Send>,
    has_allocated: bool,
}

impl Link for Watching {
    fn send(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        self.link.send(to, packets)
    }
    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        WATCHED.with(|watched| watched.set(true));
        if DELIBERATE.load(Ordering::Relaxed) && !self.has_allocated {
            self.has_allocated = true;
            drop(std::hint::black_box(Box::new(0u8)));
        }
        self.link.receive(sink)
    }
    fn descriptor(&self) -> Option<RawFd> {
        self.link.descriptor()
    }
    fn local_address(&self) -> SocketAddr {
        self.link.local_address()
    }
}

/// A network of loopback that belongs to this process.
fn network(directory: &Path) -> (String, SocketAddr) {
    let id = std::process::id();
    let (x, y) = (130 + id / 250 % 100, id % 250);
    let witness = format!("127.{x}.{y}.9:4710");
    let node = |name: &str, last: u8| {
        format!(
            "[[node]]\nname = \"{name}\"\naddresses = {{ A = \"127.{x}.{y}.{last}:4700\", B = \"127.{x}.{y}.{}:4700\" }}\ncontrol = '{}'\n",
            last + 10,
            directory.join(format!("{name}.sock")).display(),
        )
    };
    let text = format!(
        "[pair]\nname = \"allocation\"\n[security]\nkeys = [\"allocation.key\"]\n[timing]\nheartbeat_ms = 5\nlease_ms = 100\n\
         [[network]]\nname = \"A\"\nbandwidth_mbit = 1000\n[[network]]\nname = \"B\"\nbandwidth_mbit = 1000\n\
         {}{}[[reference]]\nname = \"w\"\nkind = \"witness\"\nnetwork = \"A\"\naddress = \"{witness}\"\n\
         [[group]]\nname = \"g\"\nnodes = [\"left\", \"right\"]\nreferences = [\"w\"]\n\
         [[application]]\nname = \"large\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 1\nperiod_ms = 50\n\
         commit = \"async\"\nsize = \"100 kB\"\nchanged_share = 0.1\n\
         [[application]]\nname = \"small\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 2\nperiod_ms = 10\n\
         commit = \"async\"\nsize = \"100 B\"\nchanged_share = 1.0\n\
         [[application]]\nname = \"goes\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 3\nperiod_ms = 20\n\
         commit = \"async\"\nsize = \"30 kB\"\nchanged_share = 1.0\n\
         [[application]]\nname = \"largest\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 9\nperiod_ms = 1500\n\
         commit = \"async\"\nsize = \"16 MB\"\nchanged_share = 1.0\n",
        node("left", 1),
        node("right", 2),
    );
    (text, witness.parse().unwrap())
}

fn status(socket: &Path) -> Value {
    request(socket, &Request::Status).unwrap_or(Value::Null)
}

fn delivered(socket: &Path) -> u64 {
    status(socket)["counters"]["states_delivered"]
        .as_u64()
        .unwrap_or(0)
}

/// How many states of 16 MB have come, of whichever node they are.
fn largest(sockets: &[PathBuf; 2]) -> u64 {
    let of = |socket: &PathBuf| {
        let status = status(socket);
        let applications = status["applications"].as_array().into_iter().flatten();
        let mut largest = applications.filter(|it| it["name"] == "largest");
        largest.find_map(|it| it["transfers_safe"].as_u64())
    };
    sockets.iter().filter_map(of).sum()
}

/// The configuration after a change in which an application comes, one goes, and one is tuned.
fn changed(text: &str) -> String {
    text.replace("period_ms = 10\n", "period_ms = 20\n")
        .replace("name = \"goes\"", "name = \"comes\"")
        .replace("channel = 3\n", "channel = 4\n")
}

/// Has both nodes change to the configuration in `file`, and waits for the end of it.
fn change(sockets: &[PathBuf; 2], file: &Path) {
    let next = Config::load(file).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let fingerprint = format!("{:016x}", next.fingerprint());
    for socket in sockets {
        let order = Request::Apply { file: file.into() };
        let reply = request(socket, &order).unwrap();
        assert_eq!(reply["accepted"], "apply", "{reply}");
    }
    wait_until("both have changed", || {
        sockets.iter().all(|socket| {
            let configuration = &status(socket)["configuration"];
            configuration["fingerprint"] == *fingerprint && configuration["change"].is_null()
        })
    });
}

fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if reached() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("not within 30 s: {what}");
}

/// Starts a witness, which lasts until `stop`.
fn start_witness(listen: SocketAddr, key: PathBuf, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let options = WitnessOptions {
        certified: None,
        keys: vec![("allocation".into(), key)],
        open: false,
        listen: vec![listen],
        longest_lease: bumpless_base::Duration::from_millis(200),
        priority: None,
        json: true,
        stop: Arc::clone(stop),
    };
    thread::spawn(move || witness::run(&options).unwrap())
}

/// Starts a node with the configuration of `file`, likewise.
fn start_node(name: &'static str, file: &Path, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let config = Config::load(file).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let options = RunOptions {
        config_file: Some(file.to_owned()),
        log_file: None,
        log_stdout: None,
        log_transfers: true,
        log_outputs: true,
        keeper: None,
        stop: Arc::clone(stop),
    };
    thread::spawn(move || {
        let node = config.node(name).unwrap();
        run(&config, node, options, &mut |link, settings| {
            let opened = open_udp(link, settings)?;
            Ok(OpenedLink {
                driver: Box::new(Watching {
                    link: opened.driver,
                    has_allocated: false,
                }),
                ..opened
            })
        })
        .unwrap();
    })
}

#[test]
fn the_data_plane_allocates_nothing_in_steady_state_nor_in_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let (text, witness) = network(directory.path());
    let next = changed(&text);
    let [file, next_file] = [("pair.toml", &text), ("next.toml", &next)].map(|(name, text)| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    });
    let key = directory.path().join("allocation.key");
    key_file::create(&key).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads = vec![start_witness(witness, key, &stop)];
    threads.extend(["left", "right"].map(|name| start_node(name, &file, &stop)));
    let sockets = ["left.sock", "right.sock"].map(|name| directory.path().join(name));
    let right = sockets[1].clone();
    wait_until("the pair is redundant", || {
        status(&right)["groups"][0]["redundancy"] == "ok"
    });
    let before = delivered(&right);
    wait_until("100 states have warmed everything up", || {
        delivered(&right) > before + 100
    });
    ARMED.store(true, Ordering::SeqCst);
    let (before, large) = (delivered(&right), largest(&sockets));
    wait_until(
        "200 more states were delivered, large ones among them",
        || delivered(&right) > before + 200 && largest(&sockets) > large + 1,
    );
    let steady = ALLOCATIONS.load(Ordering::SeqCst);
    change(&sockets, &next_file);
    let allocations = ALLOCATIONS.load(Ordering::SeqCst);
    DELIBERATE.store(true, Ordering::SeqCst);
    wait_until(
        "an allocation and a release on each link are counted",
        || ALLOCATIONS.load(Ordering::SeqCst) >= allocations + 2 * LINKS,
    );
    ARMED.store(false, Ordering::SeqCst);
    stop.store(true, Ordering::SeqCst);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(
        (steady, allocations - steady),
        (0, 0),
        "allocations and releases on data-plane threads, in steady state and in a change"
    );
}
