//! The plant's log: one JSON object per line, told apart by `type` (spec/field.md, F-24 and F-25).
//!
//! A bounded queue leads to the thread that writes the file. When the queue is full, lines are
//! dropped and counted; the server never waits for the disk.

use super::{PlantError, PlantOptions};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const QUEUE: usize = 16_384;
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// The first line of a plant.
    Start {
        /// Version of this format, 1.
        version: u32,
        /// Seconds of process time per second.
        time_scale: f64,
        /// Whether older epochs are rejected.
        check_epoch: bool,
        /// Standard deviation of the sensors' noise in cm.
        noise_cm: f64,
    },
    /// The process at one moment.
    Levels {
        /// Nanoseconds of this machine's monotonic clock.
        at_ns: u64,
        /// Process time in s.
        process_s: f64,
        /// True levels in cm, without sensor noise.
        levels_cm: [f64; 4],
        /// Pump voltages in V.
        voltages: [f64; 2],
    },
    /// Inputs that a device gave which has other inputs after each accepted write.
    Inputs {
        /// Nanoseconds of this machine's monotonic clock.
        at_ns: u64,
        /// The cycle of the last accepted write, which decides about them; 0 before the first.
        after: u64,
    },
    /// A write that came.
    Write {
        /// Nanoseconds of this machine's monotonic clock.
        at_ns: u64,
        /// Node that wrote.
        writer: u8,
        /// Epoch of the write.
        epoch: u32,
        /// Cycle that computed the outputs.
        cycle: u64,
        /// The outputs as they came; `null` where a value was not finite.
        outputs: Vec<Option<f64>>,
        /// Whether they took effect.
        accepted: bool,
        /// Why not.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<Rejection>,
    },
    /// The last line of a plant.
    End {
        /// Lines that were dropped because the file was too slow.
        lines_lost: u64,
    },
}

/// Why a write had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// A later epoch has been accepted.
    OlderEpoch,
    /// A later cycle of the same epoch has been accepted.
    OlderCycle,
    /// An output is not a finite number.
    NotFinite,
}

/// The queue to the log file, or nothing.
pub(super) struct Log {
    queue: Option<SyncSender<Line>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    path: PathBuf,
    lines_lost: u64,
}

impl Log {
    pub(super) fn open(path: Option<PathBuf>, options: &PlantOptions) -> Result<Self, PlantError> {
        let Some(path) = path else {
            return Ok(Self {
                queue: None,
                writer: None,
                path: PathBuf::new(),
                lines_lost: 0,
            });
        };
        let file = append(&path).map_err(|error| PlantError::Log(path.clone(), error))?;
        let (queue, lines) = sync_channel(QUEUE);
        let writer = std::thread::Builder::new()
            .name("plant-log".into())
            .spawn(move || write_lines(&lines, BufWriter::new(file)))
            .map_err(PlantError::System)?;
        let mut log = Self {
            queue: Some(queue),
            writer: Some(writer),
            path,
            lines_lost: 0,
        };
        log.put(Line::Start {
            version: 1,
            time_scale: options.time_scale,
            check_epoch: options.check_epoch,
            noise_cm: options.noise,
        });
        Ok(log)
    }

    /// Queues a line; never waits.
    pub(super) fn put(&mut self, line: Line) {
        if let Some(queue) = &self.queue
            && queue.try_send(line).is_err()
        {
            self.lines_lost += 1;
        }
    }

    /// Writes the last line and waits until the file is whole.
    pub(super) fn close(&mut self) -> Result<(), PlantError> {
        if let Some(queue) = self.queue.take() {
            // The server is over: waiting for room does no harm. A dead writer tells below.
            let _ = queue.send(Line::End {
                lines_lost: self.lines_lost,
            });
        }
        match self.writer.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(PlantError::Log(self.path.clone(), error)),
            Some(Err(_panic)) => {
                let error = io::Error::other("the writing thread ended early");
                Err(PlantError::Log(self.path.clone(), error))
            }
        }
    }
}

/// The file at `path`, at its end, on a line of its own: a plant that was killed may have left half a line.
fn append(path: &Path) -> io::Result<File> {
    let mut file = File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    let mut last = [b'\n'];
    // Pipes and devices have no end.
    let is_begun = file.seek(SeekFrom::End(-1)).is_ok() && file.read_exact(&mut last).is_ok();
    if is_begun && last != [b'\n'] {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

fn write_lines(lines: &Receiver<Line>, mut file: impl Write) -> io::Result<()> {
    let mut flushed = Instant::now();
    loop {
        match lines.recv_timeout(FLUSH_INTERVAL) {
            Ok(line) => {
                serde_json::to_writer(&mut file, &line)?;
                file.write_all(b"\n")?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return file.flush(),
        }
        if flushed.elapsed() >= FLUSH_INTERVAL {
            file.flush()?;
            flushed = Instant::now();
        }
    }
}
