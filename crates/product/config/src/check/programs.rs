//! Programs of users: their files, limits, inputs and outputs.

use std::collections::BTreeMap;

use bumpless_base::Duration;

use super::names::devices;
use super::program_file;
use super::tags;
use super::timing::ms;
use super::written_once::Writers;
use crate::file::ApplicationEntry;
use crate::model::{
    Area, Input, InputFrom, OnProgramFault, Output, OutputTo, Point, Program, ProgramHost,
    ValueType,
};
use crate::reader::{Place, Reader};
use crate::schema::{self, DeviceKindWord, FaultWord, InputAreaWord, KindWord, OutputAreaWord};

/// Bytes of the least memory that a module can have, and of the largest one.
const PAGE: u64 = 64 << 10;
const MODULE_MEMORY_MAX: u64 = 4 << 30;
/// Most inputs, and most outputs, of one program.
const VALUES_MAX: usize = 4096;
/// Most outputs in the block that carries the epoch (F-3).
const BLOCK_OUTPUTS_MAX: usize = 57;

pub(crate) fn check(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    writers: &mut Writers,
) -> Option<Program> {
    let fields = &entry.fields;
    let host = match fields.kind? {
        KindWord::Wasm => ProgramHost::Wasm,
        KindWord::Plc => ProgramHost::Plc,
        _ => ProgramHost::Process {
            command: fields.command.clone()?.unwrap_or_default(),
            arguments: fields.arguments.clone()?.unwrap_or_default(),
        },
    };
    let file = file(reader, fields, &host);
    let state_max = required(reader, fields, "state_max", &fields.state_max);
    let memory_max = memory_max(reader, fields);
    let execute_limit = execute_limit(reader, fields);
    names(reader, entry);
    let inputs = inputs(reader, entry);
    let outputs = outputs(reader, entry, writers);
    let on_fault = on_fault(reader, entry);
    let state = fields.state?.unwrap_or_default();
    let (file, sha256) = file?;
    Some(Program {
        host,
        file,
        sha256,
        state_max: u32::try_from(*state_max?).ok()?,
        memory_max: memory_max?,
        engine: fields.engine?.unwrap_or_default(),
        execute_limit: execute_limit?,
        inputs: inputs?,
        outputs: outputs?,
        on_fault: on_fault?,
        state,
    })
}

/// A field that a program must have.
fn required<'f, T>(
    reader: &mut Reader,
    fields: &schema::Application,
    key: &str,
    value: &'f Option<Option<T>>,
) -> Option<&'f T> {
    let value = value.as_ref()?;
    if value.is_none() && !reader.incomplete {
        let right = match key {
            "file" => "give the path of the program's file",
            _ => "give the most bytes that its state has; `bumpless program test` tells",
        };
        reader.wrong(&fields.place, key, "is missing for a program", right);
    }
    value.as_ref()
}

fn file(
    reader: &mut Reader,
    fields: &schema::Application,
    host: &ProgramHost,
) -> Option<(std::path::PathBuf, [u8; 32])> {
    let given = required(reader, fields, "file", &fields.file)?;
    let path = reader.folder().join(given);
    match program_file::read(&path, host) {
        Ok(sha256) => Some((path, sha256)),
        Err((wrong, right)) => {
            reader.wrong(&fields.place, "file", wrong, right);
            None
        }
    }
}

/// The outer `None`: it is wrong.
fn memory_max(reader: &mut Reader, fields: &schema::Application) -> Option<Option<u64>> {
    let Some(most) = fields.memory_max? else {
        return Some(None);
    };
    if fields.kind? == KindWord::Wasm {
        return module_memory(reader, fields, most);
    }
    if let Some(Some(state)) = fields.state_max
        && most <= state
    {
        let wrong = format!("{most} bytes leave no room for a state of {state}");
        let right = "give what the whole process may take, its state included, or leave it out";
        reader.wrong(&fields.place, "memory_max", wrong, right);
    }
    Some(Some(most))
}

/// A state has only what differs from the beginning, and may be given more room than the memory has.
fn module_memory(
    reader: &mut Reader,
    fields: &schema::Application,
    most: u64,
) -> Option<Option<u64>> {
    if !(PAGE..=MODULE_MEMORY_MAX).contains(&most) {
        let wrong = format!("{most} bytes are not what a module can have");
        let right = "give 64 KiB to 4 GiB, the whole memory, not its state alone, or leave it out";
        reader.wrong(&fields.place, "memory_max", wrong, right);
    }
    Some(Some(most))
}

fn execute_limit(reader: &mut Reader, fields: &schema::Application) -> Option<Duration> {
    let period = fields.period?;
    let limit = fields.execute_limit?.unwrap_or(period / 2);
    if limit > period {
        let wrong = format!(
            "{} ms is longer than the period, {} ms",
            ms(limit),
            ms(period)
        );
        let right = "give at most the period: the next cycle would be late";
        reader.wrong(&fields.place, "execute_limit_ms", wrong, right);
    }
    Some(limit)
}

