//! The client against servers that misbehave, on loopback. What a server does is scripted; how
//! long things take decides nothing except that a silent server runs a call into its deadline.

mod secure;

use super::*;
use bumpless_base::NodeId;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

pub(crate) fn clock() -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    let origin = *ORIGIN.get_or_init(std::time::Instant::now);
    Instant::from_nanos(origin.elapsed().as_nanos() as u64 + 1)
}

fn within(ms: u64) -> Instant {
    clock() + Duration::from_millis(ms)
}

const LONG: u64 = 5_000;
/// Longer than a busy machine keeps a thread from sending.
const SHORT: u64 = 200;

const STAMP: OutputStamp = OutputStamp {
    epoch: Epoch(5),
    writer: NodeId(1),
    cycle: 7,
};

/// A map of one input and the epoch.
fn device(address: SocketAddr) -> ModbusField<fn() -> Instant> {
    let settings = ModbusSettings {
        map: ModbusMap {
            first: 0,
            count: 4,
            inputs: vec![0],
            epoch: Some(2),
            cycle: None,
        },
        reconnect_max: Duration::from_millis(64),
        ..ModbusSettings::quadruple_tank(address)
    };
    ModbusField::new(settings, clock as fn() -> Instant).unwrap()
}

/// Waits until it is connected.
fn connect<T: TimeSource>(field: &mut ModbusField<T>) {
    let connected = field.connection.connect(within(LONG));
    field.runtime.block_on(connected).unwrap();
}

/// A server that runs `script` for each connection in turn.
fn server(
    connections: usize,
    script: impl Fn(usize, TcpStream) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        for index in 0..connections {
            script(index, listener.accept().unwrap().0);
        }
    };
    (address, std::thread::spawn(serve))
}

/// Reads one request; returns its header and function code. `None` when the client closes.
fn request(stream: &mut TcpStream) -> Option<[u8; 8]> {
    let mut head = [0; 8];
    stream.read_exact(&mut head).ok()?;
    let rest = usize::from(u16::from_be_bytes([head[4], head[5]])) - 2;
    stream.read_exact(&mut vec![0; rest]).ok()?;
    Some(head)
}

/// An answer to `head` with this function code and data.
fn answer(head: &[u8; 8], function: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = head[..4].to_vec();
    bytes.extend((data.len() as u16 + 2).to_be_bytes());
    bytes.extend([head[6], function]);
    bytes.extend(data);
    bytes
}

/// The answer to a read: the input and the epoch.
fn inputs(head: &[u8; 8], value: f32, epoch: u32) -> Vec<u8> {
    let mut data = vec![8];
    data.extend(value.to_be_bytes());
    data.extend(epoch.to_be_bytes());
    answer(head, 4, &data)
}

/// Serves reads with `value` and epoch 5 until the client closes.
fn serve_reads(mut stream: TcpStream, value: f32) {
    while let Some(head) = request(&mut stream) {
        if stream.write_all(&inputs(&head, value, 5)).is_err() {
            return;
        }
    }
}

fn until_closed(mut stream: TcpStream) {
    while request(&mut stream).is_some() {}
}

