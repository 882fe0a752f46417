//! Several keys at once, and a node that has them.

use super::*;

pub fn everything_that_is_wrong_is_told_at_once() {
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

pub fn two_names_of_one_key_are_refused() {
    let folder = folder();
    let (one, copy) = (folder.path().join("one"), folder.path().join("copy"));
    key_file::create(&one).unwrap();
    fs::copy(&one, &copy).unwrap();
    let errors = load(&[&one, &copy]).unwrap_err();
    assert_eq!((errors.len(), &errors[0].path), (1, &copy));
    assert!(matches!(&errors[0].cause, KeyFileCause::Same(other) if *other == one));
    says(&errors[0], &[one.to_str().unwrap(), "once"]);
}

pub fn two_keys_with_one_identifier_are_refused() {
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

pub fn the_first_key_seals_and_each_can_open() {
    let folder = folder();
    let paths = ["new", "old"].map(|name| folder.path().join(name));
    let ids = paths.each_ref().map(|path| key_file::create(path).unwrap());
    let ring = load(&[&paths[0], &paths[1]]).unwrap();
    assert_eq!(ring.sealing(), ids[0]);
    assert!(ids.iter().all(|&id| ring.contains(id)));
    assert_eq!(load(&[&paths[1], &paths[0]]).unwrap().sealing(), ids[1]);
}

pub fn without_a_file_there_is_no_ring() {
    let errors = key_file::load(&[], Path::new("/run/pair")).unwrap_err();
    assert_eq!(errors.len(), 1);
    says(&errors[0], &["/run/pair", "there is no key"]);
}

pub fn a_configuration_has_its_keys_beside_it_and_open_packets_need_none() {
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

pub fn a_node_without_its_key_does_not_start_and_takes_nothing() {
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

pub fn a_key_that_the_system_does_not_give_is_told_with_what_it_says() {
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
