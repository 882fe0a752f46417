//! The product's client against the product's plant, on loopback.

use super::log::{Line, Rejection};
use super::*;
use crate::modbus::tests::clock;
use crate::tanks::Process;
use crate::{FieldErrorKind, FieldIo, ModbusField, ModbusMap, ModbusSettings, OutputStamp};
use bumpless_base::{Epoch, Instant, NodeId, Random};
use std::thread::JoinHandle;

struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), PlantError>>,
}

impl Running {
    fn start(options: PlantOptions) -> Self {
        let plant = Plant::bind(options).unwrap();
        let (address, stop) = (plant.address(), Arc::new(AtomicBool::new(false)));
        let ordered = stop.clone();
        let thread = std::thread::spawn(move || plant.run(clock, &ordered));
        Self {
            address,
            stop,
            thread,
        }
    }

    fn client(&self) -> ModbusField<fn() -> Instant> {
        let settings = ModbusSettings {
            map: ModbusMap {
                inputs: vec![0, 2, 4, 6, input::PROCESS_TIME],
                ..ModbusMap::quadruple_tank()
            },
            ..ModbusSettings::quadruple_tank(self.address)
        };
        ModbusField::new(settings, clock as fn() -> Instant).unwrap()
    }

    fn end(self) {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap().unwrap();
    }
}

fn options() -> PlantOptions {
    PlantOptions {
        time_scale: 20.0,
        ..PlantOptions::at(([127, 0, 0, 1], 0).into())
    }
}

fn stamp(epoch: u32, writer: u8, cycle: u64) -> OutputStamp {
    OutputStamp {
        epoch: Epoch(epoch),
        writer: NodeId(writer),
        cycle,
    }
}

fn soon() -> Instant {
    clock() + Duration::from_secs(5)
}

#[test]
fn values_make_the_round_trip() {
    let plant = Running::start(options());
    let mut client = plant.client();
    let mut inputs = [0.0; 5];
    let sample = client.read(&mut inputs, soon()).unwrap();
    assert_eq!(
        (sample.epoch_seen, sample.cycle_seen),
        (Some(Epoch(0)), Some(0))
    );
    for (read, rest) in inputs.iter().zip(Process::at_operating_point().levels()) {
        assert!((read - rest).abs() < 1e-5, "{inputs:?}");
    }
    client
        .write(&[6.0, 3.0], stamp(70_001, 1, 1 << 40), soon())
        .unwrap();
    let before = inputs;
    while inputs[4] < before[4] + 2.0 {
        assert_eq!(
            client.read(&mut inputs, soon()).unwrap().epoch_seen,
            Some(Epoch(70_001))
        );
    }
    assert!(
        inputs[0] > before[0] + 0.1,
        "pump 1 fills tank 1: {before:?} {inputs:?}"
    );
    assert_eq!(
        client.keep_warm(soon()).unwrap().epoch_seen,
        Some(Epoch(70_001))
    );
    plant.end();
}

#[test]
fn an_older_epoch_is_rejected_and_says_which_one_counts() {
    let plant = Running::start(options());
    let (mut old, mut new) = (plant.client(), plant.client());
    old.write(&[3.0, 3.0], stamp(1, 0, 1), soon()).unwrap();
    new.write(&[3.1, 3.0], stamp(2, 1, 1), soon()).unwrap();
    let error = old.write(&[3.0, 3.0], stamp(1, 0, 2), soon()).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::RejectedEpoch { seen: Epoch(2) });
    new.write(&[3.2, 3.0], stamp(2, 1, 2), soon()).unwrap();
    plant.end();
}

#[test]
fn an_overtaken_write_of_the_same_epoch_is_rejected() {
    let plant = Running::start(options());
    let mut client = plant.client();
    client.write(&[3.0, 3.0], stamp(4, 0, 10), soon()).unwrap();
    client.write(&[3.0, 3.0], stamp(4, 0, 10), soon()).unwrap();
    let error = client
        .write(&[3.0, 3.0], stamp(4, 0, 9), soon())
        .unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Exception(3));
    client.write(&[3.0, 3.0], stamp(5, 1, 9), soon()).unwrap();
    plant.end();
}

