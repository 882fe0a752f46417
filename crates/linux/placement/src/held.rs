//! Changes that last for as long as they are held, and are put back by whoever finds them without their holder.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{io, thread, time};

use bumpless_base::Processors;

use crate::record::{Change, Record, RecordError, names};
use crate::setting::{Setting, Value};
use crate::survey::is_shown;
use crate::thread::of_interface;
use crate::tree::Tree;

/// Where records of changes are. What is in it goes with a restart of the computer, as the changes do.
pub const FOLDER: &str = "/run/bumpless/placement";

/// What is wanted of interfaces; what is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Interrupts come to these processors alone, and threads of the interface run there.
    pub interrupts: Option<Processors>,
    /// Packets are handed on to these processors; none: they stay where they are.
    pub rps: Option<Processors>,
    /// Packets are worked off by threads of the interface's own with this priority below SCHED_FIFO; 0: an ordinary one.
    pub napi_priority: Option<u8>,
}

impl Wanted {
    /// Whether everything stays as it is.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Changes, which are put back when this is dropped.
#[derive(Debug, Default)]
pub struct Placement {
    tree: Tree,
    records: Vec<Record>,
    /// A process that puts them back if this one is killed. Its input ends with this process.
    keeper: Option<Child>,
}

impl Placement {
    /// Has the interfaces of these names be as wanted, as far as the kernel lets it; and what it does not, a sentence each.
    ///
    /// `keeper` is run beside: it is to call [`restore`] when its input ends. What an earlier holder has left is put back first.
    pub fn start(
        (tree, folder): (Tree, &Path),
        names: &[String],
        wanted: &Wanted,
        keeper: Option<Command>,
    ) -> (Self, Vec<String>) {
        let mut weaknesses = Vec::new();
        let mut placement = Self {
            tree,
            records: Vec::new(),
            keeper: None,
        };
        if wanted.is_nothing() {
            weaknesses.extend(put_back(&placement.tree, folder, names));
            return (placement, weaknesses);
        }
        if names.is_empty() {
            return (placement, weaknesses);
        }
        match keeper.map(run).transpose() {
            Ok(keeper) => placement.keeper = keeper,
            Err(error) => weaknesses.push(format!(
                "if this process is killed, where packets are worked off stays changed until it starts again or `bumpless guard restore` is run: the \
                 process that would put it back cannot be started: {error}"
            )),
        }
        for name in names {
            match Record::take(folder, name) {
                Ok(record) => placement.place(name, record, wanted, &mut weaknesses),
                Err(error) => weaknesses.push(refused(name, error)),
            }
        }
        (placement, weaknesses)
    }

    fn place(&mut self, name: &str, mut record: Record, wanted: &Wanted, said: &mut Vec<String>) {
        said.extend(record.put_back(&self.tree).1);
        if !is_shown(&self.tree, name) {
            said.push(format!(
                "where packets of {name} are worked off stays as it is: /sys shows another network namespace's interfaces; mount sysfs in this one, as \
                 `ip netns exec` does"
            ));
            record.close();
            return;
        }
        let before_threads = said.len();
        self.set_all(name, &mut record, of_files(&self.tree, name, wanted), said);
        // Threads are there once that is set.
        if said.len() == before_threads {
            self.set_all(
                name,
                &mut record,
                of_threads(&self.tree, name, wanted),
                said,
            );
        }
        self.records.push(record);
    }

    fn set_all(
        &self,
        name: &str,
        record: &mut Record,
        wanted: Vec<(Setting, Value)>,
        said: &mut Vec<String>,
    ) {
        for (setting, value) in wanted {
            if let Err(error) = set(&self.tree, name, record, (&setting, value)) {
                said.push(format!(
                    "{setting} of {name} cannot be set to {value}: {}",
                    in_words(&error)
                ));
            }
        }
    }

