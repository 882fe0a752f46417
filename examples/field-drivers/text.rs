//! A field driver in Rust: for devices that take lines of text over TCP.
//!
//! `get NAME` is answered with a number, `set NAME NUMBER` with `ok`. What the configuration calls `point` is the name.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bumpless_field_driver::{Driver, Order, Outcome, Point, Quality, Value, now};
use rustix::net::sockopt;

/// How long a connection may take to come about, and the wait before another attempt.
const CONNECT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(500);
/// No answer is longer, bytes.
const LINE_MAX: usize = 256;

fn main() -> io::Result<()> {
    let (mut driver, setup) = Driver::attach()?;
    let Ok(address) = setup.address.parse::<SocketAddr>() else {
        return driver.refuse("the address is none; give an IP address and a port");
    };
    driver.ready(concat!("text-driver ", env!("CARGO_PKG_VERSION")))?;
    let mut device = Device::at(address);
    while let Some(order) = driver.order()? {
        let answers = driver.answers();
        match order {
            Order::Read { until, due } => {
                let due = setup.inputs.iter().zip(due).filter(|(_, due)| *due);
                let values: Result<Vec<_>, _> =
                    due.map(|(point, _)| device.get(point, until)).collect();
                match values {
                    Ok(values) => answers.values(Outcome::Done, &values)?,
                    Err(outcome) => answers.values(outcome, &[])?,
                }
            }
            Order::Write { until, values, .. } => {
                let mut outputs = setup.outputs.iter().zip(values);
                let written =
                    outputs.try_for_each(|(point, value)| device.set(point, value, until));
                answers.written(written.err().unwrap_or(Outcome::Done))?;
            }
            Order::Probe { until } => {
                let there = device.ask("get time\n", until);
                answers.state(there.err().unwrap_or(Outcome::Done))?;
            }
            Order::Open(_) | Order::Point(..) | Order::Begin => break,
        }
    }
    Ok(())
}

/// A device, which is connected to beside the orders: none of them waits for that.
struct Device {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
    making: Option<JoinHandle<io::Result<TcpStream>>>,
}

impl Device {
    fn at(address: SocketAddr) -> Self {
        let making = Some(thread::spawn(move || connect(address)));
        Self {
            address,
            stream: None,
            making,
        }
    }

    fn get(&mut self, point: &Point, until: u64) -> Result<Value, Outcome> {
        let taken_at = now();
        let line = self.ask(&format!("get {}\n", point.name), until)?;
        let number = line.parse::<f64>().ok().filter(|it| it.is_finite());
        Ok(Value {
            quality: match number {
                Some(_) => Quality::Good,
                None => Quality::Bad,
            },
            status: 0,
            taken_at,
            value: number.unwrap_or(0.0),
        })
    }

    fn set(&mut self, point: &Point, value: f64, until: u64) -> Result<(), Outcome> {
        match &*self.ask(&format!("set {} {value}\n", point.name), until)? {
            "ok" => Ok(()),
            _ => Err(Outcome::Refused(1)),
        }
    }

    /// What the device answers to `line`. Nothing is sent after `until`, and whatever fails resets the connection, with
    /// what is still on its way.
    fn ask(&mut self, line: &str, until: u64) -> Result<String, Outcome> {
        self.attend();
        let stream = self.stream.as_mut().ok_or(Outcome::NotConnected)?;
        let left = left(until).ok_or(Outcome::Late)?;
        let asked = stream.get_ref().set_write_timeout(Some(left));
        let asked = asked.and_then(|()| stream.get_mut().write_all(line.as_bytes()));
        match asked.and_then(|()| hear(stream, until)) {
            Ok(answer) => Ok(answer),
            Err(_) => {
                self.stream = None;
                Err(Outcome::NoAnswer)
            }
        }
    }

    /// Takes the connection that has come about, or begins with one.
    fn attend(&mut self) {
        if self.stream.is_some() || self.making.as_ref().is_some_and(|it| !it.is_finished()) {
            return;
        }
        let made = self.making.take().and_then(|it| it.join().ok());
        match made {
            Some(Ok(stream)) => self.stream = Some(BufReader::new(stream)),
            _ => *self = Self::at(self.address),
        }
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let made = TcpStream::connect_timeout(&address, CONNECT).and_then(|stream| {
        stream.set_nodelay(true)?;
        // What the device has not taken when the connection ends is not sent after that.
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        Ok(stream)
    });
    if made.is_err() {
        thread::sleep(PAUSE);
    }
    made
}

/// One line, without its end.
fn hear(stream: &mut BufReader<TcpStream>, until: u64) -> io::Result<String> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let left = left(until).ok_or(io::ErrorKind::TimedOut)?;
        stream.get_ref().set_read_timeout(Some(left))?;
        let there = stream.fill_buf()?;
        let end = there.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(there.len(), |end| end + 1);
        if taken == 0 || line.len() + taken > LINE_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        line.extend_from_slice(&there[..taken]);
        stream.consume(taken);
    }
    let line = String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(line.trim().to_owned())
}

/// The time until then, if any is left.
fn left(until: u64) -> Option<Duration> {
    let left = until.saturating_sub(now());
    (left > 0).then(|| Duration::from_nanos(left))
}
