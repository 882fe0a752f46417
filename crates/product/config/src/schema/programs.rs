//! Sections on the programs of users: what they read, what they write, and the devices where that is.

use super::addresses::{DeviceAddress, DeviceAt, ServerName};
use super::controllers::FILE;
use super::controllers::{FIELD_SECURITY_WORDS, FieldSecurityWord};
use super::numbers::{Millis, Real, Whole};
use super::section;
use crate::model::{OpcUaPolicy, Order, ValueType};
use crate::shape::{Choice, Flag, Name, Text, Texts};
use bumpless_base::Duration;

/// Where in a device an input is, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputAreaWord {
    Coil,
    DiscreteInput,
    InputRegister,
    HoldingRegister,
    Value,
    Quality,
    Age,
    Answers,
}

/// Where in a device an output is, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputAreaWord {
    Coil,
    HoldingRegister,
    Block,
    Value,
}

const INPUT_AREAS: Choice<InputAreaWord> = Choice(&[
    ("coil", InputAreaWord::Coil),
    ("discrete_input", InputAreaWord::DiscreteInput),
    ("input_register", InputAreaWord::InputRegister),
    ("holding_register", InputAreaWord::HoldingRegister),
    ("value", InputAreaWord::Value),
    ("quality", InputAreaWord::Quality),
    ("age", InputAreaWord::Age),
    ("answers", InputAreaWord::Answers),
]);
const OUTPUT_AREAS: Choice<OutputAreaWord> = Choice(&[
    ("coil", OutputAreaWord::Coil),
    ("holding_register", OutputAreaWord::HoldingRegister),
    ("block", OutputAreaWord::Block),
    ("value", OutputAreaWord::Value),
]);
const TYPES: Choice<ValueType> = Choice(&[
    ("bool", ValueType::Bool),
    ("i8", ValueType::I8),
    ("u8", ValueType::U8),
    ("u16", ValueType::U16),
    ("i16", ValueType::I16),
    ("u32", ValueType::U32),
    ("i32", ValueType::I32),
    ("i64", ValueType::I64),
    ("u64", ValueType::U64),
    ("f32", ValueType::F32),
    ("f64", ValueType::F64),
]);
const ORDERS: Choice<Order> = Choice(&[("big", Order::Big), ("little", Order::Little)]);

/// What speaks to a device, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceKindWord {
    Modbus,
    OpcUa,
    Driver,
}

const DEVICE_KINDS: Choice<DeviceKindWord> = Choice(&[
    ("modbus", DeviceKindWord::Modbus),
    ("opcua", DeviceKindWord::OpcUa),
    ("driver", DeviceKindWord::Driver),
]);
const POLICIES: Choice<OpcUaPolicy> = Choice(&[
    ("Basic256Sha256", OpcUaPolicy::Basic256Sha256),
    ("Aes256_Sha256_RsaPss", OpcUaPolicy::Aes256Sha256RsaPss),
    ("None", OpcUaPolicy::Open),
]);
const POINT: Text = Text {
    what: "a text",
    max: 1024,
};
const USER: Text = Text {
    what: "the name of a user",
    max: 255,
};

section! {
    /// wasm, process, plc: one input of the program; they come to it in the order of the file. All of a device that
    /// are next to each other are read with one request.
    Input = "application.input", Many, [] {
        /// Name of the input, different from all others of the program, its outputs included.
        /// Cost: none.
        /// Hazard: none.
        name: String = "name", "none", Name, required;
        /// The device that has it.
        /// Cost: none.
        /// Hazard: none.
        device: String = "device", "name of a device of the application", Name, required;
        /// Modbus: where in the device it is: `coil` (function 1), `discrete_input` (2), `holding_register` (3),
        /// `input_register` (4). Devices of field drivers: `value`, what is read; `quality` of the input with the same
        /// `point`, 2 good, 1 uncertain, 0 bad; its `age` in milliseconds. All: `answers` is 1 while the device answers
        /// this node, else 0.
        /// Cost: a request for each area, and for each run of registers.
        /// Hazard: none.
        area: InputAreaWord = "area", "none", INPUT_AREAS, computed("`input_register` with Modbus, else `value`");
        /// Field drivers: what the driver calls the value. `opcua`: its NodeId, such as `nsu=urn:example:boiler;s=Level`
        /// with the URI of its namespace, in which `%3B` stands for a semicolon and `%25` for a percent sign; or
        /// `ns=2;s=Level` or `ns=3;i=1012` with its number.
        /// Cost: none.
        /// Hazard: the number of a namespace may change when a server is set up anew; its URI does not.
        point: String = "point", "none", POINT, computed("must be given for value, quality and age");
        /// Modbus: its address, counted from 0 as it goes over the wire (the register that manuals call 30001 is 0).
        /// Cost: none.
        /// Hazard: counted from 1, every value is its neighbour's.
        register: u64 = "register", "none", Whole { min: 0, max: 65_535 },
            computed("must be given with Modbus unless area is answers");
        /// How its bits are to be read. A `bool` in a register is true if the register is not 0; coils and discrete
        /// inputs are always `bool`. `u32`, `i32` and `f32` take two registers, `i64`, `u64` and `f64` four; `i8` and `u8`
        /// are for field drivers alone. A whole number beyond 2^53 loses its last digits.
        /// Cost: none.
        /// Hazard: another than the device's gives values that look like nothing; OPC UA takes such a value for bad.
        value: ValueType = "type", "none", TYPES,
            computed("`bool` for coils and discrete inputs, `f64` with field drivers, else `f32`");
        /// Which byte of a register comes first: `big`, the high one, as Modbus says.
        /// Cost: none.
        /// Hazard: as for `type`.
        byte_order: Order = "byte_order", "none", ORDERS, default("\"big\"");
        /// Which register of a value comes first: `big`, that with the high bits.
        /// Cost: none.
        /// Hazard: as for `type`.
        word_order: Order = "word_order", "none", ORDERS, default("\"big\"");
        /// The program gets the device's number times `scale` plus `offset`.
        /// Cost: none.
        /// Hazard: none.
        scale: f64 = "scale", "none", Real { min: -1e12, max: 1e12 }, default("1");
        /// See `scale`.
        /// Cost: none.
        /// Hazard: none.
        offset: f64 = "offset", "none", Real { min: -1e12, max: 1e12 }, default("0");
        /// It is read in every so many periods; between them the program gets what was read last.
        /// Cost: the shorter, the more requests.
        /// Hazard: the longer, the older what the program sees.
        poll: u64 = "poll", "periods", Whole { min: 1, max: 100_000 }, default("1");
    }
}

