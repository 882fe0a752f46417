//! What a driver says to a node.

use super::bytes::{Rest, begin, open, put_text};
use super::{Fault, Kind, Outcome, Quality};

/// Bytes of one value in a message.
const VALUE: usize = 24;

/// A value that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// How good it is.
    pub quality: Quality,
    /// The status that the bus gives it.
    pub status: u32,
    /// Not later than when the device had it, as [`now`](crate::now) counts.
    pub taken_at: u64,
    /// The device's number.
    pub value: f64,
}

/// What a driver says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said<'m> {
    /// It is ready for orders; what it is.
    Ready(&'m str),
    /// It cannot do what it is asked to; why, and what to do.
    Refused(&'m str),
    /// What came of a read, and, if it was carried out, the values that were due, in their order.
    Values(Outcome, Values<'m>),
    /// What came of a write.
    Written(Outcome),
    /// Whether the connection is up.
    State(Outcome),
    /// Something for people, which holds until another one comes; empty: nothing.
    Note(&'m str),
}

/// Values in a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values<'m>(&'m [u8]);

impl Values<'_> {
    /// How many.
    pub const fn len(&self) -> usize {
        self.0.len() / VALUE
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        let values = self.0.chunks_exact(VALUE);
        values.filter_map(|bytes| value(bytes).ok())
    }
}

/// The message [`Said::Ready`].
pub fn put_ready(buffer: &mut Vec<u8>, number: u32, what: &str) {
    begin(buffer, Kind::Ready, number);
    put_text(buffer, what);
}

/// The message [`Said::Refused`].
pub fn put_refused(buffer: &mut Vec<u8>, number: u32, why: &str) {
    begin(buffer, Kind::Refused, number);
    put_text(buffer, why);
}

/// The message [`Said::Values`]; `values` are left out unless it was carried out.
pub fn put_values(buffer: &mut Vec<u8>, number: u32, outcome: Outcome, values: &[Value]) {
    begin(buffer, Kind::Values, number);
    put_outcome(buffer, outcome);
    let values = values.iter().take(match outcome {
        Outcome::Done => values.len(),
        _ => 0,
    });
    for it in values {
        buffer.extend([it.quality as u8, 0, 0, 0]);
        buffer.extend(it.status.to_be_bytes());
        buffer.extend(it.taken_at.to_be_bytes());
        buffer.extend(it.value.to_be_bytes());
    }
}

/// The message [`Said::Written`].
pub fn put_written(buffer: &mut Vec<u8>, number: u32, outcome: Outcome) {
    begin(buffer, Kind::Written, number);
    put_outcome(buffer, outcome);
}

/// The message [`Said::State`].
pub fn put_state(buffer: &mut Vec<u8>, number: u32, outcome: Outcome) {
    begin(buffer, Kind::State, number);
    put_outcome(buffer, outcome);
}

/// The message [`Said::Note`].
pub fn put_note(buffer: &mut Vec<u8>, text: &str) {
    begin(buffer, Kind::Note, 0);
    put_text(buffer, text);
}

fn put_outcome(buffer: &mut Vec<u8>, outcome: Outcome) {
    let (code, status) = outcome.code();
    buffer.extend([code, 0, 0, 0]);
    buffer.extend(status.to_be_bytes());
}

impl<'m> Said<'m> {
    /// What is said in `message`, and its number.
    ///
    /// # Errors
    /// It is no message of a driver.
    pub fn parse(message: &'m [u8]) -> Result<(u32, Self), Fault> {
        let (kind, number, mut rest) = open(message)?;
        let said = match kind {
            Kind::Ready => Self::Ready(rest.text()?),
            Kind::Refused => Self::Refused(rest.text()?),
            Kind::Values => values(&mut rest)?,
            Kind::Written => Self::Written(outcome(&mut rest)?),
            Kind::State => Self::State(outcome(&mut rest)?),
            Kind::Note => Self::Note(rest.text()?),
            _ => return Err(Fault::Malformed),
        };
        rest.end()?;
        Ok((number, said))
    }
}

fn outcome(rest: &mut Rest<'_>) -> Result<Outcome, Fault> {
    let code = rest.byte()?;
    rest.zeros(3)?;
    Outcome::of(code, rest.u32()?).ok_or(Fault::Malformed)
}

fn values<'m>(rest: &mut Rest<'m>) -> Result<Said<'m>, Fault> {
    let outcome = outcome(rest)?;
    let bytes = rest.all();
    let whole = bytes.len().is_multiple_of(VALUE) && (outcome == Outcome::Done || bytes.is_empty());
    // Each of them is looked at here, so that nothing is found out when half of them are taken.
    if !whole || bytes.chunks_exact(VALUE).any(|bytes| value(bytes).is_err()) {
        return Err(Fault::Malformed);
    }
    Ok(Said::Values(outcome, Values(bytes)))
}

fn value(bytes: &[u8]) -> Result<Value, Fault> {
    let mut rest = Rest::of(bytes);
    let quality = match rest.byte()? {
        0 => Quality::Bad,
        1 => Quality::Uncertain,
        2 => Quality::Good,
        _ => return Err(Fault::Malformed),
    };
    rest.zeros(3)?;
    Ok(Value {
        quality,
        status: rest.u32()?,
        taken_at: rest.u64()?,
        value: rest.f64()?,
    })
}
