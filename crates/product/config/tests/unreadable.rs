//! Paths that lead to no configuration file: refused by name with a remedy, without waiting or taking memory.

use std::fs::File;
use std::path::Path;

use bumpless_config::{Config, MAX_FILE_LEN, Problem};

/// The one problem of the file at `path`, which names the file.
fn problem(path: &Path) -> Problem {
    let found = Config::load(path).unwrap_err();
    assert_eq!(found.len(), 1, "{found:#?}");
    let named = path.display().to_string();
    assert!(found[0].to_string().starts_with(&named), "{}", found[0]);
    assert!(!found[0].right.is_empty(), "{}", found[0]);
    found.into_iter().next().unwrap()
}

#[test]
fn a_missing_file_is_one_problem() {
    let folder = tempfile::tempdir().unwrap();
    let problem = problem(&folder.path().join("none.toml"));
    assert_eq!(problem.line, 0);
    assert!(problem.wrong.contains("No such file"), "{problem}");
}

#[test]
fn what_is_no_regular_file_is_refused_before_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let found = problem(folder.path());
    assert!(found.wrong.contains("directory"), "{found}");
    // Nobody writes into this end: opening it would wait for ever.
    let (pipe, _other) = std::io::pipe().unwrap();
    let pipe = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe));
    for path in ["/dev/zero", "/dev/tty", &pipe] {
        let found = problem(Path::new(path));
        assert!(found.wrong.contains("regular file"), "{found}");
        assert_eq!(found.line, 0);
    }
}

#[test]
fn a_file_that_is_too_long_is_refused_without_being_taken_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.toml");
    // Longer than any machine has memory; the file system keeps nothing of it.
    File::create(&path).unwrap().set_len(1 << 42).unwrap();
    let found = problem(&path);
    assert!(found.wrong.contains(&MAX_FILE_LEN.to_string()), "{found}");
    // What is as long as it may be is read.
    std::fs::write(&path, "#".repeat(MAX_FILE_LEN)).unwrap();
    assert_eq!(Config::read_text(&path).unwrap().len(), MAX_FILE_LEN);
    // The kernel's own files say that they are empty, whatever is in them.
    assert!(
        !Config::read_text(Path::new("/proc/self/status"))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_byte_that_is_no_text_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin1.toml");
    std::fs::write(&path, b"[pair]\n# M\xc3\xbchle\nname = \"M\xfchle\"\n").unwrap();
    let found = problem(&path);
    assert_eq!(found.line, 3, "{found}");
    assert!(found.wrong.contains("0xfc"), "{found}");
    assert!(found.right.contains("UTF-8"), "{found}");
}
