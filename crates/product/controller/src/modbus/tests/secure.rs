//! Modbus/TCP Security between the client and the simulated plant, on loopback: who is refused, by whom, and what is said of it.

mod works;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_pki::rustls::{self, pki_types::UnixTime};
use bumpless_pki::{Identity, Role, Wanted};

use super::super::*;
use super::clock;
use crate::plant::{Plant, PlantOptions};
use works::{Ahead, DAY, STAMP, Works, client_as, later, path, refusal, refusal_at_last, said};

#[test]
fn a_client_reads_and_writes_over_tls_whether_the_device_is_called_by_address_or_by_name() {
    let works = Works::new();
    works.issue("left.tank", Some("operator"), 20);
    works.issue("plant.field", None, 20);
    let plant = works.plant("plant.field", (&[], &["operator"]));
    for name in [None, Some("plant.field"), Some("plant.field.site")] {
        let (mut field, notes) = works.client("left.tank", plant.address, name);
        let mut inputs = [0.0; 3];
        field.read(&mut inputs, later()).unwrap();
        assert!(inputs[0] > 12.0, "{inputs:?}");
        field.write(&[3.0, 3.0], STAMP, later()).unwrap();
        let sample = field.keep_warm(later()).unwrap();
        assert_eq!(sample.epoch_seen, Some(Epoch(5)));
        assert!(notes.try_recv().is_err());
    }
    assert!(plant.refused.try_recv().is_err());
}

#[test]
fn a_role_that_may_only_read_reads_and_its_writes_are_refused_in_words_at_both_ends() {
    let works = Works::new();
    works.issue("left.tank", Some("viewer"), 20);
    works
        .issue("right.tank", None, 20)
        .issue("plant.field", None, 20);
    let plant = works.plant("plant.field", (&["viewer"], &["operator"]));
    let (mut field, notes) = works.client("left.tank", plant.address, None);
    field.read(&mut [0.0; 3], later()).unwrap();
    let error = field.write(&[3.0, 3.0], STAMP, later()).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Exception(1));
    let note = notes.recv().unwrap().refused.unwrap();
    let file = works.paths("left.tank").certificate;
    said(&note, &[path(&file), "role viewer", "--role ROLE"]);
    said(
        &plant.refused.recv().unwrap(),
        &["role viewer", "may not write", "--may-write"],
    );
    // Nothing was taken over.
    assert_eq!(field.keep_warm(later()).unwrap().epoch_seen, Some(Epoch(0)));

    let (mut field, notes) = works.client("right.tank", plant.address, None);
    let (kind, note) = refusal(&mut field, &notes);
    assert_eq!(kind, FieldErrorKind::Exception(1));
    said(
        &note,
        &["no role", path(&works.paths("right.tank").certificate)],
    );
    said(&plant.refused.recv().unwrap(), &["no role", "may not read"]);
}

#[test]
fn a_device_that_is_not_believed_is_refused_with_file_reason_and_remedy() {
    let works = Works::new();
    works
        .issue("left.tank", None, 20)
        .issue("plant.field", None, 2);
    let plant = works.plant("plant.field", (&[], &[]));

    let (mut field, notes) = works.client("left.tank", plant.address, Some("pump.field"));
    let (kind, note) = refusal(&mut field, &notes);
    assert_eq!(kind, FieldErrorKind::Refused);
    let authorities = works.paths("left.tank").authorities;
    said(
        &note,
        &[
            path(&authorities),
            "plant.field.site",
            "pump.field.site",
            "server_name",
        ],
    );

    let ahead = Arc::new(Ahead(3 * DAY));
    let identity = Identity::load_as_named(&works.paths("left.tank"), ahead).unwrap();
    let (mut field, notes) = client_as((works.paths("left.tank"), identity), plant.address, None);
    said(
        &refusal(&mut field, &notes).1,
        &["expired", path(&authorities), "pki issue NAME.field"],
    );

    let other = Works::new();
    other.issue("left.tank", None, 20);
    let (mut field, notes) = other.client("left.tank", plant.address, None);
    let note = refusal(&mut field, &notes).1;
    let authorities = other.paths("left.tank").authorities;
    said(&note, &["none of the authorities", path(&authorities)]);
}

