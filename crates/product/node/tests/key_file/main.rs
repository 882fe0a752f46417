//! Files with a secret: made for one user alone, and refused whole when anything about them is not as it was made.

mod several;

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, thread};

use bumpless_config::Security;
use bumpless_guarded_file::{Cause, Guard};
use bumpless_node::key_file::{self, KeyFileCause, KeyFileError};
use bumpless_node::{RunError, RunOptions, open_udp};
use bumpless_secure::{Keyring, RingSuite, Secret};
use bumpless_testing::need_root;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use several::*;

type Loaded = Result<Keyring<RingSuite>, Vec<KeyFileError>>;

/// Longer than any of these takes, and shorter than for ever.
const HANGS: Duration = Duration::from_secs(20);

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// A file with this text that nobody else may read.
fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

fn digits(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.trim_end().rsplit(' ').next().unwrap().to_owned()
}

fn text(secret: &[u8; 32]) -> String {
    let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("bumpless-secret-1 {digits}\n")
}

fn load(paths: &[&Path]) -> Loaded {
    let paths: Vec<_> = paths.iter().map(|&path| path.to_owned()).collect();
    key_file::load(&paths, Path::new(""))
}

/// The one thing that is wrong with the file at `path`.
fn refused(path: &Path) -> KeyFileError {
    let mut errors = load(&[path]).expect_err("it is refused");
    assert_eq!(errors.len(), 1, "{errors:?}");
    let error = errors.remove(0);
    assert_eq!(error.path, path);
    error
}

fn says(error: &KeyFileError, words: &[&str]) {
    let said = error.to_string();
    for words in words {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
}

fn a_key_is_made_for_its_owner_alone_and_is_the_one_that_is_loaded() {
    let folder = folder();
    let path = folder.path().join("pair.key");
    let made = key_file::create(&path).unwrap();
    assert_eq!(load(&[&path]).unwrap().sealing(), made);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(names(folder.path()), ["pair.key"]);
}

fn a_key_file_says_first_what_it_is_and_has_its_secret_in_one_line() {
    let folder = folder();
    let path = folder.path().join("pair.key");
    key_file::create(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("# The secret of a Bumpless pair."),
        "{text}"
    );
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, [format!("bumpless-secret-1 {}", digits(&path))]);
    assert_eq!(digits(&path).len(), 64);
}

fn each_key_is_another() {
    let folder = folder();
    let made = ["a", "b"].map(|name| {
        let path = folder.path().join(name);
        key_file::create(&path).unwrap();
        digits(&path)
    });
    assert_ne!(made[0], made[1]);
}

fn a_key_is_never_overwritten_and_no_other_file_either() {
    let folder = folder();
    let (key, link) = (folder.path().join("a.key"), folder.path().join("link"));
    key_file::create(&key).unwrap();
    symlink("nowhere", &link).unwrap();
    let before = fs::read(&key).unwrap();
    for path in [&key, &link, folder.path()] {
        let error = key_file::create(path).unwrap_err();
        assert!(
            matches!(error.cause, KeyFileCause::File(Cause::Exists)),
            "{error:?}"
        );
        says(&error, &[path.to_str().unwrap(), "never overwritten"]);
    }
    assert_eq!(fs::read(&key).unwrap(), before);
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, ["a.key", "link"], "and nothing half made stays");
}

fn a_key_that_cannot_be_made_is_told_with_its_place() {
    let folder = folder();
    let path = folder.path().join("none/pair.key");
    let error = key_file::create(&path).unwrap_err();
    assert!(
        matches!(error.cause, KeyFileCause::File(Cause::NotMade(_))),
        "{error:?}"
    );
    says(
        &error,
        &[path.to_str().unwrap(), "cannot be made", "folder"],
    );
}

fn a_missing_key_is_told_with_the_ways_out() {
    let folder = folder();
    let path = folder.path().join("pair.key");
    let error = refused(&path);
    assert!(
        matches!(error.cause, KeyFileCause::File(Cause::Missing)),
        "{error:?}"
    );
    let make = format!("bumpless key new {}", path.display());
    says(
        &error,
        &[&make, "copy it to the others", "packets = \"open\""],
    );
}

fn what_is_no_regular_file_is_refused_and_nobody_waits_for_it() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let link = folder.path().join("link");
    symlink(&pipe, &link).unwrap();
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let zero = PathBuf::from("/dev/zero");
    for path in [folder.path().to_owned(), pipe, link, socket, zero] {
        let (tell, told) = mpsc::channel();
        let asked = path.clone();
        thread::spawn(move || tell.send(refused(&asked)));
        let error = told.recv_timeout(HANGS).expect("it does not wait");
        assert!(
            matches!(error.cause, KeyFileCause::File(Cause::NotRegular)),
            "{error:?}"
        );
        says(&error, &[path.to_str().unwrap(), "regular file"]);
    }
}

fn a_link_to_a_key_is_as_good_as_the_key() {
    let folder = folder();
    let (key, link) = (folder.path().join("pair.key"), folder.path().join("link"));
    let id = key_file::create(&key).unwrap();
    symlink("pair.key", &link).unwrap();
    assert_eq!(load(&[&link]).unwrap().sealing(), id);
}

