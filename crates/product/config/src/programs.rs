//! The programs of users as the rest of the product uses them: what runs, what it reads and writes, where that is.

use std::net::SocketAddr;
use std::path::PathBuf;

use bumpless_base::Duration;

/// Longest file of a program, bytes.
pub const PROGRAM_MAX: u64 = 256 << 20;

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
    /// Most bytes of memory of a module, or of address space of its process; `None`: as much as its host gives.
    pub memory_max: Option<u64>,
    /// What runs a module.
    pub engine: ModuleEngine,
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
    /// A WebAssembly engine in the node's process.
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

/// What runs a WebAssembly module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModuleEngine {
    /// The interpreter wasmi.
    #[default]
    Wasmi,
    /// The compiler wasmtime, which not every build has.
    Wasmtime,
}

impl ModuleEngine {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wasmi => "wasmi",
            Self::Wasmtime => "wasmtime",
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
    /// What it is.
    pub from: InputFrom,
}

/// What an input is.
#[derive(Clone, Debug, PartialEq)]
pub enum InputFrom {
    /// A value in a Modbus device, read once in so many periods.
    Registers(Point, u32),
    /// A value that a field driver reads, once in so many periods.
    Driver(Tag, u32),
    /// How good the value of another input is, by position: 0 bad, 1 uncertain, 2 good.
    Quality(usize),
    /// How old that one's value is, in milliseconds.
    Age(usize),
    /// Whether the device answers.
    Answers,
}

/// One output of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// The device that has it, by position.
    pub device: usize,
    /// Where it goes.
    pub to: OutputTo,
}

/// Where an output goes.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputTo {
    /// To a place in a Modbus device.
    Registers(Point),
    /// Into the block of a Modbus device that carries the epoch, after those before it.
    Block,
    /// To a value that a field driver writes.
    Driver(Tag),
}

impl Input {
    /// Where in a Modbus device it is, and once in how many periods it is read.
    pub const fn registers(&self) -> Option<(Point, u32)> {
        match self.from {
            InputFrom::Registers(point, poll) => Some((point, poll)),
            _ => None,
        }
    }
}

impl Output {
    /// Where in a Modbus device it is.
    pub const fn registers(&self) -> Option<Point> {
        match self.to {
            OutputTo::Registers(point) => Some(point),
            _ => None,
        }
    }
}

/// A value as a field driver knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// What the driver calls it.
    pub name: String,
    /// What it is in the device.
    pub value: ValueType,
    /// The program's number is the device's times this,
    pub scale: f64,
    /// plus this.
    pub offset: f64,
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

/// What a value is in a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// 0 or 1.
    Bool,
    /// 8 bits, two's complement; field drivers alone.
    I8,
    /// 8 bits without sign; field drivers alone.
    U8,
    /// 16 bits without sign.
    U16,
    /// 16 bits, two's complement.
    I16,
    /// 32 bits without sign.
    U32,
    /// 32 bits, two's complement.
    I32,
    /// 64 bits, two's complement.
    I64,
    /// 64 bits without sign.
    U64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl ValueType {
    /// How many registers of a Modbus device it takes.
    pub const fn registers(self) -> u16 {
        match self {
            Self::Bool | Self::I8 | Self::U8 | Self::U16 | Self::I16 => 1,
            Self::U32 | Self::I32 | Self::F32 => 2,
            Self::I64 | Self::U64 | Self::F64 => 4,
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
    /// Where it is.
    pub address: SocketAddr,
    /// Whether the program cannot do without it.
    pub required: bool,
    /// Who speaks to it, and how.
    pub bus: Bus,
}

/// Who speaks to a device, and how.
#[derive(Clone, Debug, PartialEq)]
pub enum Bus {
    /// The node itself, over Modbus TCP.
    Modbus(ModbusDevice),
    /// A process of its own.
    Driver(FieldDriver),
}

/// A Modbus TCP device, or one unit behind a gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct ModbusDevice {
    /// The unit identifier.
    pub unit: u8,
    /// What protects the connection to it; `None`: nothing.
    pub security: Option<DeviceSecurity>,
    /// First input register of the accepted epoch, if it tells.
    pub epoch_register: Option<u16>,
    /// First input register of the cycle of the last accepted write, if it tells.
    pub cycle_register: Option<u16>,
}

/// A process that speaks a field bus for the node.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDriver {
    /// The program that is started.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What the bus is.
    pub protocol: DriverProtocol,
    /// A value that is older counts as bad; `None`: none is too old.
    pub max_age: Option<Duration>,
}

