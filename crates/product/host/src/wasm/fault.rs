//! Why a module is refused, and why a cycle of it failed.

use std::fmt;

use crate::Kind;
use bumpless_controller::{ProgramFaultKind, Unanswered};

/// Why a file is not run as a program: everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadFault {
    /// The file, as it was named.
    pub file: String,
    /// What is wrong, at least one thing.
    pub problems: Vec<Problem>,
}

impl LoadFault {
    pub(super) fn one(file: &str, problem: Problem) -> Self {
        Self {
            file: file.to_owned(),
            problems: vec![problem],
        }
    }
}

impl fmt::Display for LoadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}{}: {problem}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadFault {}

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The file cannot be read.
    Unreadable(String),
    /// It is larger than any module that is taken.
    FileTooLarge {
        /// Its bytes.
        bytes: u64,
        /// Most bytes.
        allowed: u64,
    },
    /// It is something else.
    Kind(Kind),
    /// What is to run it is not in this build.
    EngineAbsent(&'static str),
    /// It is no valid module.
    Invalid {
        /// Where, in bytes from the front; the end of the file if it is cut.
        offset: usize,
        /// What is wrong there.
        cause: String,
    },
    /// It needs something of WebAssembly that is not given.
    Needs {
        /// What.
        feature: Feature,
        /// Where, in bytes from the front.
        offset: usize,
    },
    /// It imports what Bumpless does not give.
    UnknownImport {
        /// From where and what.
        import: String,
        /// A function, a memory, ...
        what: &'static str,
    },
    /// It imports what Bumpless gives, with another type.
    ImportType {
        /// The name.
        name: String,
        /// The type that it has.
        given: String,
        /// The type that the module wants.
        wanted: String,
    },
    /// It lacks what a program must export.
    MissingExport {
        /// The name.
        name: &'static str,
        /// Whether it exports `_start`, as a program that runs once does.
        command: bool,
    },
    /// An export of the interface has another type.
    ExportType {
        /// The name.
        name: &'static str,
        /// The type that it must have.
        wanted: &'static str,
    },
    /// It uses an instruction whose effect cannot be moved.
    Unmovable {
        /// The instruction.
        instruction: &'static str,
        /// Where, in bytes from the front.
        offset: usize,
    },
    /// It is for another number of inputs or outputs.
    Count {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// As the module says.
        program: i64,
        /// As the configuration says.
        configured: usize,
    },
    /// Its first state is larger than allowed.
    StateTooLarge {
        /// Bytes that it has.
        bytes: usize,
        /// Most bytes.
        allowed: usize,
    },
    /// It cannot be set up within its limits.
    SetUp(String),
    /// It fails before its first cycle.
    Beginning {
        /// The function in which it does.
        function: &'static str,
        /// Why.
        cause: Cause,
    },
}

impl Problem {
    pub(super) fn set_up(error: &dyn fmt::Display, memory: usize) -> Self {
        Self::SetUp(format!("{error:#}, with {memory} bytes of memory allowed"))
    }
}

/// A part of WebAssembly that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Vector instructions.
    Simd,
    /// Threads, atomic instructions, shared memories.
    Threads,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(cause) => write!(f, "cannot be read: {cause}"),
            Self::FileTooLarge { bytes, allowed } => write!(
                f,
                "has {bytes} bytes, and a module may have {allowed}; build it without debug information (strip it)"
            ),
            Self::Kind(kind) => write_kind(f, *kind),
            Self::EngineAbsent(engine) => write!(
                f,
                "is to be run by {engine}, and this program was built without it; build it with `cargo build --release --features \
                 {engine}`, or set engine = \"wasmi\""
            ),
            Self::Invalid { offset, cause } => write!(
                f,
                "is no valid WebAssembly module: {cause} (at byte {offset}); it may be cut or damaged: build or copy it again"
            ),
            Self::Needs { feature, offset } => write_needs(f, *feature, *offset),
            Self::UnknownImport { import, what } => write_unknown(f, import, what),
            Self::ImportType {
                name,
                given,
                wanted,
            } => write!(
                f,
                "imports bumpless.{name} as {wanted}, and it is {given}; declare it so (spec/program.md, G-22)"
            ),
            Self::MissingExport { name, command } => write_missing(f, name, *command),
            Self::ExportType { name, wanted } => write!(
                f,
                "exports {name} with another type than {wanted}; declare it so (spec/program.md, G-21)"
            ),
            Self::Unmovable {
                instruction,
                offset,
            } => write!(
                f,
                "uses {instruction} (at byte {offset}), whose effect no state shows, so that a successor would not have it; \
                 build without passive segments (no threads, no split of data)"
            ),
            Self::Count {
                what,
                program,
                configured,
            } => write!(
                f,
                "is for {program} {what} as its bumpless_{what} says, and {configured} are configured; \
                 name as many {what} as the program has"
            ),
            Self::StateTooLarge { bytes, allowed } => write!(
                f,
                "begins with a state of {bytes} bytes, and {allowed} are allowed; raise state_max, or give the program less \
                 memory"
            ),
            Self::SetUp(cause) => write!(
                f,
                "cannot be set up: {cause}; give it less memory, or allow more"
            ),
            Self::Beginning { function, cause } => {
                write!(f, "fails before its first cycle, in {function}: {cause}")
            }
        }
    }
}