/// Reads again and again until it succeeds; the errors on the way.
fn read_at_last(field: &mut dyn FieldIo) -> (f64, Vec<FieldErrorKind>) {
    let (mut value, mut errors) = ([0.0], Vec::new());
    let give_up = within(LONG);
    loop {
        match field.read(&mut value, within(LONG)) {
            Ok(_) => return (value[0], errors),
            Err(error) if clock() < give_up => errors.push(error.kind),
            Err(error) => panic!("{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_server_that_never_answers_costs_the_deadline_and_the_connection() {
    let (address, serving) = server(2, |index, stream| match index {
        0 => until_closed(stream),
        _ => serve_reads(stream, 2.5),
    });
    let mut field = device(address);
    connect(&mut field);
    let (mut value, start) = ([-1.0], clock());
    let error = field
        .read(&mut value, start + Duration::from_millis(SHORT))
        .unwrap_err();
    assert_eq!((error.kind, value), (FieldErrorKind::Timeout, [-1.0]));
    assert!(clock().since(start) >= Duration::from_millis(SHORT - 2));
    assert_eq!(read_at_last(&mut field).0, 2.5);
    drop(field);
    serving.join().unwrap();
}

/// How the client closes a connection whatever it has sent on it: in order or not.
fn end_of(mut stream: TcpStream) -> io::Result<()> {
    while stream.read(&mut [0; 64])? > 0 {}
    Ok(())
}

#[test]
fn a_request_that_was_given_up_is_not_left_to_the_kernel_to_deliver() {
    let (seen, ended) = channel();
    let (address, serving) = server(1, move |_, stream| seen.send(end_of(stream)).unwrap());
    let mut field = device(address);
    connect(&mut field);
    let error = field.write(&[1.0], STAMP, within(SHORT)).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Timeout);
    drop(field);
    // After an orderly end the kernel would send what it has until that is acknowledged.
    let end = ended.recv().unwrap().map_err(|error| error.kind());
    assert_eq!(end, Err(io::ErrorKind::ConnectionReset));
    serving.join().unwrap();
}

#[test]
fn a_late_answer_is_never_taken_for_the_next_requests() {
    let (late, release): (Sender<()>, Receiver<()>) = channel();
    let (address, serving) = server(2, move |index, mut stream| {
        if index == 1 {
            return serve_reads(stream, 2.5);
        }
        let head = request(&mut stream).unwrap();
        release.recv().unwrap();
        let _ = stream.write_all(&inputs(&head, 666.0, 666));
    });
    let mut field = device(address);
    connect(&mut field);
    let error = field.read(&mut [0.0], within(SHORT)).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Timeout);
    late.send(()).unwrap();
    for _ in 0..20 {
        assert_eq!(read_at_last(&mut field).0, 2.5);
    }
    drop(field);
    serving.join().unwrap();
}

#[test]
fn an_answer_to_another_request_is_refused_with_the_connection() {
    let (address, serving) = server(2, |index, mut stream| {
        if index == 1 {
            return serve_reads(stream, 2.5);
        }
        let mut head = request(&mut stream).unwrap();
        head[1] ^= 1;
        stream.write_all(&inputs(&head, 666.0, 5)).unwrap();
        until_closed(stream);
    });
    let mut field = device(address);
    let error = field.read(&mut [0.0], within(LONG)).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Malformed);
    assert_eq!(read_at_last(&mut field).0, 2.5);
    drop(field);
    serving.join().unwrap();
}

#[test]
fn an_answer_of_the_wrong_length_is_refused() {
    let (address, serving) = server(1, |_, mut stream| {
        let head = request(&mut stream).unwrap();
        stream
            .write_all(&answer(&head, 4, &[2, 0x12, 0x34]))
            .unwrap();
        until_closed(stream);
    });
    let mut field = device(address);
    let error = field.read(&mut [0.0], within(LONG)).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Malformed);
    drop(field);
    serving.join().unwrap();
}

#[test]
fn noise_instead_of_an_answer_is_refused() {
    let (address, serving) = server(1, |_, mut stream| {
        request(&mut stream).unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        drop(stream);
    });
    let mut field = device(address);
    let error = field.read(&mut [0.0], within(LONG)).unwrap_err();
    let refused = [
        FieldErrorKind::Malformed,
        FieldErrorKind::NotConnected(io::ErrorKind::UnexpectedEof),
        FieldErrorKind::NotConnected(io::ErrorKind::ConnectionReset),
    ];
    assert!(refused.contains(&error.kind), "{error}");
    serving.join().unwrap();
}

#[test]
fn an_exception_is_reported_and_the_connection_kept() {
    let (address, serving) = server(1, |_, mut stream| {
        let head = request(&mut stream).unwrap();
        stream.write_all(&answer(&head, 0x84, &[4])).unwrap();
        serve_reads(stream, 2.5);
    });
    let mut field = device(address);
    let error = field.read(&mut [0.0], within(LONG)).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Exception(4));
    assert!(
        error.to_string().contains("server device failure"),
        "{error}"
    );
    let mut value = [0.0];
    field.read(&mut value, within(LONG)).unwrap();
    assert_eq!(value, [2.5]);
    drop(field);
    serving.join().unwrap();
}

#[test]
fn a_server_that_closes_in_the_middle_of_an_answer_is_not_connected() {
    let (address, serving) = server(2, |index, mut stream| {
        if index == 1 {
            return serve_reads(stream, 2.5);
        }
        let head = request(&mut stream).unwrap();
        stream.write_all(&inputs(&head, 666.0, 5)[..9]).unwrap();
    });
    let mut field = device(address);
    let error = field.read(&mut [0.0], within(LONG)).unwrap_err();
    assert!(
        matches!(error.kind, FieldErrorKind::NotConnected(_)),
        "{error}"
    );
    assert_eq!(read_at_last(&mut field).0, 2.5);
    drop(field);
    serving.join().unwrap();
}

