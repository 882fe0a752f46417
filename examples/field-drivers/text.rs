//! A field driver in Rust: for devices that take lines of text over TCP.
//!
//! `get NAME` is answered with a number, `set NAME NUMBER` with `ok`. What the configuration calls `point` is the name.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bumpless_field_driver::{Driver, Order, Outcome, Point, Quality, Value, now};

/// The device, while there is a connection.
type Device = Option<BufReader<TcpStream>>;

fn main() -> io::Result<()> {
    let (mut driver, setup) = Driver::attach()?;
    let Ok(address) = setup.address.parse::<SocketAddr>() else {
        return driver.refuse("the address is none; give an IP address and a port");
    };
    driver.ready(concat!("text-driver ", env!("CARGO_PKG_VERSION")))?;
    let mut device = None;
    while let Some(order) = driver.order()? {
        let answers = driver.answers();
        match order {
            Order::Read { until, due } => {
                let due = setup.inputs.iter().zip(due).filter(|(_, due)| *due);
                let values: Result<Vec<_>, _> = due
                    .map(|(point, _)| read(&mut device, address, point, until))
                    .collect();
                match values {
                    Ok(values) => answers.values(Outcome::Done, &values)?,
                    Err(outcome) => answers.values(outcome, &[])?,
                }
            }
            Order::Write { until, values, .. } => {
                let outputs = setup.outputs.iter().zip(values);
                let written = { outputs }.try_for_each(|(point, value)| {
                    let order = format!("set {} {value}\n", point.name);
                    ask(&mut device, address, &order, until).map(|_| ())
                });
                answers.written(written.err().unwrap_or(Outcome::Done))?;
            }
            Order::Probe { until } => {
                let there = ask(&mut device, address, "get time\n", until);
                answers.state(there.err().unwrap_or(Outcome::Done))?;
            }
            Order::Open(_) | Order::Point(..) | Order::Begin => break,
        }
    }
    Ok(())
}

fn read(
    device: &mut Device,
    address: SocketAddr,
    point: &Point,
    until: u64,
) -> Result<Value, Outcome> {
    let taken_at = now();
    let line = ask(device, address, &format!("get {}\n", point.name), until)?;
    let number = line.trim().parse::<f64>();
    Ok(Value {
        quality: if number.is_ok() {
            Quality::Good
        } else {
            Quality::Bad
        },
        status: 0,
        taken_at,
        value: number.unwrap_or(0.0),
    })
}

/// What the device answers to `line`. Nothing is sent after `until`, and whatever fails closes the connection.
fn ask(
    device: &mut Device,
    address: SocketAddr,
    line: &str,
    until: u64,
) -> Result<String, Outcome> {
    let left = || match until.saturating_sub(now()) {
        0 => Err(Outcome::Late),
        left => Ok(Duration::from_nanos(left)),
    };
    if device.is_none() {
        let made = TcpStream::connect_timeout(&address, left()?);
        *device = Some(BufReader::new(made.map_err(|_| Outcome::NotConnected)?));
    }
    let stream = device.as_mut().ok_or(Outcome::NotConnected)?;
    let (mut answer, left) = (String::new(), left()?);
    let asked = stream.get_ref().set_read_timeout(Some(left));
    let asked = asked.and_then(|()| stream.get_mut().write_all(line.as_bytes()));
    match asked.and_then(|()| stream.read_line(&mut answer)) {
        Ok(1..) => Ok(answer),
        _ => {
            *device = None;
            Err(Outcome::NoAnswer)
        }
    }
}
