//! A password in a file: what is taken, and what is refused without a word of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bumpless_guarded_file::{PASSWORD_MAX, PasswordCause, password};

fn file(content: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("furnace.password");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    (folder, path)
}

#[test]
fn one_line_is_the_password_without_its_end() {
    let longest = "x".repeat(PASSWORD_MAX);
    for (content, expected) in [
        ("secret", "secret"),
        ("secret\n", "secret"),
        ("secret\r\n", "secret"),
        (" süß \n", " süß "),
        (&*longest, &*longest),
        (&*format!("{longest}\r\n"), &*longest),
    ] {
        for mode in [0o600, 0o400] {
            let (_folder, path) = file(content.as_bytes(), mode);
            assert_eq!(&**password(&path).unwrap(), expected);
        }
    }
}

#[test]
fn everything_else_is_refused_with_cause_and_remedy_and_without_what_it_holds() {
    let too_long = "secret".repeat(PASSWORD_MAX / 6 + 1);
    let much_too_long = "secret".repeat(PASSWORD_MAX);
    for (content, mode, wrong, right) in [
        (&b""[..], 0o600, "is empty", "in its one line"),
        (b"\n", 0o600, "is empty", "in its one line"),
        (b"\r\n", 0o600, "is empty", "in its one line"),
        (b"secret\n\n", 0o600, "more than one line", "one line"),
        (b"secret\nsecret", 0o600, "more than one line", "one line"),
        (b"secret\xff", 0o600, "UTF-8", "one line"),
        (b"secret\0", 0o600, "UTF-8", "one line"),
        (
            too_long.as_bytes(),
            0o600,
            "more than 1024 bytes",
            "one line",
        ),
        (
            much_too_long.as_bytes(),
            0o600,
            "more than 1024 bytes",
            "one line",
        ),
        (
            b"secret",
            0o640,
            "by others than its owner (mode 640)",
            "chmod 600",
        ),
        (
            b"secret",
            0o604,
            "by others than its owner (mode 604)",
            "chmod 600",
        ),
        (
            b"secret",
            0o620,
            "by others than its owner (mode 620)",
            "chmod 600",
        ),
    ] {
        let (_folder, path) = file(content, mode);
        told(&password(&path).unwrap_err(), &path, wrong, right);
    }
    let (folder, _) = file(b"", 0o600);
    let missing = folder.path().join("nowhere");
    let told_of =
        |path: &PathBuf, wrong, right| told(&password(path).unwrap_err(), path, wrong, right);
    told_of(&missing, "is not there", "install -m 600");
    told_of(
        &folder.path().to_owned(),
        "is no regular file",
        "give a file",
    );
}

#[track_caller]
fn told(cause: &PasswordCause, path: &std::path::Path, wrong: &str, right: &str) {
    let (is_wrong, is_right) = (cause.wrong(), cause.remedy(path));
    assert!(is_wrong.contains(wrong), "{is_wrong}");
    assert!(is_right.contains(right), "{is_right}");
    let all = format!("{is_wrong} {is_right} {cause:?}");
    assert!(!all.contains("secret"), "{all}");
}
