//! What is started, and within which limits.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bumpless_base::Duration;
use ring::digest::{Context, SHA256};

/// A program as the system starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The file; one without a folder is looked for in `PATH`, as an interpreter is.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The file that `program` is to start, one of its arguments; `None`: `program` is what is meant.
    pub script: Option<PathBuf>,
    /// The folder in which it runs, else the host's.
    pub folder: Option<PathBuf>,
    /// The priority among real-time threads (SCHED_FIFO) that its process gets when it has begun, where that is permitted.
    pub realtime: Option<u8>,
    /// The SHA-256 that the program has, which is the last of these files; checked at each start.
    pub hash: Option<(PathBuf, Hash)>,
    /// What it prints is thrown away, else it appears on the host's standard error.
    pub silent: bool,
}

impl Command {
    /// A file that is started without arguments.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            script: None,
            folder: None,
            realtime: None,
            hash: None,
            silent: false,
        }
    }

    /// With one more argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// With the file that it is to start as one more argument: an interpreter's script.
    #[must_use]
    pub fn script(mut self, script: impl Into<PathBuf>) -> Self {
        let script = script.into();
        self.script = Some(script.clone());
        self.argument(script)
    }

    /// How people call it: the script of an interpreter, else the program itself.
    pub fn name(&self) -> String {
        let file = self.script.as_ref().unwrap_or(&self.program);
        file.display().to_string()
    }

    /// A path as the program sees it.
    fn seen(&self, path: &Path) -> PathBuf {
        self.folder.as_deref().unwrap_or(Path::new("")).join(path)
    }

    /// The file that makes this program what it is: the script, else the program, where the system finds it.
    pub(crate) fn file(&self) -> PathBuf {
        if let Some(script) = &self.script {
            return self.seen(script);
        }
        if self.program.components().count() > 1 {
            return self.program.clone();
        }
        let folders = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&folders).map(|folder| folder.join(&self.program));
        let mut found = found.filter(|path| path.is_file());
        found.next().unwrap_or_else(|| self.program.clone())
    }
}

/// How many values and bytes pass between host and program, as the configuration names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of inputs.
    pub inputs: usize,
    /// Number of outputs.
    pub outputs: usize,
    /// Most bytes that the state may have.
    pub state_max: usize,
}

/// What a program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time for one cycle.
    pub execute: Duration,
    /// Time from the start of the process until it is ready for the first cycle.
    pub start: Duration,
    /// Address space of its process in bytes, shared memory included; `None`: as much as the system gives.
    pub memory: Option<u64>,
    /// From so many bytes of state on only what changed of it is copied after a cycle, where the system can (H-17).
    pub track_from: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            execute: Duration::from_millis(5),
            start: Duration::from_secs(5),
            memory: None,
            track_from: 128 * 1024,
        }
    }
}

/// A SHA-256, by which two nodes know that they have the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(bytes);
        Self::finished(context)
    }

    /// Of the file at `path`.
    ///
    /// # Errors
    /// It is no regular file, or cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        // Before it is opened: a pipe would be waited for, and a device has no end.
        if !path.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let (mut file, mut context) = (File::open(path)?, Context::new(&SHA256));
        let mut part = [0; 65536];
        loop {
            match file.read(&mut part)? {
                0 => return Ok(Self::finished(context)),
                len => context.update(&part[..len]),
            }
        }
    }

    fn finished(context: Context) -> Self {
        let digest = context.finish();
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        Self(hash)
    }

    /// The first 8 bytes, little endian.
    pub fn short(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// From 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_what_sha256sum_prints() {
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hash::of(b"abc").to_string(), known);
        assert_eq!(Hash::parse(known), Some(Hash::of(b"abc")));
        assert_eq!(Hash::parse(&known[1..]), None);
        assert_eq!(Hash::parse(&known.replace('b', "+")), None);
    }

    #[test]
    fn what_is_no_regular_file_has_no_hash_and_is_not_read() {
        for path in ["/dev/zero", "/"] {
            let refused = Hash::of_file(Path::new(path)).unwrap_err();
            assert!(refused.to_string().contains("regular file"), "{refused}");
        }
    }
}
