//! A Modbus TCP client that reads registers of a server: the programs know nothing of iPRP.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::Duration;
use bumpless_bench::statistics::Summary;
use bumpless_controller::plant::{Plant, PlantOptions};
use bumpless_controller::{FieldIo, ModbusField, ModbusSettings};
use bumpless_net_linux::Clock;

use super::{MODBUS, Row, Stage};
use crate::iprp::hosts::address;
use crate::iprp::{LabError, impossible};

/// Between requests, and how long an answer may take.
const EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(3);

/// What the client saw.
#[derive(Default)]
struct Seen {
    unanswered: u64,
    round_trips_ns: Vec<u64>,
}

/// Requests for so long.
fn ask(client: &mut impl FieldIo, length: Duration, is_stopped: impl Fn() -> bool) -> Seen {
    let (mut seen, began) = (Seen::default(), Clock.now());
    let mut due = began;
    while Clock.now().since(began) < length && !is_stopped() {
        let asked = Clock.now();
        match client.keep_warm(asked + PATIENCE) {
            Ok(_) => seen
                .round_trips_ns
                .push(Clock.now().since(asked).as_nanos()),
            Err(_) => seen.unanswered += 1,
        }
        due = (due + EVERY).max(Clock.now());
        Clock.sleep_until(due);
    }
    seen
}

/// Runs both.
pub fn run(stage: &mut Stage<'_>) -> Result<Row, LabError> {
    let at = SocketAddr::from((address(0, 1), MODBUS));
    let bind = || Plant::bind(PlantOptions::at(at));
    let server = stage.site.hosts.host(1).run(bind).map_err(impossible)?;
    let (server, stop) = (server.map_err(impossible)?, AtomicBool::new(false));
    let client = ModbusField::new(ModbusSettings::quadruple_tank(at), || Clock.now());
    let mut client = client.map_err(impossible)?;
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(|| Clock.now(), &stop));
        let measured = measure(stage, &mut client);
        stop.store(true, Ordering::Release);
        let served = serving.join();
        let (seen, copies) = measured?;
        if let Ok(Err(error)) = served {
            return Err(impossible(error));
        }
        let answered = seen.round_trips_ns.len() as u64;
        let row = Row {
            name: "Modbus TCP, a read every 20 ms".into(),
            unit: "requests",
            sent: answered + seen.unanswered,
            lost: seen.unanswered,
            delay_of: "round trip",
            delay: Summary::of(seen.round_trips_ns),
            ..Row::default()
        };
        Ok(row.over(&copies).judged_as_reliable())
    })
}

fn measure(
    stage: &mut Stage<'_>,
    client: &mut impl FieldIo,
) -> Result<(Seen, Vec<crate::iprp::relay::Copied>), LabError> {
    // It connects from where it asks.
    let mut ask_for = |stage: &Stage<'_>, length: Duration| {
        let host = stage.site.hosts.host(0);
        let client = &mut *client;
        host.run(move || ask(client, length, || stage.is_stopped()))
            .map_err(impossible)
    };
    // The connection is begun before it is replicated.
    ask_for(stage, Duration::from_secs(1))?;
    stage.begin("tcp", MODBUS, || {})?;
    stage.under_faults(|stage| {
        let length = Duration::from_nanos(stage.length.as_nanos() as u64);
        ask_for(stage, length)
    })
}