#[test]
fn a_plant_that_does_not_check_takes_every_epoch() {
    let plant = Running::start(PlantOptions {
        check_epoch: false,
        ..options()
    });
    let mut client = plant.client();
    for epoch in [2, 1, 3] {
        client
            .write(&[3.0, 3.0], stamp(epoch, 0, 1), soon())
            .unwrap();
    }
    plant.end();
}

#[test]
fn outputs_that_are_not_numbers_are_rejected() {
    let plant = Running::start(options());
    let mut client = plant.client();
    for output in [f64::NAN, f64::INFINITY] {
        let error = client
            .write(&[3.0, output], stamp(1, 0, 1), soon())
            .unwrap_err();
        assert_eq!(error.kind, FieldErrorKind::Exception(3));
    }
    assert_eq!(client.keep_warm(soon()).unwrap().epoch_seen, Some(Epoch(0)));
    plant.end();
}

#[test]
fn a_wrong_number_of_outputs_is_rejected() {
    let plant = Running::start(options());
    let mut client = plant.client();
    for outputs in [&[][..], &[1.0], &[1.0; 3]] {
        let error = client.write(outputs, stamp(1, 0, 1), soon()).unwrap_err();
        assert_eq!(error.kind, FieldErrorKind::Exception(2));
    }
    plant.end();
}

#[test]
fn registers_that_do_not_exist_are_an_illegal_address() {
    let plant = Running::start(options());
    for (first, count) in [(input::COUNT, 2), (1, input::COUNT), (u16::MAX, 2)] {
        let map = ModbusMap {
            first,
            count,
            inputs: Vec::new(),
            epoch: None,
            cycle: None,
        };
        let settings = ModbusSettings {
            map,
            ..ModbusSettings::quadruple_tank(plant.address)
        };
        let mut client = ModbusField::new(settings, clock).unwrap();
        let error = client.keep_warm(soon()).unwrap_err();
        assert_eq!(error.kind, FieldErrorKind::Exception(2));
    }
    plant.end();
}

#[test]
fn sensor_noise_has_the_stated_size_and_does_not_move_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("plant.jsonl");
    let plant = Running::start(PlantOptions {
        noise: 0.05,
        seed: 1,
        log: Some(log.clone()),
        ..options()
    });
    let (mut client, mut inputs) = (plant.client(), [0.0; 5]);
    let rest = Process::at_operating_point().levels()[0];
    let square = |_| {
        client.read(&mut inputs, soon()).unwrap();
        (inputs[0] - rest).powi(2)
    };
    let deviation = ((0..2_000).map(square).sum::<f64>() / 2_000.0).sqrt();
    assert!((0.045..0.055).contains(&deviation), "{deviation}");
    plant.end();
    for line in lines(&log) {
        if let Line::Levels { levels_cm, .. } = line {
            assert!((levels_cm[0] - rest).abs() < 1e-9);
        }
    }
}

