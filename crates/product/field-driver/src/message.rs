//! The messages, version 1 (`spec/field-driver.md`, J-10 to J-17): each is one datagram, numbers are big endian.

mod bytes;
mod order;
mod said;

pub use order::{Opening, Order, put_begin, put_open, put_point, put_probe, put_read, put_write};
pub use said::{
    Said, Value, Values, put_note, put_ready, put_refused, put_state, put_values, put_written,
};

use std::fmt;

/// The version of all messages here.
pub const VERSION: u8 = 1;
/// No message is longer, bytes.
pub const MESSAGE_MAX: usize = 160 << 10;
/// Bytes of what all messages begin with.
pub const HEADER: usize = 8;
/// Most inputs, and most outputs, of a driver.
pub const POINTS_MAX: u32 = 4096;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Open = 0x01,
    Point = 0x02,
    Begin = 0x03,
    Read = 0x04,
    Write = 0x05,
    Probe = 0x06,
    Ready = 0x81,
    Refused = 0x82,
    Values = 0x84,
    Written = 0x85,
    State = 0x86,
    Note = 0x87,
}

impl Kind {
    const ALL: [Self; 12] = [
        Self::Open,
        Self::Point,
        Self::Begin,
        Self::Read,
        Self::Write,
        Self::Probe,
        Self::Ready,
        Self::Refused,
        Self::Values,
        Self::Written,
        Self::State,
        Self::Note,
    ];

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Of another version.
    Version(u8),
    /// Shorter or longer than it should be, or with a value that there is not.
    Malformed,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "version {version} of the messages, where this is version {VERSION}"
            ),
            Self::Malformed => f.write_str("what is no message"),
        }
    }
}

impl std::error::Error for Fault {}

/// Which way a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the device to the program.
    Input,
    /// From the program to the device.
    Output,
}

macro_rules! kinds_of_values {
    ($( $variant:ident = $code:literal, $name:literal; )*) => {
        /// What a value is in the device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum ValueKind { $( #[doc = concat!("`", $name, "`.")] $variant = $code, )* }

        impl ValueKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// As the configuration has it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

kinds_of_values! {
    Bool = 0, "bool";
    I8 = 1, "i8";
    U8 = 2, "u8";
    I16 = 3, "i16";
    U16 = 4, "u16";
    I32 = 5, "i32";
    U32 = 6, "u32";
    I64 = 7, "i64";
    U64 = 8, "u64";
    F32 = 9, "f32";
    F64 = 10, "f64";
}

/// One value that a driver reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Which way it goes.
    pub direction: Direction,
    /// What it is in the device.
    pub kind: ValueKind,
    /// What the driver calls it.
    pub name: String,
}

/// How good a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Quality {
    /// It says nothing of the process.
    Bad = 0,
    /// The device doubts it.
    Uncertain = 1,
    /// As it should be.
    Good = 2,
}

/// What came of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Done,
    /// It came too late to be begun: nothing was sent to the device.
    Late,
    /// There is no connection to the device.
    NotConnected,
    /// The device did not answer in time. It may have taken what it was sent.
    NoAnswer,
    /// The device refused it, with a status of its bus.
    Refused(u32),
}

impl Outcome {
    const fn code(self) -> (u8, u32) {
        match self {
            Self::Done => (0, 0),
            Self::Late => (1, 0),
            Self::NotConnected => (2, 0),
            Self::NoAnswer => (3, 0),
            Self::Refused(status) => (4, status),
        }
    }

    const fn of(code: u8, status: u32) -> Option<Self> {
        Some(match (code, status) {
            (0, 0) => Self::Done,
            (1, 0) => Self::Late,
            (2, 0) => Self::NotConnected,
            (3, 0) => Self::NoAnswer,
            (4, status) => Self::Refused(status),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
