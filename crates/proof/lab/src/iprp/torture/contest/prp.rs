//! Linux PRP (module `hsr`) in a second kernel: a script beside SRT's program runs all rows in one virtual machine, and tells of each in a line.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::demo::processes::{Process, describe};
use crate::iprp::torture::TortureOptions;
use crate::iprp::torture::known::{Contestant, Failure, programs};
use crate::iprp::{LabError, impossible};

const PROGRAM: &str = "linux-prp";
/// Without hardware's help a second kernel takes its time.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(50);

/// Lines of the script, and what is to be said of a row of which there is none; or why there are no lines at all.
pub struct Prp(Result<(Vec<Value>, String), String>);

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
        return Ok(Prp(Ok((Vec::new(), String::new()))));
    }
    tell("Linux PRP in a second kernel".into());
    let mut command = Command::new(folder.join(PROGRAM));
    command.args(rows.iter().map(|row| row.id));
    let words = tempfile::tempdir().map_err(impossible)?;
    // It ends with this program, whatever ends that, and QEMU with it.
    let process = match Process::spawn(command, words.path(), PROGRAM) {
        Ok(process) => process,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Prp(Err(format!(
                "there is no {PROGRAM} in that folder: bench/peers/iprp/build.sh puts it together"
            ))));
        }
        Err(error) => return Ok(Prp(Err(format!("cannot run {PROGRAM}: {error}")))),
    };
    let end = wait(process, options)?;
    let said = std::fs::read(words.path().join(format!("{PROGRAM}.out"))).unwrap_or_default();
    Ok(Prp(Ok(read(&String::from_utf8_lossy(&said), &end))))
}

/// How it ended; it is ended if it takes too long.
fn wait(mut process: Process, options: &TortureOptions) -> Result<String, LabError> {
    let since = Instant::now();
    loop {
        if let Some(status) = process.ended() {
            return Ok(match status.code() {
                // What timeout(1) says.
                Some(124) => "its time was up".into(),
                _ => describe(status),
            });
        }
        if since.elapsed() > PATIENCE {
            return Ok(format!("it did not end within {} s", PATIENCE.as_secs()));
        }
        super::sleep(LOOK, &options.stop)?;
    }
}

/// Lines of rows, and how it ended with the last of the other ones.
fn read(said: &str, end: &str) -> (Vec<Value>, String) {
    let row = |line: &str| {
        let row = serde_json::from_str::<Value>(line).ok();
        row.filter(|it| it["row"].is_string())
    };
    let mut others = said.lines().filter(|line| row(line).is_none());
    let last = others.rfind(|line| !line.trim().is_empty());
    let why = format!(
        "{PROGRAM} told nothing of it ({end}); its last words: {}",
        last.unwrap_or("none")
    );
    (said.lines().filter_map(row).collect(), why)
}

impl Prp {
    /// What became of a row.
    ///
    /// # Errors
    /// Why nothing did.
    pub fn of(&self, row: &str) -> Result<Contestant, String> {
        let (lines, why) = self.0.as_ref().map_err(Clone::clone)?;
        let line = lines.iter().find(|line| line["row"] == row);
        let line = line.ok_or_else(|| why.clone())?;
        if let Some(why) = line["absent"].as_str() {
            return Err(why.into());
        }
        let number = |what: &str| {
            let number = line[what].as_u64().map(|it| it as usize);
            number.ok_or_else(|| format!("its script does not tell '{what}': {line}"))
        };
        let mut it = Contestant {
            name: "Linux PRP".into(),
            version: line["version"].as_str().unwrap_or("unknown").into(),
            sent: number("sent")?,
            lost: number("lost")?,
            doubled: number("doubled")?,
            untimed: true,
            note: "in a second kernel, emulated: times mean nothing there; IEC 62439-3 tolerates a double".into(),
            ..Contestant::default()
        };
        it.held = it.is_as_promised();
        Ok(it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = r#"SeaBIOS
{"row": "a", "version": "Linux 6.12", "sent": 100, "lost": 3, "doubled": 0}
{"row": "b", "absent": "it has no netem"}
{"row": "c", "version": "Linux 6.12", "sent": 100, "lost": 0, "doubled": 0}
{"row": "e", "version": "Linux 6.12", "sent": 100, "lost": -1, "doubled": 0}
Kernel panic
"#;

    #[test]
    fn what_the_second_kernel_says_is_judged_and_what_it_lacks_is_said() {
        let prp = Prp(Ok(read(SAID, "its time was up")));
        let a = prp.of("a").unwrap();
        assert!(!a.held && a.lost == 3);
        assert_eq!(prp.of("b").unwrap_err(), "it has no netem");
        assert!(prp.of("c").unwrap().held);
        let why = prp.of("d").unwrap_err();
        assert!(
            why.contains("time was up") && why.contains("panic"),
            "{why}"
        );
        assert!(prp.of("e").unwrap_err().contains("lost"));
        assert!(Prp(Err("why".into())).of("a").is_err());
    }
}