    /// How many changes there are.
    pub fn interfaces(&self) -> usize {
        self.records.iter().filter(|it| !it.is_empty()).count()
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        for mut record in self.records.drain(..) {
            record.put_back(&self.tree);
            record.close();
        }
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }
}

/// Puts back what an earlier holder has left of these interfaces; what the kernel refuses, a sentence each.
fn put_back(tree: &Tree, folder: &Path, of: &[String]) -> Vec<String> {
    let left = names(folder).into_iter().filter(|name| of.contains(name));
    let mut refused = Vec::new();
    for mut record in left.filter_map(|name| Record::take(folder, &name).ok()) {
        refused.extend(record.put_back(tree).1);
        record.close();
    }
    refused
}

fn run(mut keeper: Command) -> io::Result<Child> {
    use std::os::unix::process::CommandExt;
    // A process group of its own: what ends this process at a terminal does not end it.
    keeper
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    keeper.process_group(0).spawn()
}

fn refused(name: &str, error: RecordError) -> String {
    let why = match error {
        RecordError::Held => {
            "another process on this computer has changed it already; have one of them do it alone"
                .to_owned()
        }
        RecordError::Io(path, error) => format!(
            "what there was before cannot be written down in {}: {}",
            path.display(),
            in_words(&error)
        ),
    };
    format!("where packets of {name} are worked off stays as it is: {why}")
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "{error}; it takes root, or CAP_DAC_OVERRIDE, CAP_NET_ADMIN and CAP_SYS_NICE (AmbientCapabilities= in a service)"
        ),
        _ => match error.raw_os_error() {
            Some(libc::EOPNOTSUPP) => {
                format!("{error}; the interface's driver has nothing of the kind")
            }
            // Of an interrupt that the kernel distributes by itself.
            Some(libc::EIO) => {
                format!("{error}; the kernel places this one itself, as the driver has asked for")
            }
            Some(libc::EINVAL | libc::ENOSPC | libc::EOVERFLOW) => {
                format!("{error}; give processors of this computer that are online (`lscpu`)")
            }
            _ => error.to_string(),
        },
    }
}

/// What is wanted of the interface's files, in the order in which it is set.
fn of_files(tree: &Tree, name: &str, wanted: &Wanted) -> Vec<(Setting, Value)> {
    let mut all = Vec::new();
    if let Some(processors) = wanted.interrupts {
        let interrupts = tree.interrupts(name).into_iter();
        all.extend(interrupts.map(|it| (Setting::Interrupt(it), Value::Processors(processors))));
    }
    if let Some(processors) = wanted.rps {
        let queues = tree.queues(name).into_iter();
        all.extend(queues.map(|it| (Setting::Queue(it), Value::Processors(processors))));
    }
    if wanted.napi_priority.is_some() {
        all.push((Setting::Threaded, Value::Number(1)));
    }
    all
}

/// What is wanted of the interface's threads.
fn of_threads(tree: &Tree, name: &str, wanted: &Wanted) -> Vec<(Setting, Value)> {
    let Some(priority) = wanted.napi_priority else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for thread in of_interface(tree, name) {
        let processors = wanted.interrupts.map(Value::Processors);
        all.extend(processors.map(|it| (Setting::ThreadProcessors(thread.number), it)));
        all.push((
            Setting::ThreadPriority(thread.number),
            Value::Number(priority),
        ));
    }
    all
}

/// Writes down what there is, and changes it.
fn set(
    tree: &Tree,
    name: &str,
    record: &mut Record,
    (setting, after): (&Setting, Value),
) -> io::Result<()> {
    let before = setting.read(tree, name)?;
    if before == after {
        return Ok(());
    }
    record.add(Change {
        setting: setting.clone(),
        before,
        after,
    })?;
    setting.write(tree, name, after)
}

/// How long a process that ends may hold its record after its other files.
const ENDING: time::Duration = time::Duration::from_secs(2);

/// What was put back of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its name.
    pub interface: String,
    /// How many settings are as they were.
    pub put_back: usize,
    /// What cannot be put back, or not yet, a sentence each.
    pub refused: Vec<String>,
}

/// Puts back what processes that are gone have changed of interfaces of the thread's network namespace. With `is_ending`, a holder is given a
/// moment to be gone.
pub fn restore((tree, folder): (&Tree, &Path), is_ending: bool) -> Vec<Restored> {
    let until = time::Instant::now() + ENDING;
    let take = |name: &str| loop {
        match Record::take(folder, name) {
            Err(RecordError::Held) if is_ending && time::Instant::now() < until => {
                thread::sleep(time::Duration::from_millis(10));
            }
            other => break other,
        }
    };
    let one = |interface: String| match take(&interface) {
        Ok(mut record) => {
            let (put_back, refused) = record.put_back(tree);
            record.close();
            Some(Restored {
                interface,
                put_back,
                refused,
            })
        }
        // Whoever holds it puts it back.
        Err(RecordError::Held) => None,
        Err(RecordError::Io(path, error)) => {
            let words = format!("{} cannot be read: {error}; remove it", path.display());
            Some(Restored {
                interface,
                put_back: 0,
                refused: vec![words],
            })
        }
    };
    names(folder).into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
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
            ] {
                computer.put(file, text);
            }
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
        // A file that shows the same, and that nobody can write to.
        let file = computer.0.path().join("proc/irq/38/smp_affinity_list");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/sys/devices/system/cpu/online", &file).unwrap();
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
}
