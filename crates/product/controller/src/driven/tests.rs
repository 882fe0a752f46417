//! Devices of drivers against a driver in a thread of this process, which says what each test wants. How long things take
//! decides nothing, except that a driver that hangs must not cost each call its deadline.

use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bumpless_base::{Epoch, NodeId};
use bumpless_config::{Bus, DriverProtocol, ValueType};
use bumpless_field_driver::{Order, Value, now};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};

use super::*;
use crate::driver_link::DriverNumber;
use crate::{Devices, FieldError, FieldIo, FieldSample};
use bumpless_field_driver::Fault;

/// The clock of the messages.
fn clock() -> Instant {
    Instant::from_nanos(now())
}

/// Writes a message with this number.
type Put = fn(&mut Vec<u8>, u32);

/// What a driver answers to an order, byte by byte; nothing: it hangs.
type Answer = dyn Fn(u32, &Order) -> Vec<Vec<u8>> + Send + Sync;

/// What the driver's side has seen, and what becomes of it.
#[derive(Default)]
struct Inside {
    orders: Mutex<Vec<Order>>,
    given_up: Mutex<Vec<DriverFault>>,
    notes: Mutex<Vec<String>>,
    failures: Mutex<Vec<DriverFailures>>,
    heir_to: Mutex<Option<DriverNumber>>,
    next: Mutex<Option<OwnedFd>>,
    /// Looks at the place where notes are shown find somebody else there.
    note_is_taken: AtomicUsize,
}

impl Inside {
    fn kinds(&self) -> Vec<&'static str> {
        let orders = std::mem::take(&mut *self.orders.lock().unwrap());
        let kind = |order: &Order| match order {
            Order::Read { .. } => "read",
            Order::Write { .. } => "write",
            Order::Probe { .. } => "probe",
            _ => "other",
        };
        orders.iter().map(kind).collect()
    }

    /// Another process of the driver.
    fn begin(
        self: &Arc<Self>,
        answer: impl Fn(u32, &Order) -> Vec<Vec<u8>> + Send + Sync + 'static,
    ) {
        let kind = SocketType::SEQPACKET;
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        *self.next.lock().unwrap() = Some(ours);
        let inside = Arc::clone(self);
        let answer: Box<Answer> = Box::new(answer);
        thread::spawn(move || {
            let mut buffer = vec![0; message::MESSAGE_MAX];
            while let Ok((_, len @ 1..)) =
                rustix::net::recv(theirs.as_fd(), &mut buffer[..], RecvFlags::empty())
            {
                let (number, order) = Order::parse(&buffer[..len]).unwrap();
                let answers = answer(number, &order);
                inside.orders.lock().unwrap().push(order);
                for answer in answers {
                    let _ = rustix::net::send(theirs.as_fd(), &answer, SendFlags::NOSIGNAL);
                }
            }
        });
    }
}

struct Link(Arc<Inside>);

impl DriverLink for Link {
    fn take(&mut self) -> Option<OwnedFd> {
        self.0.next.lock().unwrap().take()
    }
    fn give_up(&mut self, fault: DriverFault) {
        self.0.given_up.lock().unwrap().push(fault);
    }
    fn note(&mut self, text: &str) -> bool {
        if self.0.note_is_taken.load(Ordering::SeqCst) > 0 {
            self.0.note_is_taken.fetch_sub(1, Ordering::SeqCst);
            return false;
        }
        self.0.notes.lock().unwrap().push(text.to_owned());
        true
    }
    fn failures(&mut self) -> Option<DriverFailures> {
        self.0.failures.lock().unwrap().pop()
    }
    fn number(&self) -> DriverNumber {
        DriverNumber(Arc::as_ptr(&self.0) as u64)
    }
    fn heir_to(&self) -> Option<DriverNumber> {
        *self.0.heir_to.lock().unwrap()
    }
    fn end(&mut self) {}
}

fn device(required: bool, max_age: Option<Duration>) -> FieldDevice {
    FieldDevice {
        name: "furnace".into(),
        address: "192.0.2.1:4840".parse().unwrap(),
        required,
        bus: Bus::Driver(FieldDriver {
            program: "driver".into(),
            arguments: Vec::new(),
            protocol: DriverProtocol::Own,
            max_age,
        }),
    }
}