/// Each name once among inputs and outputs, and not too many of them.
fn names(reader: &mut Reader, entry: &ApplicationEntry) {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let inputs = entry.inputs.iter().map(|it| (&it.place, &it.name));
    let outputs = entry.outputs.iter().map(|it| (&it.place, &it.name));
    for (place, name) in inputs.chain(outputs) {
        let Some(name) = name else { continue };
        if let Some(line) = lines.insert(name, place.line_of("name")) {
            let wrong = format!("{name:?} is already the name of what is on line {line}");
            let right = "give each input and output of a program a name of its own";
            reader.wrong(place, "name", wrong, right);
        }
    }
    let beyond = [
        entry.inputs.get(VALUES_MAX).map(|it| &it.place),
        entry.outputs.get(VALUES_MAX).map(|it| &it.place),
    ];
    for place in beyond.into_iter().flatten() {
        let right = format!("a program has at most {VALUES_MAX} of them");
        reader.wrong(place, "", "is one too many", right);
    }
}

fn inputs(reader: &mut Reader, entry: &ApplicationEntry) -> Option<Vec<Input>> {
    let devices = devices(reader, entry);
    let mut all = Vec::new();
    for given in &entry.inputs {
        let at = ("device", given.place.line_of("device"));
        let device = given.device.as_ref();
        let device = device.and_then(|name| devices.find(reader, &given.place, at, name));
        all.push(input(reader, entry, given, device));
    }
    all.into_iter().collect()
}

fn input(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    given: &schema::Input,
    device: Option<usize>,
) -> Option<Input> {
    let driven = tags::are_driven(entry, device, &given.place)?;
    let usual = match driven {
        true => InputAreaWord::Value,
        false => InputAreaWord::InputRegister,
    };
    let word = given.area?.unwrap_or(usual);
    let of_driver = matches!(
        word,
        InputAreaWord::Value | InputAreaWord::Quality | InputAreaWord::Age
    );
    if word != InputAreaWord::Answers && of_driver != driven {
        tags::area_of_others(reader, &given.place, driven);
        return None;
    }
    let poll = u32::try_from(given.poll?).ok()?;
    let area = match word {
        InputAreaWord::Answers => None,
        InputAreaWord::Coil => Some(Area::Coil),
        InputAreaWord::DiscreteInput => Some(Area::DiscreteInput),
        InputAreaWord::InputRegister => Some(Area::InputRegister),
        InputAreaWord::HoldingRegister => Some(Area::HoldingRegister),
        _ => {
            let from = tags::input(reader, entry, given, (device, word))?;
            return Some(Input {
                name: given.name.clone()?,
                device: device?,
                from,
            });
        }
    };
    tags::belongs_to_drivers(reader, &given.place);
    let from = match area {
        Some(area) => {
            let form = Form {
                place: &given.place,
                area,
                register: given.register?,
                value: given.value?,
            };
            let (register, value) = form.check(reader)?;
            let point = Point {
                area,
                register,
                value,
                byte_order: given.byte_order?,
                word_order: given.word_order?,
                scale: given.scale?,
                offset: given.offset?,
            };
            InputFrom::Registers(point, poll)
        }
        None => {
            tags::needless(reader, &given.place, "answers");
            InputFrom::Answers
        }
    };
    Some(Input {
        name: given.name.clone()?,
        device: device?,
        from,
    })
}

/// A value's place and type, as given.
struct Form<'a> {
    place: &'a Place,
    area: Area,
    register: Option<u64>,
    value: Option<ValueType>,
}

impl Form<'_> {
    fn check(&self, reader: &mut Reader) -> Option<(u16, ValueType)> {
        let bits = matches!(self.area, Area::Coil | Area::DiscreteInput);
        let value = self.value.unwrap_or(match bits {
            true => ValueType::Bool,
            false => ValueType::F32,
        });
        if bits && value != ValueType::Bool {
            let right = "leave it out: coils and discrete inputs are bits";
            reader.wrong(self.place, "type", "is no bit", right);
        }
        let Some(register) = self.register else {
            if !reader.incomplete {
                let right = "give the address, counted from 0";
                reader.wrong(self.place, "register", "is missing", right);
            }
            return None;
        };
        if matches!(value, ValueType::I8 | ValueType::U8) {
            let right = "give i16 or u16: a register has 16 bits";
            reader.wrong(self.place, "type", "is none that Modbus has", right);
        }
        let registers = value.registers();
        let last = register + u64::from(registers) - 1;
        if last > u64::from(u16::MAX) {
            let wrong = format!("{register} leaves no room for a value of its type");
            let right = format!("give at most {}", 65_536 - u32::from(registers));
            reader.wrong(self.place, "register", wrong, right);
        }
        Some((u16::try_from(register).ok()?, value))
    }
}