section! {
    /// wasm, process, plc: one output of the program; they come from it in the order of the file. All of a device that
    /// are next to each other are written with one request.
    Output = "application.output", Many, [] {
        /// Name of the output, different from all others of the program, its inputs included.
        /// Cost: none.
        /// Hazard: none.
        name: String = "name", "none", Name, required;
        /// The device that has it.
        /// Cost: none.
        /// Hazard: none.
        device: String = "device", "name of a device of the application", Name, required;
        /// Modbus: where in the device it is: `coil` (functions 5 and 15), `holding_register` (6 and 16); or `block`:
        /// all outputs of the device in one request that carries the epoch (`spec/field.md`, F-3), in the order of the
        /// file, as `f32`. Field drivers: `value`.
        /// Cost: a request for each area, and for each run of registers.
        /// Hazard: without `block`, the lease alone keeps a delayed write of the former primary out.
        area: OutputAreaWord = "area", "none", OUTPUT_AREAS, computed("`holding_register` with Modbus, else `value`");
        /// Field drivers: what the driver calls the value, as for inputs.
        /// Cost: none.
        /// Hazard: as for inputs: then another value is written.
        point: String = "point", "none", POINT, computed("must be given for value");
        /// Modbus: its address, counted from 0 as it goes over the wire (the register that manuals call 40001 is 0).
        /// Cost: none.
        /// Hazard: counted from 1, every value is written to its neighbour.
        register: u64 = "register", "none", Whole { min: 0, max: 65_535 },
            computed("must be given with Modbus unless area is block");
        /// How its bits are to be written; as for inputs. A `bool` is 1 where the program's number is at least 0.5.
        /// Cost: none.
        /// Hazard: another than the device's gives it values that nobody meant; OPC UA servers refuse them.
        value: ValueType = "type", "none", TYPES, computed("`bool` for coils, `f64` with field drivers, else `f32`");
        /// Which byte of a register comes first: `big`, the high one, as Modbus says.
        /// Cost: none.
        /// Hazard: as for `type`.
        byte_order: Order = "byte_order", "none", ORDERS, default("\"big\"");
        /// Which register of a value comes first: `big`, that with the high bits.
        /// Cost: none.
        /// Hazard: as for `type`.
        word_order: Order = "word_order", "none", ORDERS, default("\"big\"");
        /// The program's number is the device's times `scale` plus `offset`, as for inputs. What is beyond the range
        /// of the type is written as the end of the range.
        /// Cost: none.
        /// Hazard: none.
        scale: f64 = "scale", "none", Real { min: -1e12, max: 1e12 }, default("1");
        /// See `scale`.
        /// Cost: none.
        /// Hazard: none.
        offset: f64 = "offset", "none", Real { min: -1e12, max: 1e12 }, default("0");
        /// With `on_program_fault = "safe"`: what is written when the program has stopped, in the program's unit.
        /// Cost: none.
        /// Hazard: only who knows the process knows what is safe.
        safe: f64 = "safe", "as the program's output", Real { min: -1e12, max: 1e12 },
            computed("must be given with on_program_fault = \"safe\"");
    }
}