fn tag(value: ValueType, scale: f64) -> Tag {
    Tag {
        name: "n".into(),
        value,
        scale,
        offset: 0.0,
    }
}

fn input(from: InputFrom) -> Input {
    Input {
        name: String::new(),
        device: 0,
        from,
    }
}

fn read_in(poll: u32) -> Input {
    input(InputFrom::Driver(tag(ValueType::F64, 0.5), poll))
}

fn output() -> Output {
    Output {
        name: String::new(),
        device: 0,
        to: OutputTo::Driver(tag(ValueType::I16, 0.5)),
    }
}

type Field = Devices<fn() -> Instant>;

fn field(device: FieldDevice, inputs: &[Input], outputs: &[Output]) -> (Field, Arc<Inside>) {
    let inside = Arc::new(Inside::default());
    let link = Arc::clone(&inside);
    let links = &mut |_| Ok(Box::new(Link(Arc::clone(&link))) as Box<dyn DriverLink>);
    let (values, now) = ((inputs, outputs), clock as fn() -> Instant);
    let field = Devices::new(&[device], values, true, None, links, now);
    (field.unwrap(), inside)
}

const STAMP: OutputStamp = OutputStamp {
    epoch: Epoch(5),
    writer: NodeId(1),
    cycle: 7,
};
/// Longer than a busy machine keeps a thread from answering.
const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(30);

fn later() -> Instant {
    clock() + LONG
}

fn good(value: f64) -> Value {
    Value {
        quality: Quality::Good,
        status: 0,
        taken_at: now(),
        value,
    }
}

/// A driver whose values are all `value`.
fn sound(value: Value) -> impl Fn(u32, &Order) -> Vec<Vec<u8>> + Send + Sync {
    move |number, order| {
        let mut buffer = Vec::new();
        match order {
            Order::Read { due, .. } => {
                let taken_at = value.taken_at;
                let value = Value { taken_at, ..value };
                let values = vec![value; due.iter().filter(|due| **due).count()];
                message::put_values(&mut buffer, number, Outcome::Done, &values);
            }
            Order::Write { .. } => message::put_written(&mut buffer, number, Outcome::Done),
            _ => message::put_state(&mut buffer, number, Outcome::Done),
        }
        vec![buffer]
    }
}

fn kind_of(result: Result<impl std::fmt::Debug, FieldError>) -> FieldErrorKind {
    result.unwrap_err().kind
}

#[test]
fn values_are_scaled_and_written_with_stamp_and_deadline() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    inside.begin(sound(good(8.0)));
    let mut values = [0.0];
    assert_eq!(field.read(&mut values, later()), Ok(FieldSample::default()));
    assert_eq!(values, [4.0]);
    let until = later();
    field.write(&[3.2], STAMP, until).unwrap();
    let written = Order::Write {
        until: until.as_nanos(),
        epoch: 5,
        cycle: 7,
        values: vec![6.0],
    };
    assert_eq!(inside.orders.lock().unwrap()[1], written);
}

#[test]
fn a_backup_has_its_driver_write_nothing_and_read_no_inputs() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    inside.begin(sound(good(8.0)));
    for _ in 0..5 {
        field.keep_warm(later()).unwrap();
    }
    assert_eq!(inside.kinds(), ["probe"; 5]);
}

#[test]
fn no_order_goes_to_a_driver_after_its_time() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    inside.begin(sound(good(8.0)));
    field.read(&mut [0.0], later()).unwrap();
    let late = field.write(&[1.0], STAMP, clock());
    assert_eq!(kind_of(late), FieldErrorKind::Timeout);
    field.read(&mut [0.0], later()).unwrap();
    assert_eq!(inside.kinds(), ["read", "read"]);
}

