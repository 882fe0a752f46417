//! A program's file, whatever kind it is of, as something of which instances can be made: what the kit tests, and what
//! the demonstration runs.

mod outside;
mod process;
mod suspects;
mod unfit;
#[cfg(feature = "wasm")]
mod wasm;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bumpless_base::Duration;
use bumpless_controller::Application;
use bumpless_controller::retain::Retained;
use bumpless_sidecar::{Hash, plc};

use crate::kit::Seen;
use crate::{Kind, Shape};

pub use process::Started;
pub use unfit::{Unfit, UnfitCause};

/// A program that is named, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its file.
    pub file: PathBuf,
    /// What starts the file, as an interpreter; empty: the file itself, or `python3` for a script in Python that the
    /// system does not start. Processes only.
    pub command: Vec<String>,
    /// Arguments behind the file. Processes only.
    pub arguments: Vec<String>,
    /// How many inputs it has, if its user says so.
    pub inputs: Option<usize>,
    /// How many outputs it has, if its user says so.
    pub outputs: Option<usize>,
    /// Its period, if its user says so.
    pub period: Option<Duration>,
    /// What a cycle may take, if its user says so.
    pub limit: Option<Duration>,
    /// Most bytes of its state.
    pub state_max: usize,
    /// What runs it, as the configuration names it, if its user says so. Modules only.
    pub engine: Option<String>,
    /// Most bytes of its memory, if its user says so. Modules only.
    pub memory_max: Option<u64>,
}

impl Named {
    /// The program in this file, of which nothing else is known.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            command: Vec::new(),
            arguments: Vec::new(),
            inputs: None,
            outputs: None,
            period: None,
            limit: None,
            state_max: Self::STATE_MAX,
            engine: None,
            memory_max: None,
        }
    }

    /// Most bytes of a state unless said otherwise.
    pub const STATE_MAX: usize = 32 << 20;

    /// The period of a program that runs with any, unless said otherwise.
    pub const PERIOD: Duration = Duration::from_millis(10);

    fn unfit(&self, cause: UnfitCause) -> Unfit {
        Unfit {
            file: self.file.display().to_string(),
            cause,
        }
    }
}

/// How a configuration calls the kind of host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// In the node's process.
    Wasm,
    /// In a process of its own.
    Process,
    /// The same, of a PLC's generated C.
    Plc,
}

impl HostKind {
    /// The word that stands in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wasm => "wasm",
            Self::Process => "process",
            Self::Plc => "plc",
        }
    }
}

/// What makes instances.
enum Maker {
    #[cfg(feature = "wasm")]
    Wasm(wasm::Module),
    Process(process::Process),
}

/// A program of which instances can be made.
pub struct Subject {
    named: Named,
    host: HostKind,
    sha256: Hash,
    shape: Shape,
    period: Duration,
    suspects: Vec<&'static str>,
    retained: Vec<Retained>,
    maker: Maker,
}

impl Subject {
    /// Looks at the file, and at what the program tells of itself: one in a process of its own is started for that, and
    /// given up when nobody waits for it any more.
    ///
    /// # Errors
    /// It is no program, does not begin, or is not what its user says; with what to do about it.
    pub fn open(named: Named, wanted: &dyn Fn() -> bool) -> Result<Self, Unfit> {
        let bytes = read(&named.file).map_err(|cause| named.unfit(cause))?;
        let sha256 = Hash::of(&bytes);
        let host = kind_of(&named.file, &bytes).map_err(|cause| named.unfit(cause))?;
        let retained = match host {
            HostKind::Plc => plc::retained(&bytes),
            HostKind::Wasm | HostKind::Process => Ok(Vec::new()),
        };
        let retained =
            retained.map_err(|damaged| named.unfit(UnfitCause::Unreadable(damaged.to_string())))?;
        let subject = match host {
            #[cfg(feature = "wasm")]
            HostKind::Wasm => wasm::open(named, sha256),
            #[cfg(not(feature = "wasm"))]
            HostKind::Wasm => Err(named.unfit(UnfitCause::WithoutWasm)),
            host => process::open(named, host, sha256, suspects::in_file(host, &bytes), wanted),
        }?;
        Ok(Self {
            retained,
            ..subject
        })
    }

