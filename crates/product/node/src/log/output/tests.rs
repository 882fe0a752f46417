use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A writer with so much room.
struct Room(Arc<AtomicUsize>, Arc<Mutex<Vec<u8>>>);

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.0.load(Ordering::Relaxed).min(bytes.len());
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.fetch_sub(room, Ordering::Relaxed);
        self.1.lock().unwrap().extend_from_slice(&bytes[..room]);
        Ok(room)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn read(path: &Path) -> Vec<Value> {
    lines(&fs::read_to_string(path).unwrap())
}

#[test]
fn a_full_output_goes_on_with_whole_lines_and_the_count_of_those_missed() {
    let (room, written) = (Arc::new(AtomicUsize::new(30)), Arc::default());
    let writer = Room(Arc::clone(&room), Arc::clone(&written));
    let mut output = LogOutput::stream(LogFormat::Json, "the disk", writer);
    let events = 5 * WAITING_MAX as u64 / 10;
    for n in 0..events {
        output.write(&json!({"n": n}));
    }
    assert!(output.flush(3, "left"), "it begins to fail");
    assert!(!output.flush(0, "left"), "it goes on failing");
    let weakness = output.state().weakness().unwrap();
    for words in ["the disk", "no storage space", "by itself"] {
        assert!(weakness.contains(words), "{weakness}");
    }
    let lost = output.state().lost;
    assert!(lost > 3);
    room.store(usize::MAX, Ordering::Relaxed);
    assert!(!output.flush(0, "left"));
    assert_eq!(
        (output.state().weakness(), output.state().lost),
        (None, lost)
    );
    let lines = lines(&String::from_utf8(written.lock().unwrap().clone()).unwrap());
    let (last, kept) = lines.split_last().unwrap();
    assert!((0..).zip(kept).all(|(n, line)| line["n"] == n));
    assert_eq!(last["count"], lost);
    assert_eq!(kept.len() as u64 + lost - 3, events);
}

#[test]
fn a_file_that_is_removed_is_made_anew_and_one_that_is_put_aside_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.jsonl");
    let mut output = LogOutput::file(&path).unwrap();
    let mut put = |n: u64| {
        output.write(&json!({"n": n}));
        assert!(!output.flush(0, "left"));
    };
    put(1);
    fs::remove_file(&path).unwrap();
    put(2);
    assert_eq!(read(&path), [json!({"n": 2})]);
    let aside = directory.path().join("events.jsonl.1");
    fs::rename(&path, &aside).unwrap();
    put(3);
    assert_eq!(
        (read(&aside), read(&path)),
        (vec![json!({"n": 2})], vec![json!({"n": 3})])
    );
}

#[test]
fn a_file_loses_nothing_that_waited_while_its_folder_was_gone() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("log");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("events.jsonl");
    let mut output = LogOutput::file(&path).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    output.write(&json!({"n": 1}));
    assert!(output.flush(0, "left"));
    let weakness = output.state().weakness().unwrap();
    assert!(
        weakness.contains("events.jsonl") && weakness.contains("No such file"),
        "{weakness}"
    );
    fs::create_dir(&folder).unwrap();
    assert!(!output.flush(0, "left"));
    assert_eq!(
        (read(&path), output.state().trouble.clone()),
        (vec![json!({"n": 1})], None)
    );
}

#[test]
fn the_rest_of_a_line_is_not_written_to_another_file() {
    let (mut waiting, mut begun) = (b"one\ntwo\nthree\n".to_vec(), false);
    let mut room = Room(Arc::new(AtomicUsize::new(6)), Arc::default());
    write_from(&mut room, &mut waiting, &mut begun).unwrap_err();
    assert!(begun && waiting == b"o\nthree\n");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.jsonl");
    let mut output = LogOutput::file(&path).unwrap();
    (output.waiting, output.begun) = (waiting, begun);
    fs::remove_file(&path).unwrap();
    output.flush(0, "left");
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("three\n") && text.contains("events_lost"),
        "{text}"
    );
    assert_eq!(output.state().lost, 1);
}

#[test]
fn a_reader_who_leaves_is_no_trouble() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut output = LogOutput::stream(LogFormat::Plain, "standard output", writer);
    for _ in 0..100_000 {
        output.write(&json!({"event": "stall"}));
    }
    assert!(!output.flush(0, "left"));
    assert_eq!(
        (output.state().trouble.clone(), output.state().lost),
        (None, 0)
    );
}