#[test]
fn a_client_that_the_device_does_not_believe_learns_why_and_so_does_the_device() {
    let works = Works::new();
    works
        .issue("left.tank", None, 2)
        .issue("right.tank", None, 20)
        .issue("plant.field", None, 20);
    let file = works.paths("left.tank").certificate;

    // The plant is of another authority; the client believes that one besides.
    let other = Works::new();
    other.issue("plant.field", None, 20);
    let plant = other.plant("plant.field", (&[], &[]));
    let both = works.paths("left.tank").authorities;
    let mut all = std::fs::read(&both).unwrap();
    all.extend(std::fs::read(other.paths("plant.field").authorities).unwrap());
    std::fs::write(&both, all).unwrap();
    let (mut field, notes) = works.client("left.tank", plant.address, None);
    let (kind, note) = refusal(&mut field, &notes);
    assert_eq!(kind, FieldErrorKind::Refused);
    said(
        &note,
        &[
            path(&file),
            "none of the partner's authorities",
            "give the device",
        ],
    );
    let told = plant.refused.recv().unwrap();
    said(
        &told,
        &[
            "none of the authorities",
            path(&other.paths("plant.field").authorities),
        ],
    );

    // By the plant's clock it has expired.
    let ahead = Arc::new(Ahead(3 * DAY));
    let late = Identity::load_as_named(&works.paths("plant.field"), ahead).unwrap();
    let plant = works.plant_as("plant.field", late, (&[], &[]));
    let (mut field, notes) = works.client("left.tank", plant.address, None);
    said(&refusal(&mut field, &notes).1, &[path(&file), "expired"]);
    said(&plant.refused.recv().unwrap(), &["expired", "pki issue"]);
}

#[test]
fn who_is_revoked_is_refused_and_loses_a_connection_that_is_up() {
    let works = Works::new();
    works
        .issue("left.tank", None, 20)
        .issue("right.tank", None, 20)
        .issue("plant.field", None, 20);
    let plant = works.plant("plant.field", (&[], &[]));
    let (mut left, _) = works.client("left.tank", plant.address, None);
    let (mut right, notes) = works.client("right.tank", plant.address, None);
    left.read(&mut [0.0; 3], later()).unwrap();
    right.read(&mut [0.0; 3], later()).unwrap();

    let list = works.folder.path().join("pki/revoked.pem");
    works
        .authority
        .revoke("right.tank", UnixTime::now())
        .unwrap();
    std::fs::copy(&list, works.paths("plant.field").revoked.unwrap()).unwrap();
    let (_, note) = refusal_at_last(&mut right, &notes);
    said(
        &note,
        &["revoked", path(&works.paths("right.tank").certificate)],
    );
    let told = plant.refused.recv().unwrap();
    said(
        &told,
        &[
            "revoked",
            path(&works.paths("plant.field").revoked.unwrap()),
        ],
    );
    left.read(&mut [0.0; 3], later()).unwrap();

    // The device, at a node.
    let (mut left, notes) = works.client("left.tank", plant.address, None);
    left.read(&mut [0.0; 3], later()).unwrap();
    works
        .authority
        .revoke("plant.field", UnixTime::now())
        .unwrap();
    let own = works.paths("left.tank").revoked.unwrap();
    std::fs::copy(&list, &own).unwrap();
    let (_, note) = refusal_at_last(&mut left, &notes);
    said(&note, &["revoked", path(&own)]);
}

