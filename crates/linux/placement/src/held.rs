//! Changes that last for as long as they are held, and are put back by whoever finds them without their holder.

#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{thread, time};

use bumpless_base::Processors;
use bumpless_guarded_file::Cause;

use crate::record::{Change, Record, RecordError, names};
use crate::setting::{Setting, Value};
use crate::survey::is_shown;
use crate::thread::of_interface;
use crate::tree::Tree;

/// Where records of changes are. What is in it goes with a restart of the computer, as the changes do.
pub const FOLDER: &str = "/run/bumpless/placement";

/// What a holder that has put everything back says to its keeper.
const NOTHING_LEFT: &[u8] = b"nothing left\n";

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

    /// The priority of threads of the interface's own, if there is something to be set of these.
    fn of_threads(&self) -> Option<u8> {
        self.napi_priority
            .filter(|&priority| priority > 0 || self.interrupts.is_some())
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
    /// `keeper` is run beside: it is to ask [`is_left`], and then to call [`restore`]. What an earlier holder has left is put back first.
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
        self.set_all(name, &mut record, of_files(&self.tree, name, wanted), said);
        // Threads are there once that is set. What else was refused does not concern them.
        let is_threaded = Setting::Threaded.read(&self.tree, name);
        if is_threaded.is_ok_and(|it| it != Value::Number(0)) {
            let of_threads = of_threads(&self.tree, name, wanted);
            if let Some(priority) = wanted.of_threads().filter(|_| of_threads.is_empty()) {
                said.push(format!(
                    "threads of {name} have no priority {priority}, and no processors of their own: none of them is seen from here \
                     (`ps -e | grep napi`); run the node where all processes of the computer are seen, or leave `napi_priority` out"
                ));
            }
            self.set_all(name, &mut record, of_threads, said);
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
            match set(&self.tree, name, record, (&setting, value)) {
                Ok(is) if is == value => {}
                Ok(is) => said.push(format!(
                    "{setting} of {name} is set to {is} and not to {value}: the kernel leaves out processors that are kept from such work \
                     (`isolcpus`, `nohz_full`, a cpuset) or not online (`lscpu`)"
                )),
                Err(error) => said.push(format!(
                    "{setting} of {name} cannot be set to {value}: {}",
                    in_words(&error)
                )),
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
        let mut is_whole = true;
        for mut record in self.records.drain(..) {
            record.put_back(&self.tree);
            is_whole &= record.is_empty();
            record.close();
        }
        if let Some(mut keeper) = self.keeper.take() {
            // It would wait for what other nodes hold.
            let input = keeper.stdin.take().filter(|_| is_whole);
            let _ = input.map(|mut input| input.write_all(NOTHING_LEFT));
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
        RecordError::NotBelieved(path, cause) => not_believed(&path, &cause),
        RecordError::Io(path, error) => format!(
            "what there was before cannot be written down in {}: {}",
            path.display(),
            in_words(&error)
        ),
    };
    format!("where packets of {name} are worked off stays as it is: {why}")
}

fn not_believed(path: &Path, cause: &Cause) -> String {
    let then = match cause {
        Cause::Owner(user) => {
            format!("run this as user {user}, with the capabilities that its node has")
        }
        _ => "remove it, and set by hand what it names".to_owned(),
    };
    format!("{} {}: {then}", path.display(), cause.wrong())
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

/// Writes down what there is, and changes it; to what, as the kernel has it then.
fn set(
    tree: &Tree,
    name: &str,
    record: &mut Record,
    (setting, after): (&Setting, Value),
) -> io::Result<Value> {
    let before = setting.read(tree, name)?;
    if before == after {
        return Ok(after);
    }
    let change = |after| Change {
        setting: setting.clone(),
        before,
        after,
    };
    record.add(change(after))?;
    setting.write(tree, name, after)?;
    let is = setting.read(tree, name)?;
    // What the kernel has made of it is ours, too, and is put back.
    if is != after && is != before {
        record.add(change(is))?;
    }
    Ok(is)
}

/// How long a process that ends may hold its record after its other files.
const ENDING: time::Duration = time::Duration::from_secs(2);

/// For a keeper: waits for the end of its holder, which is that of `input`; whether the holder may have left something to put back.
pub fn is_left(input: &mut impl Read) -> bool {
    let mut said = Vec::new();
    let at_most = NOTHING_LEFT.len() as u64 + 1;
    // Whatever is said besides, and however it ends: what counts is that it has.
    let _ = input.by_ref().take(at_most).read_to_end(&mut said);
    let _ = io::copy(input, &mut io::sink());
    said != NOTHING_LEFT
}

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
        Err(RecordError::NotBelieved(path, cause)) => Some(Restored {
            interface,
            put_back: 0,
            refused: vec![not_believed(&path, &cause)],
        }),
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
