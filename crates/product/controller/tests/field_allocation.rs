//! What field I/O over Modbus/TCP asks the allocator for in steady state (spec/field.md, F-49): it is bounded, and TLS adds little.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration as StdDuration;

use bumpless_base::{Duration, Epoch, Instant, NodeId};
use bumpless_config::DeviceSecurity;
use bumpless_controller::plant::{DoorSettings, Plant, PlantOptions, Refused, Rights};
use bumpless_controller::{FieldIo, ModbusField, ModbusSettings, OutputStamp, SecureDialer};
use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::{Authority, Identity, IdentityPaths, Wanted, system_clock};

struct Counting;

thread_local! {
    /// Calls and bytes of this thread alone: device and handshakes have threads of their own.
    static ASKED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    /// Bytes that it has asked for and not given back.
    static KEPT: Cell<i64> = const { Cell::new(0) };
}

fn keep(bytes: i64) {
    // A thread that is ending has nowhere to count, and asks no device.
    let _ = KEPT.try_with(|kept| kept.set(kept.get() + bytes));
}

// SAFETY: every call is passed on unchanged to the system's allocator; counting has no effect on it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ASKED.try_with(|asked| {
            let (calls, bytes) = asked.get();
            asked.set((calls + 1, bytes + layout.size() as u64));
        });
        keep(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's, too.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        keep(-(layout.size() as i64));
        // SAFETY: `pointer` came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Cycles that are counted: a read and a write each.
const CYCLES: u64 = 200;
const DAY: StdDuration = StdDuration::from_secs(86_400);

fn clock() -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    let origin = *ORIGIN.get_or_init(std::time::Instant::now);
    Instant::from_nanos(origin.elapsed().as_nanos() as u64 + 1)
}

fn later() -> Instant {
    clock() + Duration::from_secs(10)
}

/// Calls and bytes for a cycle, of which nothing is kept.
fn asked(field: &mut dyn FieldIo) -> (f64, f64) {
    let mut cycle = |number: u64| {
        let mut inputs = [0.0; 3];
        let stamp = OutputStamp {
            epoch: Epoch(5),
            writer: NodeId(1),
            cycle: number,
        };
        field.read(&mut inputs, later()).unwrap();
        field.write(&[3.0, 3.0], stamp, later()).unwrap();
    };
    (1..20).for_each(&mut cycle);
    let mut kept = [0; ROUNDS];
    let (mut before, mut after, mut at) = ((0, 0), (0, 0), 20);
    for kept in &mut kept {
        let already = KEPT.get();
        before = ASKED.get();
        (at..at + CYCLES).for_each(&mut cycle);
        after = ASKED.get();
        at += CYCLES;
        *kept = KEPT.get() - already;
    }
    println!("kept after each {CYCLES} cycles: {kept:?} bytes");
    assert!(kept.iter().all(|&kept| kept < KEPT_MOST), "{kept:?}");
    // What each cycle keeps, if only a byte, is seen in each round; a buffer grows in one.
    assert!(kept.iter().any(|&kept| kept <= 0), "{kept:?}");
    let each = |after: u64, before: u64| (after - before) as f64 / CYCLES as f64;
    (each(after.0, before.0), each(after.1, before.1))
}

fn identity(folder: &Path) -> (IdentityPaths, Identity) {
    let paths = IdentityPaths::in_folder(folder);
    let identity = Identity::load_as_named(&paths, system_clock()).unwrap();
    (paths, identity)
}

/// A plant, behind TLS if it has a folder with a certificate, asked by `test` at its address.
fn with_plant<T>(certificate: Option<&Path>, test: impl FnOnce(std::net::SocketAddr) -> T) -> T {
    let mut plant = Plant::bind(PlantOptions::at(([127, 0, 0, 1], 0).into())).unwrap();
    if let Some(folder) = certificate {
        let (paths, identity) = identity(folder);
        plant = plant.behind(DoorSettings {
            paths,
            identity,
            rights: Rights::default(),
            refused: Box::new(|_: &Refused| ()),
        });
    }
    let (address, stop) = (plant.address(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let thread = std::thread::spawn(move || plant.run(clock, &stopped).unwrap());
    let result = test(address);
    stop.store(true, Ordering::Release);
    thread.join().unwrap();
    result
}

fn settings(address: std::net::SocketAddr) -> ModbusSettings {
    ModbusSettings {
        reconnect_max: Duration::from_millis(64),
        ..ModbusSettings::quadruple_tank(address)
    }
}

#[test]
fn field_io_over_tls_asks_the_allocator_for_little_more_than_open() {
    let open = with_plant(None, |address| {
        let mut field = ModbusField::new(settings(address), clock as fn() -> Instant).unwrap();
        asked(&mut field)
    });
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::create(
        &folder.path().join("pki"),
        "site",
        30 * DAY,
        UnixTime::now(),
    );
    let authority = authority.unwrap();
    for name in ["left.tank", "plant.field"] {
        let wanted = Wanted {
            name: &authority.name(name).unwrap(),
            role: None,
            addresses: &["127.0.0.1".parse().unwrap()],
        };
        let out = folder.path().join(name);
        authority
            .issue(wanted, 20 * DAY, UnixTime::now(), &out)
            .unwrap();
    }
    let secure = with_plant(Some(&folder.path().join("plant.field")), |address| {
        let (paths, identity) = identity(&folder.path().join("left.tank"));
        let dialer = SecureDialer::start(paths, identity, |_| ()).unwrap();
        let name = dialer.name_of(&DeviceSecurity { server_name: None }, address);
        let clock = clock as fn() -> Instant;
        let mut field = ModbusField::secure(settings(address), (dialer, name.unwrap()), clock);
        asked(field.as_mut().unwrap())
    });
    println!("calls and bytes for a cycle: open {open:?}, by TLS {secure:?}");
    assert!(open.0 <= OPEN.0 && open.1 <= OPEN.1, "{open:?}");
    let more = (secure.0 - open.0, secure.1 - open.1);
    assert!(more.0 <= MORE.0 && more.1 <= MORE.1, "{more:?}");
}

/// How often so many cycles are counted.
const ROUNDS: usize = 3;
/// Bytes by which buffers may grow in a round.
const KEPT_MOST: i64 = 2_000;
/// Calls and bytes for a cycle of the tank: a read and a write of one block each. Seen: 8 and 600.
const OPEN: (f64, f64) = (10.0, 800.0);
/// And what TLS adds. Seen: 4 and 146.
const MORE: (f64, f64) = (6.0, 300.0);
