//! What a node says to a driver.

use super::bytes::{Rest, begin, open, put_text};
use super::{Direction, Fault, Kind, POINTS_MAX, Point, ValueKind};

/// What a driver is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// How many inputs.
    pub inputs: u32,
    /// How many outputs.
    pub outputs: u32,
    /// What messages for people call the device.
    pub device: String,
    /// Where it is.
    pub address: String,
    /// What the configuration says besides, each with its name.
    pub options: Vec<(String, String)>,
}

/// One order of the node.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// The first of all: what the driver is for.
    Open(Opening),
    /// One value of those that it is for: with its position among inputs or outputs.
    Point(u32, Point),
    /// All values have been named.
    Begin,
    /// Read the inputs that are due, by position.
    Read {
        /// The answer is awaited until then.
        until: u64,
        /// Which inputs.
        due: Vec<bool>,
    },
    /// Write all outputs.
    Write {
        /// After this nothing of it may be sent to the device.
        until: u64,
        /// The epoch in which the node is primary.
        epoch: u64,
        /// The application's cycle.
        cycle: u64,
        /// The values as the device has them, by position.
        values: Vec<f64>,
    },
    /// Keep the connection up, and say whether it is; write nothing.
    Probe {
        /// The answer is awaited until then.
        until: u64,
    },
}

/// The message [`Order::Open`].
pub fn put_open(buffer: &mut Vec<u8>, number: u32, opening: &Opening) {
    begin(buffer, Kind::Open, number);
    buffer.extend(opening.inputs.to_be_bytes());
    buffer.extend(opening.outputs.to_be_bytes());
    put_text(buffer, &opening.device);
    put_text(buffer, &opening.address);
    buffer.extend((opening.options.len() as u16).to_be_bytes());
    for (name, value) in &opening.options {
        put_text(buffer, name);
        put_text(buffer, value);
    }
}

/// The message [`Order::Point`].
pub fn put_point(buffer: &mut Vec<u8>, number: u32, at: u32, point: &Point) {
    begin(buffer, Kind::Point, number);
    let direction = match point.direction {
        Direction::Input => 0,
        Direction::Output => 1,
    };
    buffer.extend([direction, point.kind as u8, 0, 0]);
    buffer.extend(at.to_be_bytes());
    put_text(buffer, &point.name);
}

/// The message [`Order::Begin`].
pub fn put_begin(buffer: &mut Vec<u8>, number: u32) {
    begin(buffer, Kind::Begin, number);
}

/// The message [`Order::Read`].
pub fn put_read(
    buffer: &mut Vec<u8>,
    number: u32,
    until: u64,
    due: impl ExactSizeIterator<Item = bool>,
) {
    begin(buffer, Kind::Read, number);
    buffer.extend(until.to_be_bytes());
    buffer.extend((due.len() as u32).to_be_bytes());
    let mut byte = 0;
    let mut bits = 0;
    for due in due {
        byte |= u8::from(due) << (7 - bits);
        bits += 1;
        if bits == 8 {
            buffer.push(byte);
            (byte, bits) = (0, 0);
        }
    }
    if bits > 0 {
        buffer.push(byte);
    }
}

/// The message [`Order::Write`].
pub fn put_write(
    buffer: &mut Vec<u8>,
    number: u32,
    (until, epoch, cycle): (u64, u64, u64),
    values: impl ExactSizeIterator<Item = f64>,
) {
    begin(buffer, Kind::Write, number);
    buffer.extend(until.to_be_bytes());
    buffer.extend(epoch.to_be_bytes());
    buffer.extend(cycle.to_be_bytes());
    buffer.extend((values.len() as u32).to_be_bytes());
    values.for_each(|value| buffer.extend(value.to_be_bytes()));
}

/// The message [`Order::Probe`].
pub fn put_probe(buffer: &mut Vec<u8>, number: u32, until: u64) {
    begin(buffer, Kind::Probe, number);
    buffer.extend(until.to_be_bytes());
}

impl Order {
    /// The order in `message`, and its number.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(message: &[u8]) -> Result<(u32, Self), Fault> {
        let (kind, number, mut rest) = open(message)?;
        let order = match kind {
            Kind::Open => Self::Open(opening(&mut rest)?),
            Kind::Point => point(&mut rest)?,
            Kind::Begin => Self::Begin,
            Kind::Read => read(&mut rest)?,
            Kind::Write => write(&mut rest)?,
            Kind::Probe => Self::Probe { until: rest.u64()? },
            _ => return Err(Fault::Malformed),
        };
        rest.end()?;
        Ok((number, order))
    }
}

fn count(rest: &mut Rest<'_>) -> Result<u32, Fault> {
    let count = rest.u32()?;
    (count <= POINTS_MAX)
        .then_some(count)
        .ok_or(Fault::Malformed)
}

fn opening(rest: &mut Rest<'_>) -> Result<Opening, Fault> {
    let (inputs, outputs) = (count(rest)?, count(rest)?);
    let (device, address) = (rest.text()?.to_owned(), rest.text()?.to_owned());
    let mut options = Vec::new();
    for _ in 0..rest.u16()? {
        options.push((rest.text()?.to_owned(), rest.text()?.to_owned()));
    }
    Ok(Opening {
        inputs,
        outputs,
        device,
        address,
        options,
    })
}

fn point(rest: &mut Rest<'_>) -> Result<Order, Fault> {
    let direction = match rest.byte()? {
        0 => Direction::Input,
        1 => Direction::Output,
        _ => return Err(Fault::Malformed),
    };
    let code = rest.byte()?;
    let kind = ValueKind::ALL.iter().find(|kind| **kind as u8 == code);
    let kind = *kind.ok_or(Fault::Malformed)?;
    rest.zeros(2)?;
    let at = rest.u32()?;
    let name = rest.text()?.to_owned();
    let point = Point {
        direction,
        kind,
        name,
    };
    Ok(Order::Point(at, point))
}

fn read(rest: &mut Rest<'_>) -> Result<Order, Fault> {
    let until = rest.u64()?;
    let count = count(rest)? as usize;
    let bits = rest.bytes(count.div_ceil(8))?;
    let all = bits
        .iter()
        .flat_map(|byte| (0..8).map(move |bit| byte >> (7 - bit) & 1 == 1));
    let due: Vec<bool> = all.clone().take(count).collect();
    // Nothing stands where there is no input.
    if all.skip(count).any(|bit| bit) {
        return Err(Fault::Malformed);
    }
    Ok(Order::Read { until, due })
}

fn write(rest: &mut Rest<'_>) -> Result<Order, Fault> {
    let (until, epoch, cycle) = (rest.u64()?, rest.u64()?, rest.u64()?);
    let count = count(rest)?;
    let values: Result<_, _> = (0..count).map(|_| rest.f64()).collect();
    Ok(Order::Write {
        until,
        epoch,
        cycle,
        values: values?,
    })
}
