//! A file that has been found to be a program, compiled.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ring::digest::{SHA256, digest};
use wasmparser::{FuncType, ValType};

use super::compiled::Compiled;
use super::engine::Engine;
use super::fault::{Feature, LoadFault, Problem};
use super::interface;
use super::interpreter::validate;
use super::rewrite::rewritten;
use super::scan::{ImportKind, Parts};
use crate::Kind;

/// Most bytes of a file.
const FILE_MAX: u64 = 64 << 20;

/// First bytes of vector and of atomic instructions.
const SIMD: u8 = 0xfd;
const ATOMIC: u8 = 0xfe;

/// A WebAssembly module that keeps to the interface (G-20 to G-22).
pub struct Module {
    file: String,
    sha256: [u8; 32],
    bytes: usize,
    engine: Engine,
    compiled: Compiled,
    parts: Parts,
}

impl Module {
    /// Reads the file at `path`, to be run by `engine`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn open(path: &Path, engine: Engine) -> Result<Self, LoadFault> {
        let name = path.display().to_string();
        let unreadable =
            |error: std::io::Error| LoadFault::one(&name, Problem::Unreadable(error.to_string()));
        let mut file = File::open(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        if !about.is_file() {
            let what = "it is no regular file; name the module's file";
            return Err(LoadFault::one(&name, Problem::Unreadable(what.into())));
        }
        if about.len() > FILE_MAX {
            let problem = Problem::FileTooLarge {
                bytes: about.len(),
                allowed: FILE_MAX,
            };
            return Err(LoadFault::one(&name, problem));
        }
        let mut bytes = Vec::with_capacity(about.len() as usize);
        let read = file.by_ref().take(FILE_MAX).read_to_end(&mut bytes);
        read.map_err(unreadable)?;
        Self::read(&name, &bytes, engine)
    }

    /// Takes the bytes of a file called `file`, to be run by `engine`. Which modules are taken is the same for all.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(file: &str, bytes: &[u8], engine: Engine) -> Result<Self, LoadFault> {
        let fault = |problem| LoadFault::one(file, problem);
        let kind = Kind::of(bytes);
        if kind != Kind::Wasm {
            return Err(fault(Problem::Kind(kind)));
        }
        if !engine.is_built_in() {
            return Err(fault(Problem::EngineAbsent(engine.name())));
        }
        validate(bytes).map_err(|(offset, cause)| fault(invalid(offset, cause, bytes)))?;
        let broken = |error: wasmparser::BinaryReaderError| {
            fault(Problem::Invalid {
                offset: error.offset(),
                cause: error.message().to_owned(),
            })
        };
        let parts = Parts::of(bytes).map_err(broken)?;
        let problems = problems(&parts);
        if !problems.is_empty() {
            return Err(LoadFault {
                file: file.to_owned(),
                problems,
            });
        }
        let for_host = rewritten(bytes, &parts).map_err(broken)?;
        let compiled = Compiled::new(engine, &for_host, &parts).map_err(fault)?;
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Ok(Self {
            file: file.to_owned(),
            sha256,
            bytes: bytes.len(),
            engine,
            compiled,
            parts,
        })
    }

    /// The file, as it was named.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// SHA-256 of the file: the program's identity (G-9).
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the program imports from the host, by name.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        self.parts.imports.iter().map(|import| &import.name[..])
    }

    /// Whether something is exported under this name.
    pub fn exports(&self, name: &str) -> bool {
        self.parts.exports.iter().any(|export| export.name == name)
    }

    /// How many of its globals can change.
    pub fn mutable_globals(&self) -> usize {
        self.parts.mutable_globals().count()
    }

    /// How many of its tables the code changes.
    pub fn changed_tables(&self) -> usize {
        self.parts.changed_tables.len()
    }

    /// Pages of 64 KiB of each memory: at first, and at most if the module says so.
    pub fn memories(&self) -> impl Iterator<Item = (u64, Option<u64>)> {
        let memories = self.parts.memories.iter();
        memories.map(|memory| (memory.least, memory.most))
    }

    /// What runs it.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    pub(super) fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }
}

/// What is wrong with bytes that are no valid module.
fn invalid(offset: usize, cause: String, bytes: &[u8]) -> Problem {
    let needs = |feature| Problem::Needs { feature, offset };
    match bytes.get(offset) {
        Some(&SIMD) => needs(Feature::Simd),
        Some(&ATOMIC) => needs(Feature::Threads),
        _ if cause.contains("SIMD") => needs(Feature::Simd),
        _ if cause.contains("thread") || cause.contains("shared") => needs(Feature::Threads),
        _ => Problem::Invalid { offset, cause },
    }
}

/// Everything that keeps a valid module from being a program.
fn problems(parts: &Parts) -> Vec<Problem> {
    let mut problems: Vec<_> = parts
        .imports
        .iter()
        .filter_map(|import| {
            let given = interface::IMPORTS
                .iter()
                .find(|(name, _)| *name == import.name);
            let (ImportKind::Function(index), Some((_, given)), interface::MODULE) =
                (import.what, given, &import.module[..])
            else {
                return Some(Problem::UnknownImport {
                    import: format!("{}.{}", import.module, import.name),
                    what: import.what.name(),
                });
            };
            let wanted = parts.types.get(index as usize).map_or("?".into(), told);
            (wanted != *given).then(|| Problem::ImportType {
                name: import.name.clone(),
                given: (*given).to_owned(),
                wanted,
            })
        })
        .collect();
    for (name, wanted, needed) in [
        ("cycle", "() -> ()", true),
        ("_initialize", "() -> ()", false),
        ("bumpless_inputs", "() -> (i32)", false),
        ("bumpless_outputs", "() -> (i32)", false),
        ("bumpless_convert", "() -> (i32)", false),
    ] {
        let there = parts.exports.iter().any(|export| export.name == name);
        match parts.exported_function(name) {
            Some((_, found)) if told(found) == wanted => {}
            None if !there && !needed => {}
            None if !there => problems.push(Problem::MissingExport {
                name,
                command: parts.exports.iter().any(|export| export.name == "_start"),
            }),
            _ => problems.push(Problem::ExportType { name, wanted }),
        }
    }
    // One place is enough to look.
    for name in ["data.drop", "elem.drop"] {
        let mut places = parts.unmovable.iter();
        if let Some(&(instruction, offset)) = places.find(|(found, _)| *found == name) {
            problems.push(Problem::Unmovable {
                instruction,
                offset,
            });
        }
    }
    problems
}

/// A type in words.
fn told(function: &FuncType) -> String {
    let list = |types: &[ValType]| {
        let names: Vec<_> = types.iter().map(ToString::to_string).collect();
        names.join(", ")
    };
    format!(
        "({}) -> ({})",
        list(function.params()),
        list(function.results())
    )
}
