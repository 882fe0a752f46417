//! Reception by AF_XDP beside that by sockets, both behind the guard's program: one-way times, processor time, the highest rate, states of
//! 1 MB and an urgent flow beside another one. README.md says how it is run and what it says.

mod cell;
#[allow(dead_code)]
#[path = "../../../crates/linux/reception/src/layout.rs"]
mod layout;
#[allow(dead_code)]
#[path = "../../../crates/proof/bench/src/network/namespace.rs"]
mod namespace;
mod plan;
mod program;
mod report;
mod ring;
mod sender;
mod threads;
mod way;
mod world;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

const USAGE: &str = "afxdp DIRECTORY [ROUNDS] | afxdp --show FILE";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--show", file] => show(file),
        [directory] => measure(directory, 5),
        [directory, rounds] => rounds
            .parse()
            .map_err(|_| USAGE.to_owned())
            .and_then(|rounds| measure(directory, rounds)),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("afxdp: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show(file: &str) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let run = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    print!("{}", report::tables(&run));
    Ok(())
}

fn measure(directory: &str, rounds: u64) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{directory}: {error}"))?;
    let load = first_line("/proc/loadavg");
    let cells = plan::measure(rounds)?;
    let run = json!({
        "schema": "bumpless.afxdp/1",
        "commit": said("git", &["rev-parse", "--short=12", "HEAD"]),
        "command": std::env::args().collect::<Vec<_>>().join(" "),
        "host": format!("{}, {} x {}", said("uname", &["-sr"]), processors(), model()),
        "load": { "before": load, "after": first_line("/proc/loadavg") },
        "rounds": rounds,
        "cells": cells,
    });
    let tables = report::tables(&run);
    print!("{tables}");
    let write = |name: &str, text: &str| {
        let path = Path::new(directory).join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write("tables.txt", &tables)?;
    write("run.json", &Value::to_string(&run))
}

fn first_line(file: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(
        |_| String::new(),
        |it| String::from_utf8_lossy(&it.stdout).trim().to_owned(),
    )
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(0, Into::into)
}

fn model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|it| it.starts_with("model name"));
    let model = line.and_then(|it| it.split_once(':'));
    model.map_or_else(String::new, |(_, name)| name.trim().to_owned())
}
