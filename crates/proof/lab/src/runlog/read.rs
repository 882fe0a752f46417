//! Reads the logs that the processes of a run wrote, one JSON object per line.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use bumpless_controller::plant::log::Line;
use serde::de::DeserializeOwned;

use super::{Event, Read, Sample, Write};

/// A log that cannot be used.
#[derive(Debug)]
pub struct LogError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1; zero: the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub wrong: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(
                f,
                "cannot read the log {}: {}",
                self.path.display(),
                self.wrong
            ),
            line => write!(
                f,
                "{}:{line}: not a line of this log: {}",
                self.path.display(),
                self.wrong
            ),
        }
    }
}

impl std::error::Error for LogError {}

/// Every line of the file. A last line without its end is what a killed process leaves behind, and
/// is not looked at; anything else that cannot be read is an error.
fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, LogError> {
    let fail = |line, wrong: String| LogError {
        path: path.to_owned(),
        line,
        wrong,
    };
    let text = fs::read(path).map_err(|error| fail(0, error.to_string()))?;
    let whole = text
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    text[..whole]
        .split(|&byte| byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(|(i, line)| serde_json::from_slice(line).map_err(|e| fail(i + 1, e.to_string())))
        .collect()
}

/// The event log of one node's process.
///
/// # Errors
/// If the file cannot be read or a line is no event.
pub fn read_events(path: &Path) -> Result<Vec<Event>, LogError> {
    lines(path)
}

/// What the plant wrote down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlantLog {
    /// Writes in order of time.
    pub writes: Vec<Write>,
    /// The process in order of time, each with its process time in seconds. The plant does not know
    /// set points; they are zero.
    pub samples: Vec<(f64, Sample)>,
    /// Inputs that a program's device has given, in order of time.
    pub reads: Vec<Read>,
    /// Lines that the plant could not write; `None` if it did not end in order and so did not say.
    pub lines_lost: Option<u64>,
}

/// The log of the plant.
///
/// # Errors
/// If the file cannot be read or a line is none of a plant's log.
pub fn read_plant(path: &Path) -> Result<PlantLog, LogError> {
    let mut log = PlantLog::default();
    for line in lines::<Line>(path)? {
        match line {
            Line::Start { .. } => {}
            Line::Inputs { at_ns, after } => log.reads.push(Read {
                time_ns: at_ns,
                row: after,
            }),
            Line::Levels {
                at_ns,
                process_s,
                levels_cm,
                ..
            } => {
                let sample = Sample {
                    time_ns: at_ns,
                    levels: levels_cm,
                    set_points: [0.0; 2],
                };
                log.samples.push((process_s, sample));
            }
            Line::Write {
                at_ns,
                writer,
                epoch,
                cycle,
                outputs,
                accepted,
                ..
            } => {
                log.writes.push(Write {
                    time_ns: at_ns,
                    writer: writer.into(),
                    epoch: epoch.into(),
                    cycle,
                    outputs: outputs
                        .into_iter()
                        .map(|value| value.unwrap_or(f64::NAN))
                        .collect(),
                    accepted,
                });
            }
            Line::End { lines_lost } => log.lines_lost = Some(lines_lost),
        }
    }
    Ok(log)
}
