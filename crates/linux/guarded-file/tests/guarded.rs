//! Files that are made whole or not at all. What is refused of those that are read is tried with key files, too
//! (`crates/product/node/tests/key_file.rs`).

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use bumpless_guarded_file::{Cause, Guard, create, create_folder, read, read_as, replace};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_file_has_the_permissions_of_its_guard_and_is_never_overwritten() {
    let folder = folder();
    for (name, guard, expected) in [
        ("secret", Guard::Secret, 0o600),
        ("known", Guard::Unchanged, 0o644),
    ] {
        let path = folder.path().join(name);
        create(&path, b"first", guard).unwrap();
        assert_eq!(mode(&path), expected, "{name}");
        assert!(matches!(
            create(&path, b"second", guard),
            Err(Cause::Exists)
        ));
        assert_eq!(&**read(&path, guard, 5).unwrap(), b"first");
    }
    assert_eq!(names(folder.path()), ["known", "secret"]);
}

#[test]
fn what_others_may_know_may_be_read_by_all_and_changed_by_its_owner_alone() {
    let folder = folder();
    let path = folder.path().join("known");
    create(&path, b"known", Guard::Unchanged).unwrap();
    for mode in [0o600, 0o644, 0o444, 0o755] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert!(read(&path, Guard::Unchanged, 9).is_ok(), "{mode:o}");
    }
    for mode in [0o664, 0o646, 0o620, 0o602] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let refused = read(&path, Guard::Unchanged, 9).unwrap_err();
        let exposed = matches!(refused, Cause::Exposed { mode: found, guard: Guard::Unchanged } if found == mode);
        assert!(exposed, "{refused:?}");
        assert!(refused.wrong().contains(&format!("{mode:o}")));
        assert!(refused.remedy(&path).contains("chmod go-w"));
    }
}

#[test]
fn what_stands_in_a_file_can_say_what_guard_it_needs() {
    let folder = folder();
    let path = folder.path().join("file");
    create(&path, b"secret", Guard::Unchanged).unwrap();
    let by_content = |content: &[u8]| match content {
        b"secret" => Guard::Secret,
        _ => Guard::Unchanged,
    };
    let refused = read_as(&path, by_content, 9).unwrap_err();
    assert!(matches!(
        refused,
        Cause::Exposed {
            guard: Guard::Secret,
            ..
        }
    ));
    replace(&path, b"known", Guard::Unchanged).unwrap();
    assert_eq!(&**read_as(&path, by_content, 9).unwrap(), b"known");
}

#[test]
fn a_file_is_replaced_whole_and_nothing_else_stays() {
    let folder = folder();
    let path = folder.path().join("list");
    replace(&path, b"first", Guard::Unchanged).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    replace(&path, b"second", Guard::Unchanged).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(mode(&path), 0o644);
    fs::create_dir(folder.path().join("in the way")).unwrap();
    let refused = replace(&folder.path().join("in the way"), b"", Guard::Secret);
    assert!(matches!(refused, Err(Cause::NotMade(_))), "{refused:?}");
    assert_eq!(names(folder.path()), ["in the way", "list"]);
}

#[test]
fn a_folder_is_there_with_all_its_files_or_not_at_all() {
    let folder = folder();
    let path = folder.path().join("node");
    let files: [(&str, &[u8], Guard); 2] = [
        ("key", b"secret", Guard::Secret),
        ("list", b"known", Guard::Unchanged),
    ];
    create_folder(&path, &files).unwrap();
    assert_eq!(mode(&path), 0o700);
    assert_eq!(names(&path), ["key", "list"]);
    assert_eq!(mode(&path.join("key")), 0o600);
    assert_eq!(
        &**read(&path.join("list"), Guard::Unchanged, 9).unwrap(),
        b"known"
    );

    let twice = [files[0], files[0]];
    let other = folder.path().join("other");
    assert!(create_folder(&other, &twice).is_err());
    assert_eq!(names(folder.path()), ["node"]);
}

#[test]
fn a_folder_takes_the_place_of_an_empty_one_and_of_nothing_else() {
    let folder = folder();
    let [full, empty, file, link] =
        ["full", "empty", "file", "link"].map(|name| folder.path().join(name));
    let files: [(&str, &[u8], Guard); 1] = [("mine", b"mine", Guard::Secret)];
    fs::create_dir(&full).unwrap();
    fs::write(full.join("theirs"), "theirs").unwrap();
    fs::create_dir(&empty).unwrap();
    fs::write(&file, "theirs").unwrap();
    symlink("empty", &link).unwrap();
    for path in [&full, &file, &link] {
        let refused = create_folder(path, &files);
        assert!(
            matches!(refused, Err(Cause::Exists)),
            "{path:?}: {refused:?}"
        );
    }
    assert_eq!(names(&full), ["theirs"]);
    assert_eq!(fs::read(&file).unwrap(), b"theirs");
    create_folder(&empty, &files).unwrap();
    assert_eq!(names(&empty), ["mine"]);
    assert_eq!(names(folder.path()), ["empty", "file", "full", "link"]);
}

#[test]
fn what_cannot_be_made_is_told_with_the_systems_reason() {
    let folder = folder();
    let path = folder.path().join("none/file");
    let refused = [
        create(&path, b"", Guard::Secret),
        replace(&path, b"", Guard::Secret),
        create_folder(&path, &[]),
    ];
    for refused in refused {
        let cause = refused.unwrap_err();
        assert!(matches!(cause, Cause::NotMade(_)), "{cause:?}");
        assert!(cause.wrong().contains("No such file"), "{}", cause.wrong());
        assert!(cause.remedy(&path).contains("folder that is there"));
    }
}
