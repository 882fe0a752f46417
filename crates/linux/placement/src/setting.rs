//! One thing of where packets are worked off that can be changed: how it is read and written.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use bumpless_base::Processors;

use crate::thread;
use crate::tree::Tree;

/// What can be changed of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Processors that an interrupt may come to.
    Interrupt(u32),
    /// Processors to which a receive queue hands packets on.
    Queue(String),
    /// Whether threads of its own work its packets off.
    Threaded,
    /// Processors on which one of these threads may run.
    ThreadProcessors(u32),
    /// The priority of one of these threads.
    ThreadPriority(u32),
}

/// What it is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of the settings of processors.
    Processors(Processors),
    /// Of the others: 0 or 1 for a flag, else a priority.
    Number(u8),
}

impl Value {
    fn number(self) -> io::Result<u8> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Processors(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn processors(self) -> io::Result<Processors> {
        match self {
            Self::Processors(processors) => Ok(processors),
            Self::Number(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// In one word.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processors(processors) if processors.is_empty() => f.write_str("none"),
            Self::Processors(processors) => processors.fmt(f),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// In words, as they stand in a sentence before "of the interface".
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupt(number) => write!(f, "processors of interrupt {number}"),
            Self::Queue(name) => write!(f, "processors to which queue {name} hands packets on"),
            Self::Threaded => f.write_str("threads of its own"),
            Self::ThreadProcessors(number) => write!(f, "processors of thread {number}"),
            Self::ThreadPriority(number) => write!(f, "priority of thread {number}"),
        }
    }
}

impl Setting {
    /// What it is set to for the interface called `name`.
    ///
    /// # Errors
    /// The kernel's; there is no such interrupt, queue or thread of this interface (any more).
    pub fn read(&self, tree: &Tree, name: &str) -> io::Result<Value> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let text = |file: PathBuf| fs::read_to_string(file).map(|text| text.trim().to_owned());
        match self {
            Self::Interrupt(number) => {
                if !tree.interrupts(name).contains(number) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                let list = Processors::read_list(&text(self.file(tree, name))?);
                list.map(Value::Processors).ok_or_else(invalid)
            }
            Self::Queue(_) => {
                let mask = Processors::read_mask(&text(self.file(tree, name))?);
                mask.map(Value::Processors).ok_or_else(invalid)
            }
            Self::Threaded => {
                let number = text(self.file(tree, name))?.parse();
                number.map(Value::Number).map_err(|_| invalid())
            }
            Self::ThreadProcessors(number) | Self::ThreadPriority(number) => {
                let threads = thread::of_interface(tree, name).into_iter();
                let mut threads = threads.filter(|thread| thread.number == *number);
                let thread = threads.next().ok_or(io::ErrorKind::NotFound)?;
                Ok(match self {
                    Self::ThreadProcessors(_) => Value::Processors(thread.processors),
                    _ => Value::Number(thread.priority),
                })
            }
        }
    }

    /// Sets it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(&self, tree: &Tree, name: &str, value: Value) -> io::Result<()> {
        let file = || self.file(tree, name);
        match self {
            Self::Interrupt(_) => fs::write(file(), value.processors()?.to_string()),
            Self::Queue(_) => fs::write(file(), value.processors()?.mask().to_string()),
            Self::Threaded => fs::write(file(), value.number()?.to_string()),
            Self::ThreadProcessors(number) => thread::set_processors(*number, &value.processors()?),
            Self::ThreadPriority(number) => thread::set_priority(*number, value.number()?),
        }
    }

    /// The kernel's file of it; a thread has none that is written.
    fn file(&self, tree: &Tree, name: &str) -> PathBuf {
        let of_interface = tree.of_interface(name);
        match self {
            Self::Interrupt(number) => tree.of_interrupt(*number).join("smp_affinity_list"),
            Self::Queue(queue) => of_interface.join("queues").join(queue).join("rps_cpus"),
            Self::Threaded => of_interface.join("threaded"),
            Self::ThreadProcessors(number) | Self::ThreadPriority(number) => {
                tree.of_process(*number)
            }
        }
    }

    /// It in two words: its kind, and which one of it.
    pub fn words(&self) -> (&'static str, String) {
        match self {
            Self::Interrupt(number) => ("interrupt", number.to_string()),
            Self::Queue(name) => ("queue", name.clone()),
            Self::Threaded => ("threaded", "all".to_owned()),
            Self::ThreadProcessors(number) => ("thread-processors", number.to_string()),
            Self::ThreadPriority(number) => ("thread-priority", number.to_string()),
        }
    }

    /// Reads what [`Setting::words`] gives. A queue's name leads to no other folder.
    pub fn from_words(kind: &str, which: &str) -> Option<Self> {
        match kind {
            "interrupt" => which.parse().ok().map(Self::Interrupt),
            "queue" if which.starts_with("rx-") && !which.contains('/') => {
                Some(Self::Queue(which.to_owned()))
            }
            "threaded" => Some(Self::Threaded),
            "thread-processors" => which.parse().ok().map(Self::ThreadProcessors),
            "thread-priority" => which.parse().ok().map(Self::ThreadPriority),
            _ => None,
        }
    }

    /// Reads what a value shows as.
    pub fn value(&self, word: &str) -> Option<Value> {
        match self {
            Self::Interrupt(_) | Self::Queue(_) | Self::ThreadProcessors(_) => {
                let list = if word == "none" { "" } else { word };
                Processors::read_list(list).map(Value::Processors)
            }
            Self::Threaded | Self::ThreadPriority(_) => word.parse().ok().map(Value::Number),
        }
    }
}
