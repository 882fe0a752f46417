//! The programs of users as the rest of the product uses them: what runs, what it reads and writes, where that is.

use std::net::SocketAddr;
use std::path::PathBuf;

use bumpless_base::Duration;

/// A program of a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What runs it.
    pub host: ProgramHost,
    /// Its file.
    pub file: PathBuf,
    /// SHA-256 of the file's bytes.
    pub sha256: [u8; 32],
    /// Most bytes of its own state.
    pub state_max: u32,
    /// How long an execution may take.
    pub execute_limit: Duration,
    /// Its inputs, in the order in which they come to it.
    pub inputs: Vec<Input>,
    /// Its outputs, in the order in which they come from it.
    pub outputs: Vec<Output>,
    /// What holds when it has stopped.
    pub on_fault: OnProgramFault,
    /// What it does with the state of the version before, when it takes that one's place.
    pub state: StateOnChange,
}

impl Program {
    /// The hash as people compare it, in hexadecimal digits.
    pub fn sha256_hex(&self) -> String {
        self.sha256
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// What runs a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramHost {
    /// The WebAssembly interpreter in the node's process.
    Wasm,
    /// The system, in a process of its own.
    Process {
        /// What comes before the file, word by word.
        command: Vec<String>,
        /// What comes after it.
        arguments: Vec<String>,
    },
    /// The system; the file was made of a PLC program.
    Plc,
}

impl ProgramHost {
    /// The word in the file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Wasm => "wasm",
            Self::Process { .. } => "process",
            Self::Plc => "plc",
        }
    }
}

/// What the next version of a program does with the state of the one that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateOnChange {
    /// It goes on with all of it that it has a place for; where a variable has another type, the change is refused.
    #[default]
    Kept,
    /// It goes on with what it can; a variable of another type begins with its initial value.
    Partly,
    /// It begins from its initial state.
    Fresh,
}

/// What becomes of the outputs of a program that has stopped.
#[derive(Clone, Debug, PartialEq)]
pub enum OnProgramFault {
    /// The devices keep the last ones.
    Hold,
    /// These are written, one for each output.
    Safe(Vec<f64>),
}

/// One input of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// The device that has it, by position.
    pub device: usize,
    /// Where in the device it is, and once in how many periods it is read; `None`: it tells whether the device answers.
    pub point: Option<(Point, u32)>,
}

/// One output of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// The device that has it, by position.
    pub device: usize,
    /// Where in the device it is; `None`: in the block that carries the epoch, after those before it.
    pub point: Option<Point>,
}

/// Where in a device a value is, and how it lies there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Which table.
    pub area: Area,
    /// Its address in it, or its first register's.
    pub register: u16,
    /// How its bits are to be read.
    pub value: ValueType,
    /// Which byte of a register comes first.
    pub byte_order: Order,
    /// Which register of the value comes first.
    pub word_order: Order,
    /// The program's number is the device's times this,
    pub scale: f64,
    /// plus this.
    pub offset: f64,
}

/// The four tables of a Modbus device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// Bits that can be written.
    Coil,
    /// Bits that cannot.
    DiscreteInput,
    /// Registers that can be written.
    HoldingRegister,
    /// Registers that cannot.
    InputRegister,
}

/// How the bits of a value are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// 0 or 1.
    Bool,
    /// 16 bits without sign.
    U16,
    /// 16 bits, two's complement.
    I16,
    /// 32 bits without sign.
    U32,
    /// 32 bits, two's complement.
    I32,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl ValueType {
    /// How many registers it takes.
    pub const fn registers(self) -> u16 {
        match self {
            Self::Bool | Self::U16 | Self::I16 => 1,
            Self::U32 | Self::I32 | Self::F32 => 2,
            Self::F64 => 4,
        }
    }
}

/// Which part comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// That with the high bits.
    Big,
    /// That with the low bits.
    Little,
}

/// A device with inputs or outputs of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDevice {
    /// Its name.
    pub name: String,
    /// The Modbus TCP server.
    pub address: SocketAddr,
    /// The unit identifier.
    pub unit: u8,
    /// Whether the program cannot do without it.
    pub required: bool,
    /// What protects the connection to it; `None`: nothing.
    pub security: Option<DeviceSecurity>,
    /// First input register of the accepted epoch, if it tells.
    pub epoch_register: Option<u16>,
    /// First input register of the cycle of the last accepted write, if it tells.
    pub cycle_register: Option<u16>,
}

/// What protects the connection to a device: Modbus/TCP Security.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSecurity {
    /// The name in the device's certificate: one of DNS, `NAME.field` of the node's own site, or an address. `None`: the address at
    /// which it is reached.
    pub server_name: Option<String>,
}