#[test]
fn a_bad_value_fails_the_device_unless_the_program_asks_for_its_quality() {
    let bad = Value {
        quality: Quality::Bad,
        status: 0x8031_0000,
        ..good(9.0)
    };
    let failing = field(device(true, None), &[read_in(1)], &[]);
    let (mut field, inside) = failing;
    inside.begin(sound(bad));
    let mut values = [7.0];
    let kind = kind_of(field.read(&mut values, later()));
    let status = 0x8031_0000;
    assert_eq!(kind, FieldErrorKind::BadValue { input: 0, status });
    assert_eq!(values, [7.0]);

    let inputs = [
        read_in(1),
        input(InputFrom::Quality(0)),
        input(InputFrom::Age(0)),
        input(InputFrom::Answers),
    ];
    let (mut field, inside) = super::tests::field(device(true, None), &inputs, &[]);
    inside.begin(sound(good(9.0)));
    let mut values = [0.0; 4];
    field.read(&mut values, later()).unwrap();
    assert_eq!((values[0], values[1], values[3]), (4.5, 2.0, 1.0));
    assert!(values[2] < 60_000.0, "{values:?}");
    let doubted = Value {
        quality: Quality::Uncertain,
        ..good(10.0)
    };
    inside.begin(sound(doubted));
    field.read(&mut values, later()).unwrap();
    assert_eq!((values[0], values[1], values[3]), (5.0, 1.0, 1.0));
    inside.begin(sound(bad));
    field.read(&mut values, later()).unwrap();
    assert_eq!(
        (values[0], values[1], values[3]),
        (5.0, 0.0, 1.0),
        "a bad value leaves what was there"
    );
}

#[test]
fn what_is_too_old_is_bad_and_says_how_old_it_is() {
    let inputs = [
        read_in(1),
        input(InputFrom::Quality(0)),
        input(InputFrom::Age(0)),
    ];
    let limit = Duration::from_secs(60);
    let (mut field, inside) = field(device(true, Some(limit)), &inputs, &[]);
    let old = Value {
        taken_at: now() - Duration::from_secs(90).as_nanos(),
        ..good(2.0)
    };
    inside.begin(sound(old));
    let mut values = [0.0; 3];
    field.read(&mut values, later()).unwrap();
    assert_eq!(values[1], 0.0);
    assert!((90_000.0..1e9).contains(&values[2]), "{values:?}");
}

#[test]
fn a_polling_group_is_read_in_its_periods_and_anew_from_another_process() {
    let (mut field, inside) = field(device(true, None), &[read_in(1), read_in(4)], &[]);
    inside.begin(sound(good(2.0)));
    let mut due = Vec::new();
    for _ in 0..5 {
        field.read(&mut [0.0; 2], later()).unwrap();
    }
    inside.begin(sound(good(2.0)));
    field.read(&mut [0.0; 2], later()).unwrap();
    for order in inside.orders.lock().unwrap().iter() {
        if let Order::Read { due: it, .. } = order {
            due.push(it[1]);
        }
    }
    assert_eq!(due, [true, false, false, false, true, true]);
}

#[test]
fn a_driver_that_hangs_costs_one_call_and_is_given_up() {
    let inputs = [read_in(1), input(InputFrom::Answers)];
    let (mut field, inside) = field(device(false, None), &inputs, &[output()]);
    inside.begin(sound(good(2.0)));
    let mut values = [0.0; 2];
    field.read(&mut values, later()).unwrap();
    assert_eq!(values, [1.0, 1.0]);
    inside.begin(|_, _| Vec::new());
    // The first call waits, and no later one.
    let began = clock();
    field.read(&mut values, clock() + SHORT).unwrap();
    assert_eq!((values, field.silent()), ([1.0, 0.0], 1));
    let waited = clock().since(began);
    assert!(waited >= SHORT, "{waited:?}");
    let began = clock();
    let mut calls = 0;
    while inside.given_up.lock().unwrap().is_empty() {
        field.read(&mut values, clock() + LONG).unwrap();
        field.write(&[1.0], STAMP, clock() + LONG).unwrap();
        assert_eq!(values[1], 0.0);
        calls += 1;
        assert!(clock().since(began) < LONG, "it is never given up");
        thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(calls > 3, "{calls}");
    assert!(matches!(
        inside.given_up.lock().unwrap()[..],
        [DriverFault::Hung(_)]
    ));
    // Of all that it was asked, it has got one order.
    assert_eq!(inside.kinds(), ["read", "read"]);
    inside.begin(sound(good(6.0)));
    field.read(&mut values, later()).unwrap();
    assert_eq!(values, [3.0, 1.0]);
}

#[test]
fn an_answer_that_comes_late_is_not_taken_for_the_next_orders() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[]);
    let release = Arc::new(AtomicUsize::new(0));
    let held = Arc::clone(&release);
    inside.begin(move |number, order| {
        while held.load(Ordering::SeqCst) == 0 {
            thread::sleep(std::time::Duration::from_millis(1));
        }
        sound(good(f64::from(number)))(number, order)
    });
    let mut values = [0.0];
    let kind = kind_of(field.read(&mut values, clock() + SHORT));
    assert_eq!(kind, FieldErrorKind::Timeout);
    assert_eq!(
        kind_of(field.read(&mut values, later())),
        FieldErrorKind::DriverBusy
    );
    release.store(1, Ordering::SeqCst);
    let give_up = later();
    while field.read(&mut values, later()).is_err() {
        assert!(clock() < give_up);
        thread::sleep(std::time::Duration::from_millis(1));
    }
    // The second order's, which is the first that was answered in time.
    assert_eq!(values, [1.0]);
    assert!(inside.given_up.lock().unwrap().is_empty());
}