fn write_kind(f: &mut fmt::Formatter<'_>, kind: Kind) -> fmt::Result {
    write!(f, "is {kind}")?;
    f.write_str(match kind {
        Kind::WasmText => "; translate it first: wat2wasm makes a module of it",
        Kind::WasmComponent => {
            "; build a core module instead (for Rust: --target wasm32-unknown-unknown)"
        }
        _ => " and no WebAssembly module; give the .wasm file that your compiler makes",
    })
}

fn write_needs(f: &mut fmt::Formatter<'_>, feature: Feature, offset: usize) -> fmt::Result {
    match feature {
        Feature::Simd => write!(
            f,
            "uses vector instructions (SIMD, at byte {offset}), which are not given; build without them (no -msimd128, no \
             target feature simd128)"
        ),
        Feature::Threads => write!(
            f,
            "needs threads (atomic instruction or shared memory, at byte {offset}); a program has one thread, since no state \
             could be captured of several: build without threads"
        ),
    }
}

fn write_unknown(f: &mut fmt::Formatter<'_>, import: &str, what: &str) -> fmt::Result {
    write!(
        f,
        "imports the {what} {import}, which Bumpless does not give; "
    )?;
    let module = import.split('.').next().unwrap_or_default();
    let hint = match module {
        _ if module.starts_with("wasi") => {
            "a program has no files, clock or random numbers (G-4, G-5): build it for wasm32-unknown-unknown or freestanding \
             and leave out what needs them"
        }
        "env" if import == "env.abort" => {
            "for AssemblyScript, compile with --use abort= and --runtime stub"
        }
        "bumpless" => {
            "take the interface of spec/program.md (G-22), or a version of Bumpless that has it"
        }
        _ if module.starts_with("wbg") || module.contains("wbindgen") => {
            "build without wasm-bindgen"
        }
        _ if what == "memory" => "let the module have its memory itself",
        _ => {
            "leave it out, or define it in the program; what is given stands in spec/program.md (G-22)"
        }
    };
    f.write_str(hint)
}

fn write_missing(f: &mut fmt::Formatter<'_>, name: &str, command: bool) -> fmt::Result {
    write!(
        f,
        "exports no function {name}, which is called in each cycle; "
    )?;
    f.write_str(match command {
        true => {
            "it exports _start, as a program that runs once does: build it as a library (Rust: crate type cdylib; C: \
             -mexec-model=reactor) and export cycle"
        }
        false => "export one without parameters and results (spec/program.md, G-21)",
    })
}

/// Why one cycle failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The program stopped by itself.
    Trap(TrapKind),
    /// It used the interface wrongly.
    Misuse(Misuse),
    /// It was not ready in time.
    Time(Unanswered),
    /// It took too many steps.
    Steps {
        /// The limit.
        limit: u64,
    },
    /// It wanted more memory.
    Memory {
        /// Bytes that it wanted.
        wanted: usize,
        /// The limit.
        limit: usize,
    },
    /// Its state became larger than allowed.
    State {
        /// Bytes of the state.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// It says by this number that it makes nothing of the state of the version before.
    NotConverted(i32),
    /// An earlier cycle failed, and neither was a state loaded since nor was it reset.
    Torn,
}