#[test]
fn a_renewed_certificate_counts_without_a_restart() {
    let works = Works::new();
    works
        .issue("left.tank", None, 20)
        .issue("plant.field", None, 20);
    let plant = works.plant("plant.field", (&[], &["operator"]));
    let (mut field, notes) = works.client("left.tank", plant.address, None);
    said(&refusal(&mut field, &notes).1, &["no role"]);
    works.issue("new.tank", None, 20);
    let own = works.folder.path().join("left.tank");
    let role = Role::new("operator").unwrap();
    let name = works.authority.name("left.tank").unwrap();
    let wanted = Wanted {
        name: &name,
        role: Some(&role),
        addresses: &[],
    };
    let renewed = works.folder.path().join("renewed");
    works
        .authority
        .issue(wanted, 20 * DAY, UnixTime::now(), &renewed)
        .unwrap();
    for file in ["certificate.pem", "key.pem"] {
        std::fs::rename(renewed.join(file), own.join(file)).unwrap();
    }
    let give_up = later();
    loop {
        match field
            .read(&mut [0.0; 3], later())
            .map_err(|error| error.kind)
        {
            Ok(_) => break,
            // A connection shows what was there when it was made.
            Err(FieldErrorKind::Exception(1)) => {
                field.connection.distrust();
            }
            Err(_) => {}
        }
        assert!(clock() < give_up, "the new certificate does not count");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let over = notes.iter().find(|note| note.refused.is_none());
    assert!(over.is_some());
}

#[test]
fn an_open_client_at_a_secure_device_and_the_other_way_round_learn_what_is_wrong() {
    let works = Works::new();
    works
        .issue("left.tank", None, 20)
        .issue("plant.field", None, 20);
    let secure = works.plant("plant.field", (&[], &[]));
    let mut open = ModbusField::new(ModbusSettings::quadruple_tank(secure.address), clock).unwrap();
    let error = open.read(&mut [0.0; 3], later()).unwrap_err();
    said(&error.to_string(), &["TLS"]);
    said(
        &secure.refused.recv().unwrap(),
        &["no TLS", "security = \"tls\""],
    );

    let stop = Arc::new(AtomicBool::new(false));
    let plant = Plant::bind(PlantOptions::at(([127, 0, 0, 1], 0).into())).unwrap();
    let (address, stopped) = (plant.address(), stop.clone());
    let thread = std::thread::spawn(move || plant.run(clock, &stopped).unwrap());
    let (mut field, notes) = works.client("left.tank", address, None);
    let (kind, note) = refusal(&mut field, &notes);
    assert_eq!(kind, FieldErrorKind::Refused);
    said(&note, &["802", "security = \"open\""]);
    stop.store(true, Ordering::Release);
    thread.join().unwrap();
}

#[test]
fn garbage_in_place_of_a_record_ends_a_handshake_and_a_connection_that_is_up() {
    let works = Works::new();
    works
        .issue("left.tank", None, 20)
        .issue("plant.field", None, 20);
    // Garbage in place of the handshake.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let liar = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[0x47; 4096]).unwrap();
        let _ = stream.read(&mut [0; 1024]);
        listener
    });
    let (mut field, notes) = works.client("left.tank", address, None);
    let (kind, note) = refusal(&mut field, &notes);
    assert_eq!(kind, FieldErrorKind::Refused);
    said(&note, &["no TLS"]);
    drop((field, liar.join().unwrap()));

    // A record in the middle that nobody sealed: what is between client and plant adds it.
    let plant = works.plant("plant.field", (&[], &[]));
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, to) = (between.local_addr().unwrap(), plant.address);
    let add = Arc::new(AtomicBool::new(false));
    let adding = add.clone();
    std::thread::spawn(move || {
        for client in between.incoming() {
            relay(client.unwrap(), TcpStream::connect(to).unwrap(), &adding);
        }
    });
    let (mut field, notes) = works.client("left.tank", address, None);
    field.read(&mut [0.0; 3], later()).unwrap();
    add.store(true, Ordering::Release);
    let error = field.read(&mut [0.0; 3], later()).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Refused, "{error}");
    said(&notes.recv().unwrap().refused.unwrap(), &["TLS"]);
    // The next connection is another one.
    let give_up = later();
    while field.read(&mut [0.0; 3], later()).is_err() {
        assert!(clock() < give_up);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Carries bytes both ways; once `add` is set, a forged record comes before the next answer, and `add` is unset.
fn relay(client: TcpStream, server: TcpStream, add: &Arc<AtomicBool>) {
    let (mut from_client, mut to_server) =
        (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    let (mut to_client, mut from_server, add) = (client, server, add.clone());
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = from_server.read(&mut chunk) {
            if add.swap(false, Ordering::AcqRel) {
                let forged = [[0x17, 3, 3, 0, 32].as_slice(), &[0x5a; 32]].concat();
                let _ = to_client.write_all(&forged);
            }
            if to_client.write_all(&chunk[..read]).is_err() {
                return;
            }
        }
    });
}

