//! Files with a secret: made for one user alone, and refused whole when anything about them is not as it was made.

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

fn everything_that_is_wrong_is_told_at_once() {
    let folder = folder();
    let [good, open, none] =
        ["good", "open", "none"].map(|name| PathBuf::from(format!("{name}.key")));
    for path in [&good, &open] {
        key_file::create(&folder.path().join(path)).unwrap();
    }
    fs::set_permissions(folder.path().join(&open), Permissions::from_mode(0o644)).unwrap();
    let paths = [good.clone(), open.clone(), none.clone(), good.clone()];
    let errors = key_file::load(&paths, folder.path()).unwrap_err();
    let named: Vec<_> = errors.iter().map(|error| error.path.clone()).collect();
    assert_eq!(named, [open, none, good].map(|it| folder.path().join(it)));
    let told = key_file::told(&errors);
    let words = ["mode 644", "is not there", "the same secret as"];
    for (line, words) in told.lines().zip(words) {
        assert!(line.contains(words), "{told}");
    }
    assert_eq!(told.lines().count(), words.len());
}

fn two_names_of_one_key_are_refused() {
    let folder = folder();
    let (one, copy) = (folder.path().join("one"), folder.path().join("copy"));
    key_file::create(&one).unwrap();
    fs::copy(&one, &copy).unwrap();
    let errors = load(&[&one, &copy]).unwrap_err();
    assert_eq!((errors.len(), &errors[0].path), (1, &copy));
    assert!(matches!(&errors[0].cause, KeyFileCause::Same(other) if *other == one));
    says(&errors[0], &[one.to_str().unwrap(), "once"]);
}

fn two_keys_with_one_identifier_are_refused() {
    let id = |secret: &[u8; 32]| {
        let ring = Keyring::<RingSuite>::new(vec![Secret::new(*secret)]);
        ring.unwrap().sealing()
    };
    // Among a few hundred secrets two have the same: these always do.
    let mut seen = HashMap::new();
    let (first, second) = (0u16..5_000)
        .find_map(|number| {
            let mut secret = [7; 32];
            secret[..2].copy_from_slice(&number.to_be_bytes());
            let before = seen.insert(id(&secret), secret);
            before.map(|before| (before, secret))
        })
        .unwrap();
    let folder = folder();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    write(&one, text(&first));
    write(&other, text(&second));
    let errors = load(&[&one, &other]).unwrap_err();
    assert_eq!((errors.len(), &errors[0].path), (1, &other));
    let same = id(&first);
    assert!(
        matches!(&errors[0].cause, KeyFileCause::SameIdentifier(path, id) if (path, *id) == (&one, same))
    );
    says(&errors[0], &[&format!("{same:04x}"), "anew"]);
}

fn the_first_key_seals_and_each_can_open() {
    let folder = folder();
    let paths = ["new", "old"].map(|name| folder.path().join(name));
    let ids = paths.each_ref().map(|path| key_file::create(path).unwrap());
    let ring = load(&[&paths[0], &paths[1]]).unwrap();
    assert_eq!(ring.sealing(), ids[0]);
    assert!(ids.iter().all(|&id| ring.contains(id)));
    assert_eq!(load(&[&paths[1], &paths[0]]).unwrap().sealing(), ids[1]);
}

fn without_a_file_there_is_no_ring() {
    let errors = key_file::load(&[], Path::new("/run/pair")).unwrap_err();
    assert_eq!(errors.len(), 1);
    says(&errors[0], &["/run/pair", "there is no key"]);
}

fn a_configuration_has_its_keys_beside_it_and_open_packets_need_none() {
    let folder = folder();
    let id = key_file::create(&folder.path().join("pair.key")).unwrap();
    let protected = Security::Protected(vec!["pair.key".into()]);
    let config = folder.path().join("pair.toml");
    let beside = key_file::folder_of(Some(&config));
    let ring = key_file::for_config(&protected, beside).unwrap().unwrap();
    assert_eq!(ring.sealing(), id);
    assert!(key_file::for_config(&protected, Path::new("/nowhere")).is_err());
    let absolute = Security::Protected(vec![folder.path().join("pair.key")]);
    assert!(key_file::for_config(&absolute, Path::new("/nowhere")).is_ok());
    let open = key_file::for_config(&Security::Open, Path::new("/nowhere"));
    assert!(open.unwrap().is_none());
    // A file named alone is in the working folder, as is what stands beside it.
    for file in [Some(Path::new("pair.toml")), None] {
        assert_eq!(key_file::folder_of(file), Path::new(""));
    }
}

fn a_node_without_its_key_does_not_start_and_takes_nothing() {
    let folder = folder();
    let control = folder.path().join("left.sock");
    let text = format!(
        "[pair]\nname = \"keyless\"\n[security]\nkeys = [\"keyless.key\"]\n[[network]]\nname = \"A\"\nbandwidth_mbit = 1000\n\
         [[node]]\nname = \"left\"\naddresses = {{ A = \"127.0.0.1:4700\" }}\ncontrol = '{}'\n\
         [[node]]\nname = \"right\"\naddresses = {{ A = \"127.0.0.2:4700\" }}\n\
         [[group]]\nname = \"g\"\nnodes = [\"left\", \"right\"]\nwithout_reference = true\n\
         [[application]]\nname = \"a\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 1\nperiod_ms = 50\n\
         size = \"100 B\"\n",
        control.display(),
    );
    let config = bumpless_config::Config::parse(&text, "pair.toml").unwrap();
    let options = RunOptions {
        config_file: Some(folder.path().join("pair.toml")),
        log_file: Some(folder.path().join("left.log")),
        log_stdout: None,
        log_transfers: false,
        log_outputs: false,
        keeper: None,
        // One that starts all the same ends at once.
        stop: Arc::new(AtomicBool::new(true)),
    };
    let node = config.node("left").unwrap();
    let mut opened = 0;
    let ended = bumpless_node::run(&config, node, options, &mut |link, settings| {
        opened += 1;
        open_udp(link, settings)
    });
    let Err(RunError::Keys(errors)) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].path, folder.path().join("keyless.key"));
    let said = RunError::Keys(errors).to_string();
    assert!(said.contains("bumpless key new"), "{said}");
    assert_eq!((opened, names(folder.path())), (0, Vec::new()));
}

fn a_key_that_the_system_does_not_give_is_told_with_what_it_says() {
    let folder = folder();
    let file = folder.path().join("file");
    write(&file, "");
    let error = refused(&file.join("pair.key"));
    let KeyFileCause::File(Cause::Unreadable(cause)) = &error.cause else {
        panic!("{error:?}");
    };
    assert_eq!(cause.kind(), io::ErrorKind::NotADirectory);
    says(&error, &["cannot be read", "readable for the user"]);
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