#[test]
fn a_write_that_is_rejected_names_the_epoch_that_the_device_has_accepted() {
    for (accepted, expected) in [
        (9, FieldErrorKind::RejectedEpoch { seen: Epoch(9) }),
        (5, FieldErrorKind::Exception(3)),
    ] {
        let (address, serving) = server(1, move |_, mut stream| {
            let head = request(&mut stream).unwrap();
            stream.write_all(&answer(&head, 0x90, &[3])).unwrap();
            let head = request(&mut stream).unwrap();
            stream.write_all(&inputs(&head, 0.0, accepted)).unwrap();
            until_closed(stream);
        });
        let mut field = device(address);
        let error = field.write(&[1.0], STAMP, within(LONG)).unwrap_err();
        assert_eq!(error.kind, expected);
        drop(field);
        serving.join().unwrap();
    }
}

#[test]
fn a_write_acknowledged_for_another_block_is_refused() {
    let (address, serving) = server(1, |_, mut stream| {
        let head = request(&mut stream).unwrap();
        stream.write_all(&answer(&head, 16, &[0, 0, 0, 2])).unwrap();
        until_closed(stream);
    });
    let mut field = device(address);
    let error = field.write(&[1.0], STAMP, within(LONG)).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Malformed);
    drop(field);
    serving.join().unwrap();
}

#[test]
fn nothing_is_sent_after_the_deadline() {
    let (address, serving) = server(1, |_, mut stream| assert_eq!(request(&mut stream), None));
    let mut field = device(address);
    connect(&mut field);
    let error = field.write(&[1.0], STAMP, clock()).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Timeout);
    drop(field);
    serving.join().unwrap();
}

#[test]
fn an_absent_device_fails_at_once_between_attempts_and_is_found_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut field = device(address);
    let error = field.keep_warm(within(LONG)).unwrap_err();
    let refused = FieldErrorKind::NotConnected(io::ErrorKind::ConnectionRefused);
    assert_eq!(error.kind, refused);
    assert_eq!(field.keep_warm(within(LONG)).unwrap_err().kind, refused);
    let text = error.to_string();
    assert!(
        text.contains(&address.to_string()) && text.contains("check address"),
        "{text}"
    );
    let listener = TcpListener::bind(address).unwrap();
    let serving = std::thread::spawn(move || serve_reads(listener.accept().unwrap().0, 2.5));
    let (value, errors) = read_at_last(&mut field);
    assert_eq!(value, 2.5);
    assert!(errors.iter().all(|kind| *kind == refused), "{errors:?}");
    drop(field);
    serving.join().unwrap();
}

#[test]
fn a_register_map_that_does_not_fit_one_read_is_refused() {
    let map = ModbusMap::quadruple_tank();
    for broken in [
        ModbusMap {
            count: 0,
            ..map.clone()
        },
        ModbusMap {
            count: 126,
            ..map.clone()
        },
        ModbusMap {
            inputs: vec![15],
            ..map.clone()
        },
        ModbusMap {
            epoch: Some(u16::MAX),
            ..map.clone()
        },
    ] {
        let settings = ModbusSettings {
            map: broken,
            ..ModbusSettings::quadruple_tank(([127, 0, 0, 1], 1).into())
        };
        assert!(ModbusField::new(settings, clock).is_err());
    }
}

#[test]
fn more_outputs_than_one_write_carries_are_refused_before_sending() {
    let mut field = device(([127, 0, 0, 1], 1).into());
    let outputs = [0.0; OUTPUTS_MAX + 1];
    let error = field.write(&outputs, STAMP, within(LONG)).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::Exception(2));
}

#[test]
fn any_answer_is_refused_or_read_without_panic() {
    let mut random = bumpless_base::Random::new(7);
    let pdus: Vec<Vec<u8>> = (0..200)
        .map(|_| {
            let functions = [1, 2, 3, 4, 16, 17, 23, 43, 99, 0x84, 0xff];
            let mut pdu = vec![functions[random.below(11) as usize]];
            pdu.extend((0..random.below(20)).map(|_| random.next_u64() as u8));
            pdu
        })
        .collect();
    let (address, serving) = server(pdus.len(), move |index, mut stream| {
        let head = request(&mut stream).unwrap();
        let _ = stream.write_all(&answer(&head, pdus[index][0], &pdus[index][1..]));
    });
    // One field each, so that no wait between attempts makes the test slow.
    for _ in 0..200 {
        let _ = device(address).read(&mut [0.0], within(LONG));
    }
    serving.join().unwrap();
}