fn lines(path: &std::path::Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_write_is_in_the_log_with_time_writer_epoch_and_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plant.jsonl");
    let plant = Running::start(PlantOptions {
        log: Some(path.clone()),
        log_interval: Duration::from_millis(1),
        ..options()
    });
    let mut client = plant.client();
    let before = clock().as_nanos();
    client.write(&[3.5, 2.5], stamp(2, 1, 8), soon()).unwrap();
    client
        .write(&[3.0, 3.0], stamp(1, 0, 9), soon())
        .unwrap_err();
    client
        .write(&[f64::NAN, 3.0], stamp(2, 1, 9), soon())
        .unwrap_err();
    let after = clock().as_nanos();
    // Lines reach the file within 100 ms of their event; the levels' are due every millisecond.
    let has_levels = || std::fs::read_to_string(&path).is_ok_and(|text| text.contains("levels"));
    let began = std::time::Instant::now();
    while !has_levels() {
        assert!(began.elapsed().as_secs() < 30, "no levels in {path:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    plant.end();
    let lines = lines(&path);
    assert!(matches!(
        lines[0],
        Line::Start {
            version: 1,
            check_epoch: true,
            ..
        }
    ));
    assert_eq!(lines.last(), Some(&Line::End { lines_lost: 0 }));
    let write = |line: &Line| match line.clone() {
        Line::Write {
            at_ns,
            writer,
            epoch,
            cycle,
            outputs,
            accepted,
            reason,
        } => {
            assert!((before..after).contains(&at_ns));
            Some((writer, epoch, cycle, outputs, accepted, reason))
        }
        _ => None,
    };
    let writes: Vec<_> = lines.iter().filter_map(write).collect();
    let expected = [
        (1, 2, 8, vec![Some(3.5), Some(2.5)], true, None),
        (
            0,
            1,
            9,
            vec![Some(3.0); 2],
            false,
            Some(Rejection::OlderEpoch),
        ),
        (
            1,
            2,
            9,
            vec![None, Some(3.0)],
            false,
            Some(Rejection::NotFinite),
        ),
    ];
    assert_eq!(writes, expected);
}

#[test]
fn the_log_can_be_read_while_the_plant_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plant.jsonl");
    let plant = Running::start(PlantOptions {
        log: Some(path.clone()),
        // No other lines, which would fill the file's buffer.
        log_interval: Duration::from_secs(3_600),
        ..options()
    });
    let mut client = plant.client();
    client.write(&[3.0, 3.0], stamp(1, 0, 1), soon()).unwrap();
    let give_up = soon();
    while !std::fs::read_to_string(&path)
        .unwrap()
        .contains("\"write\"")
    {
        assert!(clock() < give_up);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    plant.end();
}

/// Frames with a right length field around random requests, and plain random bytes.
fn rubbish(random: &mut Random, bytes: &mut Vec<u8>) {
    bytes.clear();
    let len = random.below(24) as usize;
    let functions = [1, 2, 3, 4, 5, 6, 15, 16, 17, 22, 23, 43, 99, 200];
    if random.chance(0.8) {
        bytes.extend([0, 1, 0, 0, 0, len as u8 + 2, 255]);
        bytes.push(functions[random.below(functions.len() as u64) as usize]);
    }
    bytes.extend((0..len).map(|_| random.next_u64() as u8));
}

#[test]
fn any_bytes_from_anywhere_leave_the_plant_running() {
    use std::io::Write as _;
    let plant = Running::start(options());
    let (mut random, mut bytes) = (Random::new(42), Vec::new());
    for _ in 0..300 {
        let mut stream = std::net::TcpStream::connect(plant.address).unwrap();
        rubbish(&mut random, &mut bytes);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    }
    let sample = plant.client().keep_warm(soon()).unwrap();
    assert_eq!(
        sample.epoch_seen,
        Some(Epoch(0)),
        "nothing was taken for a write"
    );
    plant.end();
}

#[test]
fn connections_beyond_the_limit_are_closed_until_another_leaves() {
    let plant = Running::start(options());
    let mut clients: Vec<_> = (0..server::CONNECTIONS_MAX)
        .map(|_| plant.client())
        .collect();
    for client in &mut clients {
        client.keep_warm(soon()).unwrap();
    }
    let mut late = plant.client();
    let error = late.keep_warm(soon()).unwrap_err();
    assert!(
        matches!(error.kind, FieldErrorKind::NotConnected(_)),
        "{error}"
    );
    clients.pop();
    let give_up = soon();
    while late.keep_warm(soon()).is_err() {
        assert!(clock() < give_up);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    plant.end();
}

#[test]
fn a_taken_address_and_an_impossible_log_say_what_to_do() {
    let plant = Running::start(options());
    let taken = PlantOptions::at(plant.address);
    let error = Plant::bind(taken).err().unwrap().to_string();
    assert!(
        error.contains(&plant.address.to_string()) && error.contains("free port"),
        "{error}"
    );
    plant.end();
    let directory = tempfile::tempdir().unwrap();
    let log = Some(directory.path().to_path_buf());
    // Before anybody hears that it listens.
    let error = Plant::bind(PlantOptions { log, ..options() }).err();
    assert!(error.unwrap().to_string().contains("writable"));
}

#[test]
fn a_plant_adds_to_a_log_that_is_there_also_after_half_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plant.jsonl");
    let run = || {
        let log = Some(path.clone());
        Running::start(PlantOptions { log, ..options() }).end();
        std::fs::read_to_string(&path).unwrap()
    };
    let before = run();
    let cut = format!("{before}{{\"type\"");
    std::fs::write(&path, &cut).unwrap();
    let after = run();
    let added = after.strip_prefix(&format!("{cut}\n")).unwrap();
    assert!(added.starts_with("{\"type\":\"start\""), "{after}");
    assert!(added.contains("\"end\""), "{after}");
}