    /// Its retained variables.
    pub fn retained(&self) -> &[Retained] {
        &self.retained
    }

    /// Its file as it was named.
    pub fn file(&self) -> &Path {
        &self.named.file
    }

    /// Which host runs it.
    pub fn host(&self) -> HostKind {
        self.host
    }

    /// The SHA-256 of its file.
    pub fn sha256(&self) -> Hash {
        self.sha256
    }

    /// How many values go in and out, and how large its state may be.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// What runs it, as the configuration names it, if that is not what runs modules unless said otherwise.
    pub fn engine(&self) -> Option<&'static str> {
        match &self.maker {
            #[cfg(feature = "wasm")]
            Maker::Wasm(module) => module.engine(),
            Maker::Process(_) => None,
        }
    }

    /// Most bytes of a module's memory, if that was said.
    pub fn memory_max(&self) -> Option<u64> {
        self.named.memory_max
    }

    /// With which it runs.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// How it is started, if it runs in a process of its own.
    pub fn started(&self) -> Option<&Started> {
        match &self.maker {
            #[cfg(feature = "wasm")]
            Maker::Wasm(_) => None,
            Maker::Process(process) => Some(process.started()),
        }
    }

    /// A new instance in its initial state. Those in processes of their own begin at different times: the second one
    /// not in the same second as the first.
    ///
    /// # Errors
    /// Why there is none.
    pub fn make(&mut self) -> Result<Box<dyn Application>, String> {
        match &mut self.maker {
            #[cfg(feature = "wasm")]
            Maker::Wasm(module) => module.make(self.shape),
            Maker::Process(process) => process.make(self.shape),
        }
    }

    /// What the system shows of the instance that was made last and is still there, and what its file names.
    pub fn look(&self) -> Vec<Seen> {
        let mut seen = match &self.maker {
            #[cfg(feature = "wasm")]
            Maker::Wasm(_) => Vec::new(),
            Maker::Process(process) => process.look(),
        };
        if !self.suspects.is_empty() {
            seen.push(Seen::Names(self.suspects.clone()));
        }
        seen
    }
}

/// Most bytes of a program's file.
pub const FILE_MAX: u64 = 1 << 30;

/// What the program's file at `file` holds: a regular file of at most [`FILE_MAX`] bytes, so that nobody waits for a pipe's other
/// end or for the end of a device.
///
/// # Errors
/// It is none, too long, or the system does not give it.
pub fn read(file: &Path) -> Result<Vec<u8>, UnfitCause> {
    let unreadable = |error: io::Error| UnfitCause::Unreadable(error.to_string());
    let kind = fs::metadata(file).map_err(unreadable)?.file_type();
    if kind.is_dir() {
        return Err(UnfitCause::Folder);
    }
    // Before it is opened: opening a pipe waits.
    if !kind.is_file() {
        return Err(UnfitCause::NotRegular);
    }
    let opened = fs::File::open(file).map_err(unreadable)?;
    if opened.metadata().map_err(unreadable)?.len() > FILE_MAX {
        return Err(UnfitCause::TooLong(FILE_MAX));
    }
    let mut bytes = Vec::new();
    // A length can be wrong by the time of reading.
    let mut bounded = opened.take(FILE_MAX + 1);
    bounded.read_to_end(&mut bytes).map_err(unreadable)?;
    match bytes.len() as u64 > FILE_MAX {
        true => Err(UnfitCause::TooLong(FILE_MAX)),
        false => Ok(bytes),
    }
}

