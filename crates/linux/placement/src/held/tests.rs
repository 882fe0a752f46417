use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::survey::survey;

/// Files of the kernel's as they would be for `lo`, which every network namespace has, with an interrupt and a receive queue.
struct Computer(TempDir);

impl Computer {
    fn new() -> Self {
        let computer = Self(tempfile::tempdir().unwrap());
        for (file, text) in [
            ("sys/class/net/lo/ifindex", "1"),
            ("sys/class/net/lo/address", "00:00:00:00:00:00"),
            ("sys/class/net/lo/threaded", "0"),
            ("sys/class/net/lo/queues/rx-0/rps_cpus", "00000000"),
            ("sys/class/net/lo/queues/rx-1/rps_cpus", "00000000"),
            ("sys/class/net/lo/queues/tx-0/rps_cpus", "00000000"),
            ("proc/irq/38/smp_affinity_list", "0-1"),
            ("proc/irq/38/lo-rx-0/spurious", ""),
            ("proc/irq/39/smp_affinity_list", "0-1"),
            ("proc/irq/39/other/spurious", ""),
            // As it is wanted: a thread of this number may be anybody's here.
            ("proc/7/comm", "napi/lo-1"),
            ("proc/7/status", "Cpus_allowed_list:\t0"),
        ] {
            computer.put(file, text);
        }
        let zeros = |count| "0 ".repeat(count);
        let stat = format!("7 (napi/lo-1) S {}2129984 {}51 1 0", zeros(5), zeros(30));
        computer.put("proc/7/stat", &stat);
        computer
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn tree(&self) -> Tree {
        Tree::below(self.0.path())
    }

    fn records(&self) -> PathBuf {
        self.0.path().join("records")
    }

    fn start(&self, keeper: Option<Command>) -> (Placement, Vec<String>) {
        let with = (self.tree(), &*self.records());
        Placement::start(with, &["lo".to_owned()], &wanted(), keeper)
    }

    /// Interrupts, to whom packets are handed on, whether there are threads.
    fn seen(&self) -> (String, String, bool) {
        let place = survey(&self.tree(), "lo").place.unwrap();
        let interrupts = place.interrupts.iter();
        let interrupts: Vec<_> = interrupts
            .map(|it| format!("{}: {}", it.number, it.processors))
            .collect();
        (
            interrupts.join(" "),
            place.rps.to_string(),
            place.threads.is_some(),
        )
    }
}

fn wanted() -> Wanted {
    Wanted {
        interrupts: Some(Processors::one(0)),
        rps: Processors::read_list("0-1"),
        napi_priority: Some(51),
    }
}

fn put_back_of_lo(put_back: usize) -> Restored {
    Restored {
        interface: "lo".to_owned(),
        put_back,
        refused: Vec::new(),
    }
}

fn before() -> (String, String, bool) {
    ("38: 0-1".to_owned(), String::new(), false)
}

fn after() -> (String, String, bool) {
    ("38: 0".to_owned(), "0-1".to_owned(), true)
}

#[test]
fn an_interface_is_as_wanted_while_that_is_held_and_then_as_before() {
    let computer = Computer::new();
    assert_eq!(computer.seen(), before());
    let (placement, refused) = computer.start(None);
    assert_eq!(
        (computer.seen(), refused, placement.interfaces()),
        (after(), vec![], 1)
    );
    let other = fs::read_to_string(computer.0.path().join("proc/irq/39/smp_affinity_list"));
    assert_eq!(other.unwrap(), "0-1\n", "an interrupt of another interface");
    drop(placement);
    assert_eq!(
        (computer.seen(), names(&computer.records())),
        (before(), vec![])
    );
}

#[test]
fn a_second_holder_changes_nothing_and_puts_nothing_back() {
    let computer = Computer::new();
    let (first, _) = computer.start(None);
    let (second, refused) = computer.start(None);
    assert!(
        refused.len() == 1 && refused[0].contains("another process"),
        "{refused:?}"
    );
    drop(second);
    assert_eq!(computer.seen(), after());
    drop(first);
    assert_eq!(computer.seen(), before());
}

#[test]
fn what_a_holder_that_is_gone_has_changed_is_put_back_and_what_others_changed_since_stays() {
    let computer = Computer::new();
    let (tree, folder) = (computer.tree(), computer.records());
    let crash = || {
        let mut record = Record::take(&folder, "lo").unwrap();
        for (setting, value) in of_files(&tree, "lo", &wanted()) {
            set(&tree, "lo", &mut record, (&setting, value)).unwrap();
        }
        assert_eq!(computer.seen(), after());
    };
    crash();
    let done = restore((&tree, &folder), false);
    assert_eq!(done, [put_back_of_lo(4)]);
    assert_eq!((computer.seen(), names(&folder)), (before(), vec![]));
    crash();
    computer.put("proc/irq/38/smp_affinity_list", "1");
    assert_eq!(restore((&tree, &folder), false), [put_back_of_lo(3)]);
    assert_eq!(computer.seen().0, "38: 1");
    // The next start does it, too, of one that wants nothing changed.
    computer.put("proc/irq/38/smp_affinity_list", "0-1");
    crash();
    let (with, of) = ((computer.tree(), &*folder), ["lo".to_owned()]);
    let (_, refused) = Placement::start(with, &of, &Wanted::default(), None);
    assert_eq!(
        (computer.seen(), refused, names(&folder)),
        (before(), vec![], vec![])
    );
    // And what there was before that is put back at its end.
    computer.put("proc/irq/38/smp_affinity_list", "0-1");
    crash();
    let (placement, refused) = computer.start(None);
    assert_eq!((computer.seen(), refused), (after(), vec![]));
    drop(placement);
    assert_eq!(computer.seen(), before());
}

#[test]
fn what_was_changed_of_an_earlier_interface_of_the_name_is_not_put_back_to_a_later_one() {
    let computer = Computer::new();
    let (tree, folder) = (computer.tree(), computer.records());
    let mut record = Record::take(&folder, "lo").unwrap();
    for (setting, value) in of_files(&tree, "lo", &wanted()) {
        set(&tree, "lo", &mut record, (&setting, value)).unwrap();
    }
    drop(record);
    let mut files = fs::read_dir(&folder).unwrap();
    let file = files.next().unwrap().unwrap().path();
    let text = fs::read_to_string(&file).unwrap();
    let other = text.replacen("interface 1 ", "interface 2 ", 1);
    assert_ne!(other, text);
    fs::write(&file, other).unwrap();
    assert_eq!(restore((&tree, &folder), false), [put_back_of_lo(0)]);
    assert_eq!((computer.seen(), names(&folder)), (after(), vec![]));
}

/// Has a file be as it was changed to, to the processors online, that nobody can write to.
fn unwritable(computer: &Computer) -> PathBuf {
    let file = computer.0.path().join("proc/irq/38/smp_affinity_list");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/sys/devices/system/cpu/online", &file).unwrap();
    file
}

#[test]
fn what_the_kernel_refuses_to_take_back_is_put_back_once_it_does() {
    let computer = Computer::new();
    let online = crate::survey::online(&Tree::default());
    computer.put("proc/irq/38/smp_affinity_list", "1023");
    let wanted = Wanted {
        interrupts: Some(online),
        ..Wanted::default()
    };
    let (with, folder) = (computer.tree(), computer.records());
    let names_of = ["lo".to_owned()];
    let (placement, _) = Placement::start((with, &folder), &names_of, &wanted, None);
    let file = unwritable(&computer);
    drop(placement);
    assert_eq!(names(&folder), ["lo"]);
    let refused = restore((&computer.tree(), &folder), false)
        .remove(0)
        .refused;
    assert!(refused[0].contains("set back to 1023"), "{refused:?}");
    fs::remove_file(&file).unwrap();
    computer.put("proc/irq/38/smp_affinity_list", &online.to_string());
    let done = restore((&computer.tree(), &folder), false);
    assert_eq!(done, [put_back_of_lo(1)]);
    assert_eq!(
        (computer.seen().0, names(&folder)),
        ("38: 1023".to_owned(), vec![])
    );
}

/// V-97: an interrupt that the kernel places itself leaves the threads what they are to have.
#[test]
fn what_is_refused_of_an_interrupt_keeps_nothing_from_the_threads() {
    let computer = Computer::new();
    unwritable(&computer);
    computer.put("proc/7/status", "Cpus_allowed_list:\t0-1");
    let wanted = Wanted {
        // None of the computer has its own number alone there, nor a thread of that number here.
        interrupts: Processors::read_list("1023"),
        ..wanted()
    };
    let (with, folder) = (computer.tree(), computer.records());
    let (placement, refused) = Placement::start((with, &folder), &["lo".to_owned()], &wanted, None);
    let about = |what: &str| refused.iter().filter(|it| it.contains(what)).count();
    assert_eq!(
        (about("interrupt 38"), about("thread 7")),
        (1, 1),
        "{refused:?}"
    );
    assert!(computer.seen().2, "it has threads");
    drop(placement);
}

#[test]
fn what_the_kernel_makes_something_else_of_is_told() {
    let computer = Computer::new();
    let file = computer.0.path().join("proc/irq/38/smp_affinity_list");
    fs::remove_file(&file).unwrap();
    // It takes whatever is written, and is empty afterwards.
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    let (placement, refused) = computer.start(None);
    assert!(
        refused.len() == 1 && refused[0].contains("is set to none and not to 0"),
        "{refused:?}"
    );
    drop(placement);
}

#[test]
fn whoever_holds_a_change_is_not_disturbed_by_putting_back() {
    let computer = Computer::new();
    let (placement, _) = computer.start(None);
    assert_eq!(restore((&computer.tree(), &computer.records()), false), []);
    assert_eq!(computer.seen(), after());
    drop(placement);
}

#[test]
fn a_keepers_input_ends_when_everything_is_put_back() {
    let computer = Computer::new();
    let seen = computer.0.path().join("seen");
    let mut keeper = Command::new("sh");
    let interrupt = computer.0.path().join("proc/irq/38/smp_affinity_list");
    keeper
        .args(["-c", "cat > /dev/null; cp \"$0\" \"$1\""])
        .args([&interrupt, &seen]);
    let (placement, refused) = computer.start(Some(keeper));
    assert_eq!((refused, seen.exists()), (vec![], false));
    drop(placement);
    assert_eq!(fs::read_to_string(seen).unwrap().trim(), "0-1");
    let nobody = Command::new(computer.0.path().join("no such program"));
    let (_, refused) = computer.start(Some(nobody));
    assert!(refused[0].contains("bumpless guard restore"), "{refused:?}");
}

#[test]
fn a_keeper_is_told_whether_something_may_be_left() {
    let computer = Computer::new();
    let said = computer.0.path().join("said");
    let wanted = Wanted {
        interrupts: Some(crate::survey::online(&Tree::default())),
        ..Wanted::default()
    };
    computer.put("proc/irq/38/smp_affinity_list", "1023");
    let start = || {
        let mut keeper = Command::new("sh");
        keeper.args(["-c", "cat > \"$0\""]).arg(&said);
        let (with, folder) = (computer.tree(), computer.records());
        let names = ["lo".to_owned()];
        Placement::start((with, &folder), &names, &wanted, Some(keeper)).0
    };
    let may_be_left = || is_left(&mut &*fs::read(&said).unwrap());
    drop(start());
    assert!(!may_be_left());
    let placement = start();
    unwritable(&computer);
    drop(placement);
    assert!(may_be_left());
    for other in [&b""[..], b"nothing", b"nothing left\nand more"] {
        assert!(is_left(&mut &*other), "{other:?}");
    }
}

#[test]
fn threads_that_are_not_seen_are_told_unless_nothing_is_set_of_them() {
    let computer = Computer::new();
    fs::remove_dir_all(computer.0.path().join("proc/7")).unwrap();
    let (placement, refused) = computer.start(None);
    assert!(
        refused.len() == 1 && refused[0].contains("threads of lo have no priority 51"),
        "{refused:?}"
    );
    drop(placement);
    let wanted = Wanted {
        napi_priority: Some(0),
        ..Wanted::default()
    };
    let (with, folder) = (computer.tree(), computer.records());
    let (_, refused) = Placement::start((with, &folder), &["lo".to_owned()], &wanted, None);
    assert_eq!(refused, [""; 0]);
}

#[test]
fn a_record_of_another_user_is_told_with_the_user_who_can_use_it() {
    let told = not_believed(Path::new("/run/it"), &Cause::Owner(1000));
    assert!(
        told.starts_with("/run/it belongs to") && told.contains("as user 1000"),
        "{told}"
    );
}

#[test]
fn another_namespaces_files_are_left_alone_and_what_the_kernel_refuses_is_told() {
    let computer = Computer::new();
    computer.put("sys/class/net/lo/address", "02:00:00:00:00:01");
    let (placement, refused) = computer.start(None);
    assert!(
        refused[0].contains("another network namespace"),
        "{refused:?}"
    );
    assert_eq!(
        (placement.interfaces(), names(&computer.records())),
        (0, vec![])
    );
    computer.put("sys/class/net/lo/address", "00:00:00:00:00:00");
    fs::remove_file(computer.0.path().join("sys/class/net/lo/threaded")).unwrap();
    let (_placement, refused) = computer.start(None);
    assert!(
        refused.len() == 1 && refused[0].contains("threads of its own of lo"),
        "{refused:?}"
    );
}