#[test]
fn a_driver_that_says_what_it_was_not_asked_is_given_up_and_delays_nobody() {
    let say = |put: Put| {
        move |number, _: &Order| {
            let mut buffer = Vec::new();
            put(&mut buffer, number);
            vec![buffer]
        }
    };
    let unasked = DriverFault::Unasked;
    let none = DriverFault::Said(Fault::Malformed);
    let cases: [(Put, DriverFault); 9] = [
        (|b, n| message::put_written(b, n, Outcome::Done), unasked),
        (|b, n| message::put_state(b, n, Outcome::Done), unasked),
        (
            |b, n| message::put_values(b, n + 1, Outcome::Done, &[good(1.0)]),
            unasked,
        ),
        (
            |b, n| message::put_values(b, n, Outcome::Done, &[]),
            unasked,
        ),
        (
            |b, n| message::put_values(b, n, Outcome::Done, &[good(1.0); 2]),
            unasked,
        ),
        (|b, n| message::put_ready(b, n, "again"), unasked),
        (|b, n| message::put_probe(b, n, 1), none),
        (|b, _| b.extend([1, 2, 3]), none),
        (
            |b, _| b.extend([9; 40]),
            DriverFault::Said(Fault::Version(9)),
        ),
    ];
    for (put, fault) in cases {
        let (mut field, inside) = field(device(true, None), &[read_in(1)], &[]);
        inside.begin(say(put));
        let mut values = [7.0];
        let began = clock();
        let kind = kind_of(field.read(&mut values, later()));
        assert_eq!(kind, FieldErrorKind::DriverGone, "{fault:?}");
        assert!(clock().since(began) < LONG / 2);
        assert_eq!(inside.given_up.lock().unwrap()[..], [fault]);
        assert_eq!(
            kind_of(field.read(&mut values, later())),
            FieldErrorKind::DriverGone
        );
        assert_eq!(values, [7.0]);
    }
}

#[test]
fn a_driver_that_ends_is_gone_until_another_one_is_ready() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    let mut values = [0.0];
    assert_eq!(
        kind_of(field.read(&mut values, later())),
        FieldErrorKind::DriverGone
    );
    inside.begin(|_, _| std::panic::resume_unwind(Box::new("the driver ends")));
    assert_eq!(
        kind_of(field.read(&mut values, later())),
        FieldErrorKind::DriverGone
    );
    assert_eq!(
        kind_of(field.write(&[1.0], STAMP, later())),
        FieldErrorKind::DriverGone
    );
    inside.begin(sound(good(2.0)));
    field.read(&mut values, later()).unwrap();
    assert_eq!(inside.given_up.lock().unwrap()[..], [DriverFault::LetGo]);
}

#[test]
fn what_a_driver_tells_people_is_shown_and_too_much_of_it_is_not() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[]);
    let told = |count: usize| {
        move |number, order: &Order| {
            let mut all = vec![Vec::new(); count];
            all.iter_mut()
                .for_each(|it| message::put_note(it, "certificate refused"));
            all.extend(sound(good(2.0))(number, order));
            all
        }
    };
    inside.begin(told(1));
    inside.note_is_taken.store(1, Ordering::SeqCst);
    field.read(&mut [0.0], later()).unwrap();
    assert!(
        inside.notes.lock().unwrap().is_empty(),
        "nobody waited for the place"
    );
    field.read(&mut [0.0], later()).unwrap();
    assert_eq!(inside.notes.lock().unwrap()[0], "certificate refused");
    inside.begin(told(100));
    assert_eq!(
        kind_of(field.read(&mut [0.0], later())),
        FieldErrorKind::DriverGone
    );
    assert_eq!(inside.given_up.lock().unwrap()[..], [DriverFault::Unasked]);
}