/// Which host runs the file with this content.
fn kind_of(file: &Path, bytes: &[u8]) -> Result<HostKind, UnfitCause> {
    let is_python = file.extension().is_some_and(|ending| ending == "py");
    match Kind::of(bytes) {
        Kind::Wasm | Kind::WasmComponent | Kind::WasmText => Ok(HostKind::Wasm),
        Kind::Elf => {
            judge_elf(bytes)?;
            Ok(match plc::is_built(bytes) {
                true => HostKind::Plc,
                false => HostKind::Process,
            })
        }
        Kind::Script => Ok(HostKind::Process),
        Kind::Unknown if is_python => Ok(HostKind::Process),
        Kind::Unknown => Err(UnfitCause::NoProgram),
    }
}

/// Class, byte order and processor of an ELF file, as its header has them.
fn elf_target(bytes: &[u8]) -> Option<[u8; 4]> {
    let (class, order) = (bytes.get(4)?, bytes.get(5)?);
    let machine = bytes.get(18..20)?;
    Some([*class, *order, machine[0], machine[1]])
}

/// An executable for this computer's processor.
fn judge_elf(bytes: &[u8]) -> Result<(), UnfitCause> {
    const RELOCATABLE: u8 = 1;
    let Some(target) = elf_target(bytes) else {
        return Err(UnfitCause::NoProgram);
    };
    let own = fs::read("/proc/self/exe").ok();
    let own = own.and_then(|own| elf_target(&own));
    if own.is_some_and(|own| own != target) {
        return Err(UnfitCause::OtherProcessor);
    }
    match bytes.get(16) {
        Some(&RELOCATABLE) => Err(UnfitCause::NotLinked),
        // The system would give it to the shell, as it does with everything that it cannot load.
        _ if is_cut(bytes) => Err(UnfitCause::Cut),
        _ => Ok(()),
    }
}

/// Whether one of the two tables of an ELF file of 64 bits lies beyond its end.
fn is_cut(bytes: &[u8]) -> bool {
    let number = |at: usize| {
        let field = bytes.get(at..at + 8)?;
        Some(u64::from_ne_bytes(field.try_into().ok()?))
    };
    let end = bytes.len() as u64;
    [32, 40]
        .map(number)
        .iter()
        .any(|place| place.is_none_or(|place| place > end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_or_endless_is_refused_without_being_read() {
        let told = |file: &str| read(Path::new(file)).unwrap_err();
        assert_eq!(told("/dev/zero"), UnfitCause::NotRegular);
        assert_eq!(told("/"), UnfitCause::Folder);
        // Holes: they take no room, and are not read.
        let large = std::env::temp_dir().join(format!("bumpless-large-{}", std::process::id()));
        let made = fs::File::create(&large).and_then(|file| file.set_len(FILE_MAX + 1));
        let refused = read(&large);
        fs::remove_file(&large).unwrap();
        made.unwrap();
        assert_eq!(refused.unwrap_err(), UnfitCause::TooLong(FILE_MAX));
    }

    #[test]
    fn what_is_no_program_for_this_computer_is_told_by_its_first_bytes() {
        let mut header = fs::read("/proc/self/exe").unwrap();
        let kind = |bytes: &[u8]| kind_of(Path::new("program"), bytes);
        assert_eq!(kind(&header), Ok(HostKind::Process));
        header.truncate(64);
        assert_eq!(kind(&header), Err(UnfitCause::Cut));
        header[16] = 1;
        assert_eq!(kind(&header), Err(UnfitCause::NotLinked));
        header[18] ^= 0xff;
        assert_eq!(kind(&header), Err(UnfitCause::OtherProcessor));
        assert_eq!(kind(b"\x7fELF"), Err(UnfitCause::NoProgram));
        assert_eq!(kind(b"print(1)"), Err(UnfitCause::NoProgram));
        assert_eq!(
            kind_of(Path::new("tank.py"), b"print(1)"),
            Ok(HostKind::Process)
        );
        assert_eq!(kind(b"#!/bin/sh\n"), Ok(HostKind::Process));
        assert_eq!(kind(b"\0asm\x01\0\0\0"), Ok(HostKind::Wasm));
    }
}