#[test]
fn a_device_that_is_silent_in_the_handshake_delays_one_call_and_no_other_device() {
    use bumpless_config::{Area, Bus, DeviceSecurity, FieldDevice, Input, InputFrom};
    use bumpless_config::{ModbusDevice, Order, Point, ValueType};
    let works = Works::new();
    works
        .issue("left.tank", None, 20)
        .issue("plant.field", None, 20);
    let plant = works.plant("plant.field", (&[], &[]));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_address = silent.local_addr().unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let first_ended = ended.clone();
    std::thread::spawn(move || {
        let (mut first, _) = silent.accept().unwrap();
        while matches!(first.read(&mut [0; 1024]), Ok(1..)) {}
        first_ended.store(true, Ordering::Release);
    });
    let device = |address, required| FieldDevice {
        name: "one".into(),
        address,
        required,
        bus: Bus::Modbus(ModbusDevice {
            unit: 255,
            security: Some(DeviceSecurity { server_name: None }),
            epoch_register: None,
            cycle_register: None,
        }),
    };
    let input = |device| Input {
        name: String::new(),
        device,
        from: InputFrom::Registers(
            Point {
                area: Area::InputRegister,
                register: 0,
                value: ValueType::F32,
                byte_order: Order::Big,
                word_order: Order::Big,
                scale: 1.0,
                offset: 0.0,
            },
            1,
        ),
    };
    let devices = [device(silent_address, false), device(plant.address, true)];
    let paths = works.paths("left.tank");
    let dialer = SecureDialer::start(paths, works.identity("left.tank"), |_| ()).unwrap();
    let inputs = [input(0), input(1)];
    let clock = clock as fn() -> Instant;
    let values = (&inputs[..], &[][..]);
    let links = &mut |_| unreachable!("no driver");
    let field = crate::Devices::new(&devices, values, true, Some(&dialer), links, clock);
    let mut field = field.unwrap();
    // That call waits for both.
    let mut values = [0.0; 2];
    let _ = field.read(&mut values, clock() + Duration::from_millis(300));
    // The following do not: they are over while the silent device is still being waited for.
    for _ in 0..5 {
        let _ = field.read(&mut values, later());
    }
    assert!(
        !ended.load(Ordering::Acquire),
        "a call waited for the silent device"
    );
    let give_up = later();
    while field.read(&mut values, later()).is_err() {
        assert!(clock() < give_up);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(values[1] > 12.0, "{values:?}");
    assert_eq!(field.silent(), 1);
}

#[test]
fn a_device_that_lets_in_and_never_answers_has_not_come_up() {
    let works = Works::new();
    works
        .issue("left.tank", None, 20)
        .issue("plant.field", None, 20);
    let config = works.identity("plant.field").field_server_config().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let let_in = Arc::new(AtomicBool::new(false));
    let seen = let_in.clone();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut session = rustls::ServerConnection::new(config).unwrap();
        while session.is_handshaking() {
            session.complete_io(&mut stream).unwrap();
        }
        seen.store(true, Ordering::Release);
        while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {}
    });
    let (mut field, _notes) = works.client("left.tank", address, None);
    let give_up = later();
    let mut reads_after = 0;
    // With TLS 1.3 the client's half is over before the device has judged its certificate (RFC 8446, 4.4.4).
    while reads_after < 10 {
        assert!(clock() < give_up);
        reads_after += u32::from(let_in.load(Ordering::Acquire));
        let error = field.read(&mut [0.0; 3], clock() + Duration::from_millis(20));
        let kind = error.unwrap_err().kind;
        assert!(matches!(kind, FieldErrorKind::NotConnected(_)), "{kind:?}");
    }
}

#[test]
fn strangers_take_as_many_places_of_a_device_as_there_are_and_give_them_back() {
    let works = Works::new();
    works
        .issue("left.tank", None, 20)
        .issue("plant.field", None, 20);
    let plant = works.plant("plant.field", (&[], &[]));
    let knock = || TcpStream::connect(plant.address).unwrap();
    // Somebody who waits for a word is not told that he may not; who is turned away hears the end at once.
    let waits = |mut stranger: &TcpStream| {
        stranger.set_nonblocking(true).unwrap();
        matches!(stranger.read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let strangers: Vec<_> = (0..40).map(|_| knock()).collect();
    let give_up = clock() + Duration::from_secs(2);
    let waiting = || strangers.iter().filter(|it| waits(it)).count();
    while waiting() > 32 {
        assert!(clock() < give_up, "{} wait", waiting());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(waiting(), 32);
    drop(strangers);
    let (mut field, _notes) = works.client("left.tank", plant.address, None);
    let give_up = later();
    while field.read(&mut [0.0; 3], later()).is_err() {
        assert!(clock() < give_up, "places are not given back");
    }
}