/// What a field driver speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverProtocol {
    /// What the driver alone knows.
    Own,
    /// OPC UA.
    OpcUa {
        /// The path of the endpoint's URL, which begins with `/`.
        path: String,
        /// What protects what is said.
        policy: OpcUaPolicy,
        /// The folder with the certificates; where nothing is protected, none. A path that is not absolute begins at the
        /// configuration's folder.
        files: Option<PathBuf>,
        /// As whom the nodes log in; `None`: anonymous.
        login: Option<OpcUaLogin>,
    },
}

/// A user of an OPC UA server. The password is in the file alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpcUaLogin {
    /// The name.
    pub user: String,
    /// The file with the password. A path that is not absolute begins at the configuration's folder.
    pub password_file: PathBuf,
    /// Whether the password is sent although nothing protects it.
    pub exposed: bool,
}

/// The security policies of OPC UA (OPC 10000-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpcUaPolicy {
    /// Basic256Sha256.
    Basic256Sha256,
    /// Aes256-Sha256-RsaPss.
    Aes256Sha256RsaPss,
    /// None.
    Open,
}

impl OpcUaPolicy {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic256Sha256 => "Basic256Sha256",
            Self::Aes256Sha256RsaPss => "Aes256_Sha256_RsaPss",
            Self::Open => "None",
        }
    }
}

impl FieldDevice {
    /// What it is called and where it is, for people.
    pub fn place(&self) -> String {
        format!("{} ({})", self.name, self.address)
    }

    /// What protects a Modbus connection to it.
    pub const fn security(&self) -> Option<&DeviceSecurity> {
        match &self.bus {
            Bus::Modbus(modbus) => modbus.security.as_ref(),
            Bus::Driver(_) => None,
        }
    }

    /// The driver that speaks to it, if one does.
    pub const fn driver(&self) -> Option<&FieldDriver> {
        match &self.bus {
            Bus::Modbus(_) => None,
            Bus::Driver(driver) => Some(driver),
        }
    }

    /// The word for its protocol in the file.
    pub const fn kind(&self) -> &'static str {
        match &self.bus {
            Bus::Modbus(_) => "modbus",
            Bus::Driver(driver) => match driver.protocol {
                DriverProtocol::Own => "driver",
                DriverProtocol::OpcUa { .. } => "opcua",
            },
        }
    }

    /// What protects the connection to it, in a word; `None`: its driver alone knows.
    pub const fn security_name(&self) -> Option<&'static str> {
        Some(match &self.bus {
            Bus::Modbus(ModbusDevice { security: None, .. }) => "open",
            Bus::Modbus(_) => "tls",
            Bus::Driver(driver) => match &driver.protocol {
                DriverProtocol::Own => return None,
                DriverProtocol::OpcUa { policy, .. } => policy.name(),
            },
        })
    }

    /// As whom the nodes log in, if the server is to know a user.
    pub const fn login(&self) -> Option<&OpcUaLogin> {
        match &self.bus {
            Bus::Driver(FieldDriver {
                protocol: DriverProtocol::OpcUa { login, .. },
                ..
            }) => login.as_ref(),
            _ => None,
        }
    }

    /// Whether whoever reaches its network can read and write there.
    pub fn is_open(&self) -> bool {
        matches!(self.security_name(), Some("open" | "None"))
    }
}

/// What protects the connection to a device: Modbus/TCP Security.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSecurity {
    /// The name in the device's certificate: one of DNS, `NAME.field` of the node's own site, or an address. `None`: the address at
    /// which it is reached.
    pub server_name: Option<String>,
}
