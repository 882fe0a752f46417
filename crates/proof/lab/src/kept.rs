//! What is kept of a command of `bumpless wan` that measures: the head that every result has, and how one is written and read again.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bumpless_bench::output_folder::OutputFolder;
use bumpless_bench::result::{Host, Run as BenchRun};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Most bytes of a kept result that are read.
const FILE_MAX: u64 = 256 << 20;

/// What every result begins with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The form and its version.
    pub schema: String,
    /// Whether everything that was planned was measured.
    #[serde(default)]
    pub complete: bool,
    /// When it began, seconds since 1970.
    pub began_unix_s: u64,
    /// How long it took, seconds.
    #[serde(default)]
    pub took_s: f64,
    /// The command line.
    pub command: Vec<String>,
    /// Version of Bumpless.
    pub version: String,
    /// The commit that was checked out where the command ran, if any.
    pub commit: Option<String>,
    /// The computer.
    pub host: Host,
}

impl Head {
    /// Of what begins at this instant, in this form.
    pub fn begin(schema: &str) -> Self {
        let run = BenchRun::begin("");
        Self {
            schema: schema.to_owned(),
            began_unix_s: run.began_unix_s,
            command: run.command,
            version: run.version,
            commit: run.commit,
            host: run.host,
            ..Self::default()
        }
    }

    /// Which program, and where, for people.
    pub fn told(&self) -> String {
        let host = &self.host;
        format!(
            "Bumpless {} ({}), {} x {}, {}, load at the beginning {}",
            self.version,
            self.commit.as_deref().unwrap_or("no checkout"),
            host.processors,
            host.processor,
            host.kernel,
            host.load
        )
    }

    /// What is said at its end of how long it took.
    pub fn took(&self) -> String {
        let complete = match self.complete {
            true => "",
            false => "; stopped before its end",
        };
        format!("{:.0} s{complete}", self.took_s)
    }
}

/// A result that is kept.
pub trait Kept: Serialize + DeserializeOwned {
    /// The name of its schema.
    const SCHEMA: &'static str;
    /// The file that holds all of it.
    const FILE: &'static str;

    /// Its head.
    fn head(&self) -> &Head;

    /// Whether every promise held, as far as it went.
    fn held(&self) -> bool;

    /// Whether everything that was planned was measured.
    fn is_complete(&self) -> bool {
        self.head().complete
    }

    /// All of it for people.
    fn text(&self) -> String;

    /// What is written beside [`Self::FILE`]: names of files, and what is in them.
    fn others(&self) -> Vec<(&'static str, String)>;
}

/// Writes all files of a result into `folder`.
///
/// # Errors
/// One cannot be written.
pub fn write<K: Kept>(result: &K, folder: &OutputFolder) -> Result<(), String> {
    let json = serde_json::to_string(result).map_err(|error| error.to_string())?;
    folder.write([(K::FILE, json)].into_iter().chain(result.others()))
}

/// What is in a file.
fn text_of(file: &Path) -> Result<String, String> {
    let told = |error: std::io::Error| error.to_string();
    let mut text = String::new();
    let mut file = File::open(file).map_err(told)?.take(FILE_MAX + 1);
    file.read_to_string(&mut text).map_err(told)?;
    match text.len() as u64 > FILE_MAX {
        true => Err(format!("it is larger than {} MiB", FILE_MAX >> 20)),
        false => Ok(text),
    }
}

/// A result that was kept.
///
/// # Errors
/// The file cannot be read, or was written by something else.
pub fn read<K: Kept>(file: &Path) -> Result<K, String> {
    let (name, schema) = (file.display(), K::SCHEMA);
    let text = text_of(file).map_err(|why| {
        format!("cannot read {name}: {why}; give a {} that --output has written, unpacked with `xz -d` if it is packed", K::FILE)
    })?;
    let wrong = |why: String| {
        format!(
            "{name} is no kept result of this version ({schema}): {why}; give a {} that --output has written",
            K::FILE
        )
    };
    let kept: K = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let found = &kept.head().schema;
    match found == schema {
        true => Ok(kept),
        false => Err(wrong(format!("its schema is {found:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Study;

    #[test]
    fn a_file_that_is_too_large_is_said_to_be_that() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("study.json");
        File::create(&path).unwrap().set_len(FILE_MAX + 1).unwrap();
        let why = read::<Study>(&path).unwrap_err();
        assert!(why.contains("larger than 256 MiB"), "{why}");
    }
}