#[test]
fn orders_that_were_not_carried_out_say_why() {
    for (outcome, kind) in [
        (Outcome::Late, FieldErrorKind::Late),
        (Outcome::NoAnswer, FieldErrorKind::Timeout),
        (Outcome::Refused(3), FieldErrorKind::Status(3)),
        (
            Outcome::NotConnected,
            FieldErrorKind::NotConnected(std::io::ErrorKind::NotConnected),
        ),
    ] {
        let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
        inside.begin(move |number, order| {
            let mut buffer = Vec::new();
            match order {
                Order::Read { .. } => message::put_values(&mut buffer, number, outcome, &[]),
                Order::Write { .. } => message::put_written(&mut buffer, number, outcome),
                _ => message::put_state(&mut buffer, number, outcome),
            }
            vec![buffer]
        });
        assert_eq!(kind_of(field.read(&mut [0.0], later())), kind);
        assert_eq!(kind_of(field.write(&[1.0], STAMP, later())), kind);
        assert_eq!(kind_of(field.keep_warm(later())), kind);
    }
}

#[test]
fn a_driver_that_sends_nothing_as_a_message_is_told_to_have_let_go() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[]);
    inside.begin(|_, _| vec![Vec::new()]);
    let kind = kind_of(field.read(&mut [0.0], later()));
    assert_eq!(kind, FieldErrorKind::DriverGone);
    assert_eq!(inside.given_up.lock().unwrap()[..], [DriverFault::LetGo]);
}

#[test]
fn a_write_that_is_done_does_not_hide_that_what_is_read_is_bad() {
    let (mut field, inside) = field(device(false, None), &[read_in(1)], &[output()]);
    let bad = Value {
        quality: Quality::Bad,
        ..good(9.0)
    };
    inside.begin(sound(bad));
    field.read(&mut [0.0], later()).unwrap();
    assert_eq!(field.silent(), 1);
    field.write(&[1.0], STAMP, later()).unwrap();
    assert_eq!(field.silent(), 1);
    inside.begin(sound(good(9.0)));
    field.read(&mut [0.0], later()).unwrap();
    assert_eq!(field.silent(), 0);
}

#[test]
fn other_settings_go_on_with_the_driver_and_read_all_anew() {
    let (mut old, inside) = field(device(true, None), &[read_in(100)], &[output()]);
    inside.begin(sound(good(8.0)));
    let mut values = [0.0];
    old.read(&mut values, later()).unwrap();
    old.write(&[1.0], STAMP, later()).unwrap();
    let (mut next, heir) = field(device(true, None), &[read_in(100)], &[output()]);
    *heir.heir_to.lock().unwrap() = Some(DriverNumber(Arc::as_ptr(&inside) as u64));
    inside.kinds();
    next.take_over(&mut old);
    drop(old);
    for _ in 0..2 {
        next.read(&mut values, later()).unwrap();
        next.write(&[2.0], STAMP, later()).unwrap();
    }
    // The second time, nothing is due.
    assert_eq!(inside.kinds(), ["read", "write", "write"]);
    assert_eq!(inside.given_up.lock().unwrap()[..], []);
}

#[test]
fn what_a_driver_owed_before_a_change_counts_for_nothing_after_it() {
    let (mut old, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    let answers = Arc::new(Mutex::new(()));
    let held = answers.lock().unwrap();
    let waits = Arc::clone(&answers);
    inside.begin(move |number, order| {
        let _answers = waits.lock().unwrap();
        sound(good(8.0))(number, order)
    });
    let late = old.write(&[1.0], STAMP, clock() + SHORT);
    assert_eq!(kind_of(late), FieldErrorKind::Timeout);
    let (mut next, heir) = field(device(true, None), &[read_in(1)], &[output()]);
    *heir.heir_to.lock().unwrap() = Some(DriverNumber(Arc::as_ptr(&inside) as u64));
    next.take_over(&mut old);
    drop(old);
    assert_eq!(
        kind_of(next.read(&mut [0.0], later())),
        FieldErrorKind::DriverBusy
    );
    drop(held);
    while next.read(&mut [0.0], later()).is_err() {
        assert_eq!(inside.given_up.lock().unwrap()[..], []);
    }
}
