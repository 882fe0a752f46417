//! Linux PRP (module `hsr`) in a second kernel: a script beside SRT's program runs all rows in one virtual machine, and tells of each in a line.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::iprp::LabError;
use crate::iprp::torture::TortureOptions;
use crate::iprp::torture::known::{Contestant, Failure, programs};

const PROGRAM: &str = "linux-prp";
/// Without hardware's help a second kernel takes its time.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(50);

/// What the script said, or why it said nothing.
pub struct Prp(Result<Vec<Value>, String>);

/// Runs all rows.
///
/// # Errors
/// It was told to stop.
pub fn linux_prp(
    options: &TortureOptions,
    rows: &[Failure],
    tell: &mut impl FnMut(String),
) -> Result<Prp, LabError> {
    let Some(folder) = programs(options) else {
        let why = "it runs in a second kernel, which is put together apart: bench/peers/iprp/build.sh, then --peers bench/peers/iprp/bin";
        return Ok(Prp(Err(why.into())));
    };
    if rows.is_empty() {
        return Ok(Prp(Ok(Vec::new())));
    }
    tell("Linux PRP in a second kernel".into());
    let mut command = Command::new(folder.join(PROGRAM));
    command.args(rows.iter().map(|row| row.id));
    command
        // So that it can be ended with all that it has started.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Prp(Err(format!(
                "there is no {PROGRAM} in that folder: bench/peers/iprp/build.sh puts it together"
            ))));
        }
        Err(error) => return Ok(Prp(Err(format!("cannot run {PROGRAM}: {error}")))),
    };
    wait(child, options).map(Prp)
}

/// Its lines; it is ended if it takes too long.
fn wait(
    mut child: Child,
    options: &TortureOptions,
) -> Result<Result<Vec<Value>, String>, LabError> {
    let since = Instant::now();
    loop {
        let is_stopped = options.stop.load(Ordering::Acquire);
        if is_stopped || since.elapsed() > PATIENCE {
            // The child has not been waited for, so its number is still its own.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            return match is_stopped {
                true => Err(LabError::Stopped),
                false => Ok(Err(format!(
                    "{PROGRAM} did not end within {} s",
                    PATIENCE.as_secs()
                ))),
            };
        }
        match child.try_wait() {
            Ok(None) => thread::sleep(LOOK),
            _ => break,
        }
    }
    let output = child.wait_with_output().map_err(crate::iprp::impossible)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    Ok(match lines.is_empty() {
        true => Err(format!("{PROGRAM} told nothing ({})", output.status)),
        false => Ok(lines),
    })
}

impl Prp {
    /// What became of a row.
    ///
    /// # Errors
    /// Why nothing did.
    pub fn of(&self, row: &str) -> Result<Contestant, String> {
        let lines = self.0.as_ref().map_err(Clone::clone)?;
        let line = lines.iter().find(|line| line["row"] == row);
        let line = line.ok_or("its script has no such row")?;
        if let Some(why) = line["absent"].as_str() {
            return Err(why.into());
        }
        let number = |what: &str| line[what].as_u64().unwrap_or(0) as usize;
        let mut it = Contestant {
            name: "Linux PRP".into(),
            version: line["version"].as_str().unwrap_or("unknown").into(),
            sent: number("sent"),
            lost: number("lost"),
            doubled: number("doubled"),
            note: "in a second kernel, emulated: times mean nothing there; IEC 62439-3 tolerates a double".into(),
            ..Contestant::default()
        };
        it.held = it.is_as_promised();
        Ok(it)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_second_kernel_says_is_judged_and_what_it_lacks_is_said() {
        let lines = vec![
            json!({"row": "a", "version": "Linux 6.12", "sent": 100, "lost": 3, "doubled": 0}),
            json!({"row": "b", "absent": "it has no netem"}),
            json!({"row": "c", "version": "Linux 6.12", "sent": 100, "lost": 0, "doubled": 0}),
        ];
        let prp = Prp(Ok(lines));
        let a = prp.of("a").unwrap();
        assert!(!a.held && a.lost == 3);
        assert_eq!(prp.of("b").unwrap_err(), "it has no netem");
        assert!(prp.of("c").unwrap().held);
        assert!(prp.of("d").is_err());
        assert!(Prp(Err("why".into())).of("a").is_err());
    }
}