impl Cause {
    /// What it is to an executor.
    pub fn kind(&self) -> ProgramFaultKind {
        match self {
            Self::Trap(TrapKind::OutOfSystemMemory) | Self::Memory { .. } | Self::State { .. } => {
                ProgramFaultKind::Memory
            }
            Self::Trap(_) => ProgramFaultKind::Trap,
            Self::Misuse(_) | Self::NotConverted(_) => ProgramFaultKind::WrongAnswer,
            Self::Time(unanswered) => unanswered.kind(),
            Self::Steps { .. } => ProgramFaultKind::Overrun,
            Self::Torn => ProgramFaultKind::NotRunning,
        }
    }
}

/// What stopped a program that stopped by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapKind {
    /// It ran into its own `unreachable`: a panic or a failed assertion, mostly.
    Unreachable,
    /// It read or wrote beyond its memory.
    MemoryBounds,
    /// It used a table beyond its end.
    TableBounds,
    /// It called a null reference.
    NullCall,
    /// It called a function of another type.
    CallType,
    /// It divided an integer by zero.
    DivisionByZero,
    /// The result of an integer operation does not fit.
    IntegerOverflow,
    /// A float has no integer: NaN, infinite or too large.
    FloatToInteger,
    /// Its calls went too deep.
    StackOverflow,
    /// The computer has no memory left.
    OutOfSystemMemory,
    /// Something else that its engine reports.
    Other,
}

/// A wrong use of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// An index or a count beyond what there is.
    Index {
        /// The import that was called.
        import: &'static str,
        /// What it was called with.
        index: u32,
        /// How many there are.
        there_are: usize,
    },
    /// A range outside the first memory.
    Address {
        /// The import that was called.
        import: &'static str,
        /// First byte.
        address: u32,
        /// Number of bytes.
        length: u64,
    },
    /// It asked for the state of the version before where there is none.
    NoOld {
        /// The import that was called.
        import: &'static str,
    },
    /// It asked for a value that the version before does not export.
    NoName {
        /// The import that was called.
        import: &'static str,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trap(trap) => write!(f, "{trap}"),
            Self::Misuse(misuse) => write!(f, "{misuse}"),
            Self::Time(unanswered) => write!(f, "{unanswered}"),
            Self::Steps { limit } => write!(
                f,
                "it was not ready after {limit} steps, its limit, and was stopped; it may loop for ever, or needs a higher \
                 limit"
            ),
            Self::Memory { wanted, limit } => write!(
                f,
                "it wanted {wanted} bytes of memory, and {limit} are allowed; it may take memory in each cycle and never give \
                 it back, or needs a higher limit"
            ),
            Self::State { bytes, limit } => write!(
                f,
                "its state has {bytes} bytes, and {limit} are allowed; raise state_max, or let it change less of its memory"
            ),
            Self::NotConverted(number) => {
                write!(f, "its bumpless_convert returned {number} instead of 0")
            }
            Self::Torn => f.write_str(
                "an earlier cycle failed; it goes on only from a state that is loaded, or from the beginning",
            ),
        }
    }
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "it gave up (unreachable): a panic or an assertion; see its last message, if it logs one",
            Self::MemoryBounds => "it used an address beyond its memory; look for an index out of range or a wrong pointer",
            Self::TableBounds => "it called through a table beyond its end; look for a wrong function pointer",
            Self::NullCall => "it called through a null function pointer",
            Self::CallType => "it called through a function pointer of another type",
            Self::DivisionByZero => "it divided an integer by zero; check the divisor first",
            Self::IntegerOverflow => "the result of an integer division does not fit",
            Self::FloatToInteger => {
                "it made an integer of a number that has none (NaN, infinite or too large); limit it first"
            }
            Self::StackOverflow => "its calls went too deep; look for an endless recursion",
            Self::OutOfSystemMemory => "the computer has no memory left for it",
            Self::Other => "what runs it stopped it",
        })
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index {
                import,
                index,
                there_are,
            } => write!(
                f,
                "it called {import} with {index}, and there are {there_are}; name more in the configuration, or correct the \
                 program"
            ),
            Self::Address {
                import,
                address,
                length,
            } => write!(
                f,
                "it called {import} with {length} bytes at {address}, which are not all in its first memory; correct the \
                 address or the count"
            ),
            Self::NoOld { import } => write!(
                f,
                "it called {import}, and there is no state of a version before but in bumpless_convert; call it there only"
            ),
            Self::NoName { import } => write!(
                f,
                "it called {import} with a name under which the version before exports no global; ask old_has first"
            ),
        }
    }
}

impl std::error::Error for Misuse {}
