//! What the system shows of a running program that no state can hold: descriptors and threads.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kit::Seen;

/// Descriptors below it are those that the host gives: input, output, errors.
const OWN_FROM: u32 = 3;

/// What the process has open besides what the host gave it.
pub(super) fn of_process(id: u32) -> Vec<Seen> {
    let place = PathBuf::from(format!("/proc/{id}"));
    let (mut sockets, mut files) = (0, Vec::new());
    for (number, target) in descriptors(&place) {
        match &*target {
            target if target.starts_with("socket:") => sockets += 1,
            // The state's memory, and what tells of its changes (H-17).
            target if is_the_hosts(target) => {}
            target if target.starts_with('/') && is_written(&place, number) => {
                files.push(target.to_owned());
            }
            _ => {}
        }
    }
    let mut seen = Vec::new();
    if sockets > 0 {
        seen.push(Seen::Sockets(sockets));
    }
    if !files.is_empty() {
        seen.push(Seen::Files(files));
    }
    let threads = fs::read_dir(place.join("task")).map_or(1, Iterator::count);
    if threads > 1 {
        seen.push(Seen::Threads(threads));
    }
    let children = fs::read_to_string(place.join(format!("task/{id}/children")));
    let children = children.map_or(0, |text| text.split_whitespace().count());
    if children > 0 {
        seen.push(Seen::Processes(children));
    }
    seen
}

fn is_the_hosts(target: &str) -> bool {
    target.starts_with("/memfd:bumpless")
        || target.starts_with("/proc/")
        || target == "anon_inode:[userfaultfd]"
        || target == "/dev/null"
}

/// Number and target of each descriptor that is the program's own.
fn descriptors(place: &Path) -> Vec<(u32, String)> {
    let entries = fs::read_dir(place.join("fd")).into_iter().flatten();
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            let target = fs::read_link(entry.path()).ok()?;
            (number >= OWN_FROM).then(|| (number, target.to_string_lossy().into_owned()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Whether the descriptor may be written to.
fn is_written(place: &Path, number: u32) -> bool {
    let info = fs::read_to_string(place.join(format!("fdinfo/{number}"))).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    // O_WRONLY and O_RDWR.
    flags.is_some_and(|flags| flags & 3 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_sockets_and_files_of_a_process_are_seen_and_what_is_only_read_is_not() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let place = std::env::temp_dir().join(format!("bumpless-outside-{}", std::process::id()));
        let written = fs::File::create(&place).unwrap();
        let read = fs::File::open("/etc/passwd").unwrap();
        let seen = of_process(std::process::id());
        assert!(
            seen.iter()
                .any(|it| matches!(it, Seen::Sockets(count) if *count > 0)),
            "{seen:?}"
        );
        let files: Vec<_> = seen
            .iter()
            .filter_map(|it| match it {
                Seen::Files(files) => Some(files.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        assert!(
            files.contains(&place.display().to_string())
                && !files.contains(&"/etc/passwd".to_owned()),
            "{files:?}"
        );
        drop((socket, written, read));
        fs::remove_file(place).unwrap();
    }
}
