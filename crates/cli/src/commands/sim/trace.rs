//! Whether a trace can be written where it was asked for.

use std::fs::metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::output::Failure;

/// Refuses a trace of several runs, and one whose capture and event log are one file.
pub fn check(path: &Path, several: bool) -> Result<(), Failure> {
    if several {
        return Err(Failure::usage(
            "--trace writes one run; give one --seed with it, not --seeds or --until-failure",
        ));
    }
    if path.extension().is_some_and(|end| end == "jsonl") {
        return Err(Failure::usage(
            "--trace names the packet capture; the event log beside it ends in .jsonl: give another ending, such as .pcap",
        ));
    }
    Ok(())
}

/// Refuses a trace at `path` that would take the place of one of the files that are `read`, by whatever name.
pub fn spares(path: &Path, read: [Option<&PathBuf>; 2]) -> Result<(), Failure> {
    for written in [path.to_owned(), path.with_extension("jsonl")] {
        if let Some(source) = read.into_iter().flatten().find(|it| is_same(it, &written)) {
            return Err(Failure::usage(format_args!(
                "--trace would overwrite {}, which this run reads, with {}; give another name, such as trace.pcap",
                source.display(),
                written.display()
            )));
        }
    }
    Ok(())
}

/// Whether both are there and are one file, through whatever links.
fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path| metadata(path).map(|file| (file.dev(), file.ino()));
    matches!((file(one), file(other)), (Ok(one), Ok(other)) if one == other)
}
