//! The module as its host runs it: the same code, but everything that the state consists of is exported, and the start
//! function is called by the host.
//!
//! A module need not export its memories, globals and tables, and compilers do not export the globals at all; an interpreter
//! shows what is exported only. So the export section is replaced by one of the host's. The start section goes: the start function
//! then runs within limits like everything else.

use wasmparser::{BinaryReaderError, Parser};

use super::scan::Parts;

/// Names of the host's exports.
pub(super) mod name {
    pub(in crate::wasm) const CYCLE: &str = "cycle";
    pub(in crate::wasm) const START: &str = "start";
    pub(in crate::wasm) const INITIALIZE: &str = "initialize";
    pub(in crate::wasm) const INPUTS: &str = "inputs";
    pub(in crate::wasm) const OUTPUTS: &str = "outputs";
    pub(in crate::wasm) const CONVERT: &str = "convert";

    pub(in crate::wasm) fn memory(index: u32) -> String {
        format!("m{index}")
    }
    pub(in crate::wasm) fn global(index: u32) -> String {
        format!("g{index}")
    }
    pub(in crate::wasm) fn table(index: u32) -> String {
        format!("t{index}")
    }
    pub(in crate::wasm) fn function(index: u32) -> String {
        format!("f{index}")
    }
}

/// Identifiers of sections in the binary format.
mod section {
    pub(super) const CUSTOM: u8 = 0;
    pub(super) const GLOBAL: u8 = 6;
    pub(super) const EXPORT: u8 = 7;
    pub(super) const START: u8 = 8;
}

/// Kinds of exports in the binary format.
mod kind {
    pub(super) const FUNCTION: u8 = 0;
    pub(super) const TABLE: u8 = 1;
    pub(super) const MEMORY: u8 = 2;
    pub(super) const GLOBAL: u8 = 3;
}

const HEADER: usize = 8;

/// `module`, whose parts are `parts`, with the host's exports.
pub(super) fn rewritten(module: &[u8], parts: &Parts) -> Result<Vec<u8>, BinaryReaderError> {
    let mut exports = Some(export_section(parts));
    let mut out = Vec::with_capacity(module.len() + 1024);
    out.extend_from_slice(module.get(..HEADER).unwrap_or_default());
    for payload in Parser::new(0).parse_all(module) {
        let Some((id, range)) = payload?.as_section() else {
            continue;
        };
        if matches!(id, section::CUSTOM | section::EXPORT | section::START) {
            continue;
        }
        // Sections come in a fixed order, and what follows the globals follows the exports.
        if id > section::GLOBAL
            && let Some(exports) = exports.take()
        {
            put_section(&mut out, section::EXPORT, &exports);
        }
        put_section(&mut out, id, module.get(range).unwrap_or_default());
    }
    if let Some(exports) = exports {
        put_section(&mut out, section::EXPORT, &exports);
    }
    Ok(out)
}

fn export_section(parts: &Parts) -> Vec<u8> {
    let mut exports = Exports::default();
    for (of_module, of_host) in [
        ("cycle", name::CYCLE),
        ("_initialize", name::INITIALIZE),
        ("bumpless_inputs", name::INPUTS),
        ("bumpless_outputs", name::OUTPUTS),
        ("bumpless_convert", name::CONVERT),
    ] {
        if let Some((index, _)) = parts.exported_function(of_module) {
            exports.add(of_host, kind::FUNCTION, index);
        }
    }
    if let Some(start) = parts.start {
        exports.add(name::START, kind::FUNCTION, start);
    }
    for index in 0..parts.memories.len() as u32 {
        exports.add(&name::memory(index), kind::MEMORY, index);
    }
    for index in shown_globals(parts) {
        exports.add(&name::global(index), kind::GLOBAL, index);
    }
    for &index in &parts.changed_tables {
        exports.add(&name::table(index), kind::TABLE, index);
    }
    for index in shown_functions(parts) {
        exports.add(&name::function(index), kind::FUNCTION, index);
    }
    exports.section()
}

/// Globals that are exported by number: those that change, and those whose values the next version may ask for.
fn shown_globals(parts: &Parts) -> Vec<u32> {
    let exported = parts.exports.iter().filter_map(|export| export.global);
    let mut shown: Vec<u32> = exported
        .chain(parts.mutable_globals().map(|(index, _)| index))
        .collect();
    shown.sort_unstable();
    shown.dedup();
    shown
}

/// Functions that are exported by number: all if the state holds references to functions, else those that the module
/// exports, since only then some of its own references are valid.
fn shown_functions(parts: &Parts) -> Vec<u32> {
    if parts.keeps_functions() {
        return (0..parts.functions.len() as u32).collect();
    }
    let exported = parts.exports.iter().filter_map(|export| export.function);
    let mut exported: Vec<u32> = exported.collect();
    exported.sort_unstable();
    exported.dedup();
    exported
}

#[derive(Default)]
struct Exports {
    count: u32,
    entries: Vec<u8>,
}

impl Exports {
    fn add(&mut self, name: &str, kind: u8, index: u32) {
        self.count += 1;
        put_number(&mut self.entries, name.len() as u32);
        self.entries.extend_from_slice(name.as_bytes());
        self.entries.push(kind);
        put_number(&mut self.entries, index);
    }

    fn section(self) -> Vec<u8> {
        let mut section = Vec::with_capacity(self.entries.len() + 5);
        put_number(&mut section, self.count);
        section.extend_from_slice(&self.entries);
        section
    }
}

fn put_section(out: &mut Vec<u8>, id: u8, content: &[u8]) {
    out.push(id);
    put_number(out, content.len() as u32);
    out.extend_from_slice(content);
}

/// Unsigned LEB128.
fn put_number(out: &mut Vec<u8>, mut number: u32) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}
