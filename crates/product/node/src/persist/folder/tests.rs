use super::*;

fn folder() -> (tempfile::TempDir, Folder) {
    let directory = tempfile::tempdir().unwrap();
    let mut folder = Folder::new(directory.path().join("deep/states"));
    folder.make().unwrap();
    (directory, folder)
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(&folder.path).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_replaced_whole_and_nothing_else_is_left() {
    let (_directory, mut folder) = folder();
    assert_eq!(folder.read("p-l-tank", 100).unwrap(), None);
    for content in [&b"longer than the next"[..], b"short"] {
        folder.replace("p-l-tank", content).unwrap();
        assert_eq!(folder.read("p-l-tank", 100).unwrap().unwrap(), content);
        assert_eq!(names(&folder), ["p-l-tank.state"]);
    }
    // Of one that has no end, no more is read than shows that.
    assert_eq!(folder.read("p-l-tank", 3).unwrap().unwrap(), b"shor");
}

#[test]
fn nobody_but_its_user_reads_what_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, mut folder) = folder();
    folder.replace("a", b"1").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&folder.path), mode(&folder.file("a"))),
        (0o700, 0o600)
    );
}

#[test]
fn one_that_another_process_has_is_refused_by_whatever_path() {
    let (directory, folder) = folder();
    let other_path = directory.path().join("link");
    std::os::unix::fs::symlink(&folder.path, &other_path).unwrap();
    for path in [folder.path.clone(), other_path] {
        let mut other = Folder::new(path);
        assert!(matches!(other.make(), Err(FolderError::InUse)));
        assert!(matches!(other.replace("a", b"1"), Err(FolderError::InUse)));
    }
    assert!(names(&folder).is_empty());
    let mut other = Folder::new(folder.path.clone());
    drop(folder);
    other.make().unwrap();
}

#[test]
fn one_that_is_removed_or_replaced_is_an_error_until_it_is_there_again() {
    let (_directory, mut folder) = folder();
    folder.replace("a", b"1").unwrap();
    fs::remove_dir_all(&folder.path).unwrap();
    let Err(FolderError::Io(error)) = folder.replace("a", b"2") else {
        panic!("it was made anew unasked")
    };
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    fs::write(&folder.path, b"a file").unwrap();
    assert!(folder.replace("a", b"2").is_err());
    fs::remove_file(&folder.path).unwrap();
    fs::create_dir(&folder.path).unwrap();
    folder.replace("a", b"3").unwrap();
    assert_eq!(folder.read("a", 9).unwrap().unwrap(), b"3");
    // The new one is locked, too.
    let mut other = Folder::new(folder.path.clone());
    assert!(matches!(other.make(), Err(FolderError::InUse)));
}

#[test]
fn one_that_another_took_the_place_of_is_left_for_that() {
    let (directory, mut folder) = folder();
    folder.replace("a", b"1").unwrap();
    fs::rename(&folder.path, directory.path().join("away")).unwrap();
    fs::create_dir(&folder.path).unwrap();
    folder.replace("a", b"2").unwrap();
    let mut other = Folder::new(folder.path.clone());
    assert!(matches!(other.make(), Err(FolderError::InUse)));
    assert!(Folder::new(directory.path().join("away")).make().is_ok());
}

#[test]
fn one_that_cannot_be_written_leaves_the_file_before_and_no_leftover() {
    let (_directory, mut folder) = folder();
    folder.replace("a", b"1").unwrap();
    // Not even the superuser opens a folder for writing.
    fs::create_dir(folder.path.join("a.state.tmp")).unwrap();
    assert!(folder.replace("a", b"2").is_err());
    assert_eq!(folder.read("a", 9).unwrap().unwrap(), b"1");
    fs::remove_dir(folder.path.join("a.state.tmp")).unwrap();
    // Nor does it put a file where a folder is.
    fs::create_dir_all(folder.file("b").join("deeper")).unwrap();
    assert!(folder.replace("b", b"2").is_err());
    assert_eq!(names(&folder), ["a.state", "b.state"]);
}

#[test]
fn what_was_being_written_when_a_process_ended_is_removed() {
    let (_directory, folder) = folder();
    for name in [
        "a.state",
        "a.state.tmp",
        "b.state.tmp",
        "a.state.refused",
        "else.tmp",
    ] {
        fs::write(folder.path.join(name), b"x").unwrap();
    }
    folder.remove_leftovers();
    assert_eq!(names(&folder), ["a.state", "a.state.refused", "else.tmp"]);
}

#[test]
fn one_that_was_refused_is_put_aside_in_place_of_the_one_before() {
    let (_directory, folder) = folder();
    for content in ["first", "second"] {
        fs::write(folder.file("a"), content).unwrap();
        let aside = folder.put_aside("a");
        assert_eq!(fs::read_to_string(aside).unwrap(), content);
    }
    assert_eq!(names(&folder), ["a.state.refused"]);
}

#[test]
fn what_is_no_regular_file_is_not_waited_for() {
    let (_directory, folder) = folder();
    fs::create_dir(folder.file("a")).unwrap();
    assert!(folder.read("a", 9).is_err());
    std::os::unix::fs::symlink("/dev/zero", folder.file("b")).unwrap();
    let error = folder.read("b", 9).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn a_file_that_is_kept_beside_is_in_its_place_until_the_next_one_takes_that() {
    let (_directory, mut folder) = folder();
    for content in [b"1", b"2"] {
        folder.replace("a", content).unwrap();
        let aside = folder.keep_beside("a").unwrap();
        assert_eq!(names(&folder), ["a.state", "a.state.refused"]);
        assert_eq!(folder.read("a", 100).unwrap().unwrap(), content);
        folder.replace("a", b"next").unwrap();
        assert_eq!(fs::read(aside).unwrap(), content);
    }
    assert_eq!(folder.keep_beside("nothing"), None);
}
