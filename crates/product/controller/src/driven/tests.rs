//! Devices of drivers against a driver in a thread of this process, which says what each test wants. How long things take
//! decides nothing, except that a driver that hangs must not cost each call its deadline.

mod faults;
mod handover;
mod values;

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
