//! Devices of a program against servers on loopback. How long things take decides nothing, except that a device that
//! hangs must not cost each cycle its deadline.

mod device;

use super::*;
use bumpless_base::{Duration, NodeId};
use bumpless_config::{Area, InputFrom, ModbusDevice, Order, OutputTo, Point, ValueType};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use tokio_modbus::ExceptionCode;

use self::device::device;
use crate::modbus::tests::clock;

fn settings(name: &str, address: SocketAddr) -> FieldDevice {
    FieldDevice {
        name: name.into(),
        address,
        required: true,
        bus: Bus::Modbus(MODBUS),
    }
}

const MODBUS: ModbusDevice = ModbusDevice {
    unit: 255,
    security: None,
    epoch_register: None,
    cycle_register: None,
};

fn point(area: Area, register: u16, value: ValueType) -> Point {
    Point {
        area,
        register,
        value,
        byte_order: Order::Big,
        word_order: Order::Big,
        scale: 1.0,
        offset: 0.0,
    }
}

fn input(device: usize, area: Area, register: u16, value: ValueType) -> Input {
    Input {
        name: String::new(),
        device,
        from: InputFrom::Registers(point(area, register, value), 1),
    }
}

fn answers(device: usize) -> Input {
    Input {
        name: String::new(),
        device,
        from: InputFrom::Answers,
    }
}

fn output(device: usize, area: Area, register: u16, value: ValueType) -> Output {
    Output {
        name: String::new(),
        device,
        to: OutputTo::Registers(point(area, register, value)),
    }
}

type Field = Devices<fn() -> Instant>;

fn field(devices: &[FieldDevice], inputs: &[Input], outputs: &[Output]) -> Field {
    let field = Devices::new(
        devices,
        (inputs, outputs),
        true,
        None,
        &mut |_| unreachable!("no driver"),
        clock as fn() -> Instant,
    );
    field.unwrap()
}

const STAMP: OutputStamp = OutputStamp {
    epoch: Epoch(5),
    writer: NodeId(1),
    cycle: 7,
};

/// Longer than a busy machine keeps a thread from answering.
const LONG: Duration = Duration::from_secs(10);

fn later() -> Instant {
    clock() + LONG
}