fn outputs(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    writers: &mut Writers,
) -> Option<Vec<Output>> {
    let devices = devices(&mut Reader::new("", ""), entry);
    let mut all = Vec::new();
    for given in &entry.outputs {
        let at = ("device", given.place.line_of("device"));
        let device = given.device.as_ref();
        let device = device.and_then(|name| devices.find(reader, &given.place, at, name));
        all.push(output(reader, entry, given, device));
    }
    blocks(reader, entry, &all);
    writers.add(reader, entry, &all);
    all.into_iter().collect()
}

fn output(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    given: &schema::Output,
    device: Option<usize>,
) -> Option<Output> {
    let driven = tags::are_driven(entry, device, &given.place)?;
    let usual = match driven {
        true => OutputAreaWord::Value,
        false => OutputAreaWord::HoldingRegister,
    };
    let word = given.area?.unwrap_or(usual);
    if (word == OutputAreaWord::Value) != driven {
        tags::area_of_others(reader, &given.place, driven);
        return None;
    }
    let area = match word {
        OutputAreaWord::Block => None,
        OutputAreaWord::Coil => Some(Area::Coil),
        OutputAreaWord::HoldingRegister => Some(Area::HoldingRegister),
        OutputAreaWord::Value => {
            let to = tags::output(reader, entry, given, device)?;
            return Some(Output {
                name: given.name.clone()?,
                device: device?,
                to,
            });
        }
    };
    tags::belongs_to_drivers(reader, &given.place);
    let to = match area {
        Some(area) => {
            let form = Form {
                place: &given.place,
                area,
                register: given.register?,
                value: given.value?,
            };
            let (register, value) = form.check(reader)?;
            let scale = given.scale?;
            tags::no_zero(reader, &given.place, scale);
            OutputTo::Registers(Point {
                area,
                register,
                value,
                byte_order: given.byte_order?,
                word_order: given.word_order?,
                scale,
                offset: given.offset?,
            })
        }
        None => {
            tags::needless(reader, &given.place, "block");
            OutputTo::Block
        }
    };
    Some(Output {
        name: given.name.clone()?,
        device: device?,
        to,
    })
}

/// All outputs of a device are in its block, or none.
fn blocks(reader: &mut Reader, entry: &ApplicationEntry, outputs: &[Option<Output>]) {
    for at in 0..entry.devices.len() {
        let of_device = || {
            let known = outputs.iter().zip(&entry.outputs);
            known.filter(move |(output, _)| output.as_ref().is_some_and(|it| it.device == at))
        };
        let is_block = |it: &Output| it.to == OutputTo::Block;
        let in_block = |output: &Option<Output>| output.as_ref().is_some_and(is_block);
        let count = of_device().filter(|(output, _)| in_block(output)).count();
        if count > 0
            && let Some((_, other)) = of_device().find(|(output, _)| !in_block(output))
        {
            let wrong = "other outputs of its device are in a block";
            let right = "give all outputs of a device area = \"block\", or none";
            reader.wrong(&other.place, "area", wrong, right);
        }
        if let Some((_, beyond)) = of_device().nth(BLOCK_OUTPUTS_MAX).filter(|_| count > 0) {
            let right = format!("a block holds at most {BLOCK_OUTPUTS_MAX}");
            reader.wrong(&beyond.place, "area", "the block is full", right);
        }
        let device = &entry.devices[at];
        let registers = ["epoch_register", "cycle_register"];
        let modbus = device.kind == Some(DeviceKindWord::Modbus);
        for key in registers
            .into_iter()
            .filter(|key| modbus && count == 0 && device.place.has(key))
        {
            let wrong = "its outputs carry no epoch";
            let right = "remove it, or give its outputs area = \"block\"";
            reader.wrong(&device.place, key, wrong, right);
        }
    }
}

fn on_fault(reader: &mut Reader, entry: &ApplicationEntry) -> Option<OnProgramFault> {
    let word = entry.fields.on_program_fault?.unwrap_or(FaultWord::Hold);
    if word == FaultWord::Hold {
        for given in entry.outputs.iter().filter(|it| it.place.has("safe")) {
            let right = "remove it, or set on_program_fault = \"safe\"";
            reader.wrong(&given.place, "safe", "means nothing with \"hold\"", right);
        }
        return Some(OnProgramFault::Hold);
    }
    let mut values = Vec::new();
    for given in &entry.outputs {
        let safe = given.safe?;
        if safe.is_none() && !reader.incomplete {
            let wrong = "is missing with on_program_fault = \"safe\"";
            let right = "give what is written when the program has stopped";
            reader.wrong(&given.place, "safe", wrong, right);
        }
        values.push(safe);
    }
    let values: Option<Vec<f64>> = values.into_iter().collect();
    Some(OnProgramFault::Safe(values?))
}