fn what_is_no_key_is_refused_and_none_of_it_is_repeated() {
    let folder = folder();
    let path = folder.path().join("pair.key");
    let hex = "00112233445566778899aabbccddeeff".repeat(2);
    let good = format!("bumpless-secret-1 {hex}");
    let garbled = [
        String::new(),
        "# only a comment\n".into(),
        "bumpless-secret-1".into(),
        "bumpless-secret-1 ".into(),
        format!("{good}0"),
        format!("{good}00"),
        good[..good.len() - 1].into(),
        good[..good.len() - 2].into(),
        good.replace("aa", "ag"),
        good.replace("aa", "+a"),
        good.replace("aa", "ä"),
        good.replace(' ', ""),
        good.replace("secret", "Secret"),
        format!("{good}\n{good}"),
        format!("{good} # mine"),
        hex.clone(),
    ];
    for text in garbled {
        write(&path, &text);
        let error = refused(&path);
        assert!(matches!(error.cause, KeyFileCause::NoSecret), "{text}");
        says(&error, &["64 hexadecimal digits", "bumpless key new"]);
        let told = format!("{error} {error:?}");
        assert!(!told.contains("00112233"), "{told}");
    }
    write(&path, b"bumpless-secret-1 \xff\xfe");
    assert!(matches!(refused(&path).cause, KeyFileCause::NoSecret));
}

fn a_key_may_have_comments_and_the_line_ends_of_other_systems() {
    let folder = folder();
    let path = folder.path().join("pair.key");
    let id = key_file::create(&path).unwrap();
    let line = format!("bumpless-secret-1 {}", digits(&path).to_uppercase());
    for text in [
        line.clone(),
        format!("\r\n# of the mill\r\n  {line}  \r\n\r\n# end"),
        format!("{}{line}", "# a long story\n".repeat(200)),
    ] {
        write(&path, &text);
        assert_eq!(load(&[&path]).unwrap().sealing(), id, "{text}");
    }
}

fn a_key_of_another_version_is_told_from_what_is_no_key() {
    let folder = folder();
    let path = folder.path().join("pair.key");
    for version in ["2", "11", "x"] {
        write(&path, format!("bumpless-secret-{version} abcdef"));
        let error = refused(&path);
        assert!(
            matches!(error.cause, KeyFileCause::OtherVersion),
            "{error:?}"
        );
        says(&error, &["another version than bumpless-secret-1"]);
        assert!(!format!("{error} {error:?}").contains("abcdef"));
    }
}

fn what_is_longer_than_a_key_is_not_read_to_its_end() {
    let folder = folder();
    let path = folder.path().join("pair.key");
    write(&path, "");
    // It holds no byte on the disk, and would take a terabyte of memory.
    fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(1 << 40))
        .unwrap();
    assert!(matches!(
        refused(&path).cause,
        KeyFileCause::File(Cause::TooLong)
    ));
    let full = format!("{:#<4096}", "bumpless");
    write(&path, &full);
    assert!(matches!(refused(&path).cause, KeyFileCause::NoSecret));
    write(&path, full + "#");
    assert!(matches!(
        refused(&path).cause,
        KeyFileCause::File(Cause::TooLong)
    ));
}

fn a_key_that_others_may_read_or_write_is_refused() {
    let folder = folder();
    let path = folder.path().join("pair.key");
    key_file::create(&path).unwrap();
    for bit in 0..6 {
        let mode = 0o600 | 1 << bit;
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let error = refused(&path);
        assert!(
            matches!(error.cause, KeyFileCause::File(Cause::Exposed { mode: found, guard: Guard::Secret }) if found == mode)
        );
        let remedy = format!("chmod 600 {}", path.display());
        says(&error, &[&format!("{mode:o}"), &remedy]);
    }
    for mode in [0o400, 0o600, 0o700] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert!(load(&[&path]).is_ok(), "{mode:o}");
    }
}

fn a_key_of_another_user_is_refused() {
    need_root();
    let folder = folder();
    let path = folder.path().join("pair.key");
    key_file::create(&path).unwrap();
    chown(&path, Some(65_534), None).unwrap();
    let error = refused(&path);
    assert!(
        matches!(error.cause, KeyFileCause::File(Cause::Owner(65_534))),
        "{error:?}"
    );
    says(&error, &["another user (65534)", "chown"]);
}

bumpless_testing::tests![
    a_key_is_made_for_its_owner_alone_and_is_the_one_that_is_loaded,
    a_key_file_says_first_what_it_is_and_has_its_secret_in_one_line,
    each_key_is_another,
    a_key_is_never_overwritten_and_no_other_file_either,
    a_key_that_cannot_be_made_is_told_with_its_place,
    a_missing_key_is_told_with_the_ways_out,
    what_is_no_regular_file_is_refused_and_nobody_waits_for_it,
    a_link_to_a_key_is_as_good_as_the_key,
    what_is_no_key_is_refused_and_none_of_it_is_repeated,
    a_key_may_have_comments_and_the_line_ends_of_other_systems,
    a_key_of_another_version_is_told_from_what_is_no_key,
    what_is_longer_than_a_key_is_not_read_to_its_end,
    a_key_that_others_may_read_or_write_is_refused,
    a_key_of_another_user_is_refused,
    everything_that_is_wrong_is_told_at_once,
    two_names_of_one_key_are_refused,
    two_keys_with_one_identifier_are_refused,
    the_first_key_seals_and_each_can_open,
    without_a_file_there_is_no_ring,
    a_configuration_has_its_keys_beside_it_and_open_packets_need_none,
    a_node_without_its_key_does_not_start_and_takes_nothing,
    a_key_that_the_system_does_not_give_is_told_with_what_it_says,
];