section! {
    /// wasm, process, plc: one device with inputs or outputs of the program: a Modbus TCP device, or one unit behind a
    /// gateway; or what a field driver speaks to (`spec/field-driver.md`), a process of its own which each node starts
    /// for the device. Each has a connection of its own from every node of the group.
    Device = "application.field.device", Many, [] {
        /// Name of the device.
        /// Cost: none.
        /// Hazard: none.
        name: String = "name", "none", Name, required;
        /// What speaks to it: `modbus`, the node itself; `opcua`, the field driver `bumpless-opcua`, an OPC UA client;
        /// `driver`, the program that `driver` names.
        /// Cost: but for `modbus`, a process for each device on each node.
        /// Hazard: none.
        kind: DeviceKindWord = "kind", "none", DEVICE_KINDS, default("\"modbus\"");
        /// Its address, and TCP port if it is not the usual one (502, with `tls` 802, `opcua` 4840), reachable from every
        /// node of the group.
        /// Cost: one connection from each node.
        /// Hazard: reached through one of the pair's networks, that network's failure takes it along.
        address: DeviceAt = "address", "IP address and port", DeviceAddress, required;
        /// Modbus: what protects the connection to it, as in `[application.field]`.
        /// Cost: as there.
        /// Hazard: as there.
        security: FieldSecurityWord = "security", "none", FIELD_SECURITY_WORDS, computed("that of [application.field]");
        /// With `tls`: the name in its certificate. `NAME.field` is the device NAME of the node's own site, as `bumpless pki
        /// issue NAME.field` makes it.
        /// Cost: none.
        /// Hazard: none.
        server_name: String = "server_name", "name or IP address", ServerName, computed("the IP address of address");
        /// Modbus: unit identifier; 255 for a device that is addressed by its IP address alone.
        /// Cost: none.
        /// Hazard: behind a gateway another unit's registers.
        unit: u64 = "unit", "none", Whole { min: 0, max: 255 }, computed("`255`");
        /// Whether the program cannot do without it: while it does not answer, no output of the application is
        /// written, or the application stops (`on_failure`). Otherwise the others are read and written as ever, and the
        /// program gets what this one said last; an input `answers` tells it so.
        /// Cost: none.
        /// Hazard: false with a program that does not look at `answers`: it goes on with old values.
        required: bool = "required", "none", Flag, default("true");
        /// Field drivers: the program that is started; one without a folder is looked for in `PATH`. Local: not compared
        /// between nodes, as the folder `files` is not.
        /// Cost: none.
        /// Hazard: it has the rights of the node.
        driver: String = "driver", "path", FILE, computed("`bumpless-opcua` for opcua; must be given for driver");
        /// `driver`: its arguments.
        /// Cost: none.
        /// Hazard: none.
        arguments: Vec<String> = "arguments", "texts", Texts, computed("none");
        /// Field drivers: a value that is older counts as bad.
        /// Cost: none.
        /// Hazard: below a period, or for an input with a longer `poll`, values are bad that nothing is wrong with.
        max_age: Duration = "max_age_ms", "milliseconds", Millis { min: 1.0, max: 86_400_000.0 },
            computed("none: values may have any age");
        /// `opcua`: the path in the URL of the server's endpoint.
        /// Cost: none.
        /// Hazard: some servers refuse another than their own.
        path: String = "path", "none", POINT, computed("`/`");
        /// `opcua`: security policy; messages are signed and encrypted. `None` protects nothing.
        /// Cost: some tens of microseconds of processor time in each request; a session takes some milliseconds.
        /// Hazard: with `None`, whoever can send to the server can write its outputs, and whoever is in between can
        /// change what is read.
        policy: OpcUaPolicy = "policy", "none", POLICIES, computed("`Basic256Sha256`");
        /// `opcua`: a folder with `NODE.PAIR/certificate.der` and `NODE.PAIR/key.pem` of each node, which
        /// `bumpless-opcua certificate` makes, and `servers/NAME.der`, the certificate of the server NAME, the device's
        /// name; no other server is believed.
        /// Cost: none.
        /// Hazard: certificates end.
        files: String = "files", "path", FILE, computed("must be given unless policy is None");
        /// `opcua`: the user as whom the nodes log in.
        /// Cost: none.
        /// Hazard: without it, whoever the server lets in without a name can do what the nodes do.
        user: String = "user", "none", USER, computed("none: anonymous");
        /// `opcua`: a file with the user's password in its one line, which the node's user alone may read. It is read at
        /// each log-in. Local: not compared between nodes.
        /// Cost: none.
        /// Hazard: while it is not there, or not right, the device does not answer.
        password_file: String = "password_file", "path", FILE, computed("must be given with user");
        /// `opcua`: whether the password is sent although policy is `None`: in the clear, or enciphered for a server that
        /// nobody has checked.
        /// Cost: none.
        /// Hazard: true: whoever is on that network may learn the password, and log in with it.
        password_exposed: bool = "password_exposed", "none", Flag, default("false");
        /// First of the two input registers with the epoch that the device has accepted (F-2); for outputs in a
        /// `block`.
        /// Cost: none.
        /// Hazard: without it, nobody learns from the device which epoch it has accepted.
        epoch_register: u64 = "epoch_register", "none", Whole { min: 0, max: 65_534 },
            computed("none: the device does not tell");
        /// First of the four input registers with the cycle of the last write that it has accepted (F-2); for
        /// outputs in a `block`.
        /// Cost: none.
        /// Hazard: without it, a pair that has lost all memory cannot learn from the device what it wrote last.
        cycle_register: u64 = "cycle_register", "none", Whole { min: 0, max: 65_532 },
            computed("none: the device does not tell");
    }
}
