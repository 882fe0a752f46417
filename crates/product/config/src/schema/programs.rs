//! Sections on the programs of users: what they read, what they write, and the devices where that is.

use super::addresses::{DeviceAddress, DeviceAt, ServerName};
use super::controllers::{FIELD_SECURITY_WORDS, FieldSecurityWord};
use super::numbers::{Real, Whole};
use super::section;
use crate::model::{Order, ValueType};
use crate::shape::{Choice, Flag, Name};

/// Where in a device an input is, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputAreaWord {
    Coil,
    DiscreteInput,
    InputRegister,
    HoldingRegister,
    Answers,
}

/// Where in a device an output is, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputAreaWord {
    Coil,
    HoldingRegister,
    Block,
}

const INPUT_AREAS: Choice<InputAreaWord> = Choice(&[
    ("coil", InputAreaWord::Coil),
    ("discrete_input", InputAreaWord::DiscreteInput),
    ("input_register", InputAreaWord::InputRegister),
    ("holding_register", InputAreaWord::HoldingRegister),
    ("answers", InputAreaWord::Answers),
]);
const OUTPUT_AREAS: Choice<OutputAreaWord> = Choice(&[
    ("coil", OutputAreaWord::Coil),
    ("holding_register", OutputAreaWord::HoldingRegister),
    ("block", OutputAreaWord::Block),
]);
const TYPES: Choice<ValueType> = Choice(&[
    ("bool", ValueType::Bool),
    ("u16", ValueType::U16),
    ("i16", ValueType::I16),
    ("u32", ValueType::U32),
    ("i32", ValueType::I32),
    ("f32", ValueType::F32),
    ("f64", ValueType::F64),
]);
const ORDERS: Choice<Order> = Choice(&[("big", Order::Big), ("little", Order::Little)]);

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
        /// Where in the device it is: `coil` (Modbus function 1), `discrete_input` (2), `holding_register` (3),
        /// `input_register` (4); or nowhere in it: `answers` is 1 while the device answers this node, else 0.
        /// Cost: a request for each area, and for each run of registers.
        /// Hazard: none.
        area: InputAreaWord = "area", "none", INPUT_AREAS, default("\"input_register\"");
        /// Its address, counted from 0 as it goes over the wire (the register that manuals call 30001 is 0).
        /// Cost: none.
        /// Hazard: counted from 1, every value is its neighbour's.
        register: u64 = "register", "none", Whole { min: 0, max: 65_535 },
            computed("must be given unless area is answers");
        /// How its bits are to be read. A `bool` in a register is true if the register is not 0; coils and discrete
        /// inputs are always `bool`. `u32`, `i32` and `f32` take two registers, `f64` four.
        /// Cost: none.
        /// Hazard: another than the device's gives values that look like nothing.
        value: ValueType = "type", "none", TYPES, computed("bool for coils and discrete inputs, else f32");
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
        /// Where in the device it is: `coil` (Modbus functions 5 and 15), `holding_register` (6 and 16); or `block`:
        /// all outputs of the device in one request that carries the epoch (`spec/field.md`, F-3), in the order of the
        /// file, as `f32`.
        /// Cost: a request for each area, and for each run of registers.
        /// Hazard: without `block`, the lease alone keeps a delayed write of the former primary out.
        area: OutputAreaWord = "area", "none", OUTPUT_AREAS, default("\"holding_register\"");
        /// Its address, counted from 0 as it goes over the wire (the register that manuals call 40001 is 0).
        /// Cost: none.
        /// Hazard: counted from 1, every value is written to its neighbour.
        register: u64 = "register", "none", Whole { min: 0, max: 65_535 },
            computed("must be given unless area is block");
        /// How its bits are to be written; as for inputs. A `bool` is 1 where the program's number is at least 0.5.
        /// Cost: none.
        /// Hazard: another than the device's gives it values that nobody meant.
        value: ValueType = "type", "none", TYPES, computed("bool for coils, else f32");
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
    /// wasm, process, plc: one Modbus TCP device, or one unit behind a gateway, with inputs or outputs of the program.
    /// Each has a connection of its own from every node of the group.
    Device = "application.field.device", Many, [] {
        /// Name of the device.
        /// Cost: none.
        /// Hazard: none.
        name: String = "name", "none", Name, required;
        /// Address of the Modbus server, and TCP port if it is not the usual one, reachable from every node of the group.
        /// Cost: one connection from each node.
        /// Hazard: reached through one of the pair's networks, that network's failure takes it along.
        address: DeviceAt = "address", "IP address and port", DeviceAddress, required;
        /// What protects the connection to it, as in `[application.field]`.
        /// Cost: as there.
        /// Hazard: as there.
        security: FieldSecurityWord = "security", "none", FIELD_SECURITY_WORDS, computed("that of [application.field]");
        /// With `tls`: the name in its certificate. `NAME.field` is the device NAME of the node's own site, as `bumpless pki
        /// issue NAME.field` makes it.
        /// Cost: none.
        /// Hazard: none.
        server_name: String = "server_name", "name or IP address", ServerName, computed("the IP address of address");
        /// Unit identifier; 255 for a device that is addressed by its IP address alone.
        /// Cost: none.
        /// Hazard: behind a gateway another unit's registers.
        unit: u64 = "unit", "none", Whole { min: 0, max: 255 }, default("255");
        /// Whether the program cannot do without it: while it does not answer, no output of the application is
        /// written, or the application stops (`on_failure`). Otherwise the others are read and written as ever, and the
        /// program gets what this one said last; an input `answers` tells it so.
        /// Cost: none.
        /// Hazard: false with a program that does not look at `answers`: it goes on with old values.
        required: bool = "required", "none", Flag, default("true");
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