/// Reads until that succeeds.
fn read_at_last(field: &mut Field, count: usize) -> Vec<f64> {
    let mut values = vec![0.0; count];
    let give_up = later();
    while let Err(error) = field.read(&mut values, later()) {
        assert!(clock() < give_up, "{error}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    values
}

#[test]
fn inputs_of_every_area_and_type_come_in_the_order_of_the_program() {
    let (address, inside) = device();
    inside.put(Area::HoldingRegister, 100, &[0x47f1, 0x2000, 0xfffe]);
    inside.put(Area::InputRegister, 7, &[0x3ff0, 0, 0, 0]);
    inside.put(Area::Coil, 3, &[1]);
    inside.put(Area::DiscreteInput, 9, &[1, 0]);
    let inputs = [
        input(0, Area::HoldingRegister, 102, ValueType::I16),
        input(0, Area::DiscreteInput, 10, ValueType::Bool),
        input(0, Area::DiscreteInput, 9, ValueType::Bool),
        input(0, Area::InputRegister, 7, ValueType::F64),
        input(0, Area::Coil, 3, ValueType::Bool),
        input(0, Area::HoldingRegister, 100, ValueType::F32),
        answers(0),
    ];
    let mut field = field(&[settings("plc", address)], &inputs, &[]);
    let expected = [-2.0, 0.0, 1.0, 1.0, 1.0, 123_456.0, 1.0];
    assert_eq!(read_at_last(&mut field, 7), expected);
    let expected = [
        "ReadCoils(3, 1)",
        "ReadDiscreteInputs(9, 2)",
        "ReadHoldingRegisters(100, 3)",
        "ReadInputRegisters(7, 4)",
    ];
    assert_eq!(
        inside.asked(),
        expected,
        "what is next to each other is asked at once"
    );
}

#[test]
fn outputs_are_written_where_they_belong_and_neighbours_in_one_request() {
    let (address, inside) = device();
    let outputs = [
        output(0, Area::HoldingRegister, 52, ValueType::I16),
        output(0, Area::HoldingRegister, 50, ValueType::F32),
        output(0, Area::Coil, 8, ValueType::Bool),
        output(0, Area::Coil, 9, ValueType::Bool),
        output(0, Area::HoldingRegister, 60, ValueType::U16),
    ];
    let mut field = field(&[settings("plc", address)], &[], &outputs);
    read_at_last(&mut field, 0);
    field
        .write(&[-2.0, 123_456.0, 0.0, 1.0, 7.0], STAMP, later())
        .unwrap();
    assert_eq!(
        inside.get(Area::HoldingRegister, 50, 3),
        [0x47f1, 0x2000, 0xfffe]
    );
    assert_eq!(inside.get(Area::Coil, 8, 2), [0, 1]);
    let asked = inside.asked();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(
        asked
            .iter()
            .any(|words| words == "WriteSingleRegister(60, 7)"),
        "{asked:?}"
    );
}

#[test]
fn a_request_that_is_refused_keeps_no_other_output_from_being_written() {
    let (address, inside) = device();
    let outputs = [
        output(0, Area::Coil, 0, ValueType::Bool),
        output(0, Area::HoldingRegister, 10, ValueType::U16),
        output(0, Area::HoldingRegister, 20, ValueType::U16),
    ];
    let mut field = field(&[settings("plc", address)], &[], &outputs);
    read_at_last(&mut field, 0);
    let refuse = |exception| inside.refused.lock().unwrap().insert(Area::Coil, exception);
    let written = || [10, 20].map(|at| inside.get(Area::HoldingRegister, at, 1)[0]);
    refuse(ExceptionCode::IllegalDataAddress);
    for value in 1..=3_u16 {
        let outputs = [1.0, f64::from(value), f64::from(value)];
        let refused = field.write(&outputs, STAMP, later()).unwrap_err();
        assert_eq!(refused.kind, FieldErrorKind::Exception(2), "it is told");
        assert_eq!(written(), [value, value]);
    }
    assert_eq!(inside.connections.load(Ordering::SeqCst), 1);
    // A gateway that does not reach the device would say so of each, perhaps after a while.
    refuse(ExceptionCode::GatewayTargetDevice);
    inside.asked();
    let unreached = field.write(&[1.0, 4.0, 4.0], STAMP, later()).unwrap_err();
    assert_eq!(unreached.kind, FieldErrorKind::Exception(11));
    assert_eq!((written(), inside.asked().len()), ([3, 3], 1));
}

#[test]
fn a_device_whose_reads_are_refused_is_silent_although_it_takes_its_outputs() {
    let (address, inside) = device();
    let optional = FieldDevice {
        required: false,
        ..settings("plc", address)
    };
    let inputs = [input(0, Area::InputRegister, 0, ValueType::U16), answers(0)];
    let outputs = [output(0, Area::Coil, 0, ValueType::Bool)];
    let mut field = field(&[optional], &inputs, &outputs);
    let mut values = [0.0; 2];
    while values[1] == 0.0 {
        field.read(&mut values, later()).unwrap();
    }
    let exception = ExceptionCode::IllegalDataAddress;
    inside
        .refused
        .lock()
        .unwrap()
        .insert(Area::InputRegister, exception);
    for _ in 0..3 {
        field.read(&mut values, later()).unwrap();
        assert_eq!((values[1], field.silent()), (0.0, 1));
        field.write(&[1.0], STAMP, later()).unwrap();
        assert_eq!(field.silent(), 1, "what was not read is not made good");
    }
    assert_eq!(inside.get(Area::Coil, 0, 1), [1]);
    inside.refused.lock().unwrap().clear();
    field.read(&mut values, later()).unwrap();
    field.write(&[1.0], STAMP, later()).unwrap();
    assert_eq!((values[1], field.silent()), (1.0, 0));
}

#[test]
fn units_behind_one_gateway_are_told_apart() {
    let (address, inside) = device();
    inside.put(Area::InputRegister, 0, &[9]);
    let unit = |unit| FieldDevice {
        bus: Bus::Modbus(ModbusDevice { unit, ..MODBUS }),
        ..settings("gateway", address)
    };
    let inputs = [
        input(0, Area::InputRegister, 0, ValueType::U16),
        input(1, Area::InputRegister, 0, ValueType::U16),
    ];
    let mut field = field(&[unit(3), unit(8)], &inputs, &[]);
    assert_eq!(read_at_last(&mut field, 2), [9.0, 9.0]);
    let mut units = inside.units.lock().unwrap().clone();
    units.sort_unstable();
    assert_eq!(units, [3, 8]);
}

#[test]
fn a_polling_group_is_read_in_its_periods_and_keeps_its_values_between_them() {
    let (address, inside) = device();
    inside.put(Area::InputRegister, 0, &[1]);
    inside.put(Area::InputRegister, 50, &[2]);
    let seldom = Input {
        from: InputFrom::Registers(point(Area::InputRegister, 50, ValueType::U16), 4),
        ..input(0, Area::InputRegister, 50, ValueType::U16)
    };
    let inputs = [input(0, Area::InputRegister, 0, ValueType::U16), seldom];
    let mut field = field(&[settings("plc", address)], &inputs, &[]);
    assert_eq!(read_at_last(&mut field, 2), [1.0, 2.0]);
    // From a cycle of its own on: however many attempts the first read took, the next eight have two of them.
    inside.asked();
    inside.put(Area::InputRegister, 50, &[3]);
    let mut values = [0.0; 2];
    let mut seen = Vec::new();
    for _ in 0..8 {
        field.read(&mut values, later()).unwrap();
        seen.push(values[1]);
    }
    let asked = inside.asked();
    let count = |first: &str| asked.iter().filter(|words| words.contains(first)).count();
    assert_eq!((count("(0, 1)"), count("(50, 1)")), (8, 2));
    assert!(seen.is_sorted() && seen[7] == 3.0, "{seen:?}");
}

#[test]
fn a_device_that_hangs_delays_no_other_and_is_there_again_when_it_answers() {
    let (sound, hanging) = (device(), device());
    sound.1.put(Area::InputRegister, 0, &[4]);
    hanging.1.put(Area::InputRegister, 0, &[5]);
    let optional = FieldDevice {
        required: false,
        ..settings("hanging", hanging.0)
    };
    let inputs = [
        input(0, Area::InputRegister, 0, ValueType::U16),
        input(1, Area::InputRegister, 0, ValueType::U16),
        answers(1),
    ];
    let mut field = field(&[settings("sound", sound.0), optional], &inputs, &[]);
    let mut values = [0.0; 3];
    while values != [4.0, 5.0, 1.0] {
        field.read(&mut values, later()).unwrap();
    }
    hanging.1.hangs.store(true, Ordering::SeqCst);
    sound.1.asked();
    let (began, each) = (clock(), Duration::from_millis(100));
    for _ in 0..100 {
        field.read(&mut values, clock() + each).unwrap();
        assert_eq!(
            values,
            [4.0, 5.0, 0.0],
            "the program has what it said last, and is told"
        );
        assert_eq!(field.silent(), 0b10);
    }
    assert_eq!(sound.1.asked().len(), 100);
    // Had each read waited for it, this would have taken ten seconds.
    assert!(clock().since(began) < each * 50);
    hanging.1.hangs.store(false, Ordering::SeqCst);
    let give_up = later();
    while values != [4.0, 5.0, 1.0] {
        assert!(clock() < give_up, "{values:?}");
        field.read(&mut values, clock() + each).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(field.silent(), 0);
}

#[test]
fn a_device_that_is_only_read_and_silent_is_so_after_the_write_to_others() {
    let (sound, hanging) = (device(), device());
    let optional = FieldDevice {
        required: false,
        ..settings("hanging", hanging.0)
    };
    let inputs = [
        input(0, Area::InputRegister, 0, ValueType::U16),
        input(1, Area::InputRegister, 0, ValueType::U16),
    ];
    let outputs = [output(0, Area::Coil, 0, ValueType::Bool)];
    let mut field = field(&[settings("sound", sound.0), optional], &inputs, &outputs);
    read_at_last(&mut field, 2);
    hanging.1.hangs.store(true, Ordering::SeqCst);
    let until = || clock() + Duration::from_millis(100);
    while field.silent() == 0 {
        field.read(&mut [0.0; 2], until()).unwrap();
    }
    field.write(&[1.0], STAMP, later()).unwrap();
    assert_eq!(field.silent(), 0b10);
}

#[test]
fn a_device_that_the_program_cannot_do_without_fails_the_cycle_and_leaves_its_inputs() {
    let (sound, hanging) = (device(), device());
    let inputs = [
        input(0, Area::InputRegister, 0, ValueType::U16),
        input(1, Area::InputRegister, 0, ValueType::U16),
    ];
    let devices = [settings("sound", sound.0), settings("hanging", hanging.0)];
    let mut field = field(
        &devices,
        &inputs,
        &[output(0, Area::Coil, 0, ValueType::Bool)],
    );
    read_at_last(&mut field, 2);
    hanging.1.hangs.store(true, Ordering::SeqCst);
    sound.1.put(Area::InputRegister, 0, &[4]);
    let mut values = [1.0, 2.0];
    for _ in 0..3 {
        let error = field
            .read(&mut values, clock() + Duration::from_millis(50))
            .unwrap_err();
        assert!(error.place.starts_with("hanging ("), "{error}");
        assert_eq!(values, [1.0, 2.0]);
    }
}

#[test]
fn a_device_that_compares_epochs_gets_its_outputs_in_a_block_and_tells_what_it_accepted() {
    let (address, inside) = device();
    inside.checks.store(true, Ordering::SeqCst);
    let plc = FieldDevice {
        bus: Bus::Modbus(ModbusDevice {
            epoch_register: Some(10),
            cycle_register: Some(12),
            ..MODBUS
        }),
        ..settings("plc", address)
    };
    let block = || Output {
        name: String::new(),
        device: 0,
        to: OutputTo::Block,
    };
    let inputs = [input(0, Area::InputRegister, 0, ValueType::U16)];
    let mut field = field(&[plc], &inputs, &[block(), block()]);
    read_at_last(&mut field, 1);
    field.write(&[1.0, -2.5], STAMP, later()).unwrap();
    let expected = [0, 5, 1, 0, 0, 0, 0, 7, 0x3f80, 0, 0xc020, 0];
    assert_eq!(inside.get(Area::HoldingRegister, 0, 12), expected);
    let told = FieldSample {
        epoch_seen: Some(Epoch(5)),
        cycle_seen: Some(7),
    };
    assert_eq!(field.keep_warm(later()), Ok(told));
    assert_eq!(field.read(&mut [0.0], later()), Ok(told));
    let older = OutputStamp {
        epoch: Epoch(4),
        ..STAMP
    };
    let error = field.write(&[1.0, 1.0], older, later()).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::RejectedEpoch { seen: Epoch(5) });
}

#[test]
fn no_write_begins_after_its_time_and_a_backup_writes_nothing() {
    let (address, inside) = device();
    let outputs = [output(0, Area::HoldingRegister, 0, ValueType::U16)];
    let inputs = [input(0, Area::InputRegister, 0, ValueType::U16)];
    let mut field = field(&[settings("plc", address)], &inputs, &outputs);
    read_at_last(&mut field, 1);
    for _ in 0..5 {
        field.keep_warm(later()).unwrap();
    }
    let error = field.write(&[7.0], STAMP, clock()).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Timeout);
    let asked = inside.asked();
    assert!(
        asked.iter().all(|words| words.starts_with("Read")),
        "{asked:?}"
    );
}

#[test]
fn a_thousand_registers_of_ten_devices_are_ten_requests_a_cycle() {
    let devices: Vec<_> = (0..10).map(|_| device()).collect();
    let (mut all, mut inputs) = (Vec::new(), Vec::new());
    for (at, (address, inside)) in devices.iter().enumerate() {
        let values: Vec<u16> = (0..100).map(|n| (100 * at) as u16 + n).collect();
        inside.put(Area::HoldingRegister, 200, &values);
        all.push(settings(&format!("plc{at}"), *address));
        inputs.extend((0..100).map(|n| input(at, Area::HoldingRegister, 200 + n, ValueType::U16)));
    }
    let mut field = field(&all, &inputs, &[]);
    let expected: Vec<f64> = (0..1000).map(f64::from).collect();
    assert_eq!(read_at_last(&mut field, 1000), expected);
    devices.iter().for_each(|(_, inside)| drop(inside.asked()));
    let mut values = vec![0.0; 1000];
    let mut took = Vec::new();
    for _ in 0..200 {
        let began = clock();
        field.read(&mut values, later()).unwrap();
        took.push(clock().since(began));
    }
    for (_, inside) in &devices {
        assert_eq!(inside.asked().len(), 200);
        assert_eq!(inside.connections.load(Ordering::SeqCst), 1);
    }
    took.sort_unstable();
    println!(
        "1000 registers of 10 devices: median {} us, 99 % {} us",
        took[100].as_nanos() / 1000,
        took[198].as_nanos() / 1000
    );
}
