//! What substations and control centres say to each other, and which programs say it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A protocol of the grid, with the programs that speak it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// IEC 60870-5-104 by c104: orders that are confirmed, and values that substations report.
    Iec104,
    /// Modbus TCP by pymodbus: registers that are asked for.
    Modbus,
    /// Data frames of C37.118 over UDP, by a writer and a reader of our own.
    Phasors,
}

impl Protocol {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Iec104, Self::Modbus, Self::Phasors];

    /// Where it listens: the substation, and of phasors the centre.
    pub const fn port(self) -> u16 {
        match self {
            Self::Iec104 => 2404,
            Self::Modbus => 502,
            Self::Phasors => 4713,
        }
    }

    /// What it goes over.
    pub const fn transport(self) -> &'static str {
        match self {
            Self::Iec104 | Self::Modbus => "tcp",
            Self::Phasors => "udp",
        }
    }

    /// The module of Python that speaks it, and what the script calls it; none if we speak it ourselves.
    pub const fn module(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Iec104 => Some(("c104", "104")),
            Self::Modbus => Some(("pymodbus", "modbus")),
            Self::Phasors => None,
        }
    }

    /// What one exchange of it is called.
    pub const fn exchange(self) -> &'static str {
        match self {
            Self::Iec104 => "orders",
            Self::Modbus => "questions",
            Self::Phasors => "frames",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iec104 => "IEC 60870-5-104",
            Self::Modbus => "Modbus TCP",
            Self::Phasors => "C37.118 (UDP)",
        })
    }
}
