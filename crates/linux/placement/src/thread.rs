//! Threads of the kernel's that work an interface's packets off (threaded NAPI): on which processors, with what priority.

use std::fs;
use std::io;
use std::path::Path;

use bumpless_base::Processors;

use crate::tree::Tree;

/// A thread of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub number: u32,
    /// Its priority below SCHED_FIFO or SCHED_RR; 0: it has an ordinary one.
    pub priority: u8,
    /// Where it may run.
    pub processors: Processors,
}

/// Bytes of a thread's name that kernels before 5.17 keep (TASK_COMM_LEN less the zero at its end).
const CUT: usize = 15;

/// Among the flags of a process (proc_pid_stat(5)): the kernel's own (PF_KTHREAD). No program can have it.
const OF_THE_KERNEL: u64 = 0x0020_0000;

/// Threads of the interface with this name. The kernel names them after it, so that an interface of the same name in another network
/// namespace shares them. Programs that call themselves so are none.
pub fn of_interface(tree: &Tree, name: &str) -> Vec<Thread> {
    let begins = format!("napi/{name}-");
    let numbers = fs::read_dir(tree.of_processes()).into_iter().flatten();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut threads: Vec<_> = numbers
        .filter(|number| {
            let name = fs::read_to_string(tree.of_process(*number).join("comm"));
            name.is_ok_and(|name| is_of(name.trim(), &begins))
        })
        .filter_map(|number| read(&tree.of_process(number), number))
        .collect();
    threads.sort_by_key(|thread| thread.number);
    threads
}

/// Whether the thread of this name is one of the interface whose threads' names begin so.
fn is_of(name: &str, begins: &str) -> bool {
    // An interface may be called as another one and more: `eth0` and `eth0-1`.
    let end = name.strip_prefix(begins);
    end.is_some_and(|end| {
        (!end.is_empty() || name.len() == CUT) && end.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn read(folder: &Path, number: u32) -> Option<Thread> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // The name in parentheses may have anything in it.
    let behind_name = stat.rsplit_once(')')?.1;
    // Fields are counted from 1, and the one behind the name is the third (proc_pid_stat(5)).
    let field = |number: usize| behind_name.split_whitespace().nth(number - 3);
    let (flags, priority): (u64, _) = (field(9)?.parse().ok()?, field(40)?);
    if flags & OF_THE_KERNEL == 0 {
        return None;
    }
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(Thread {
        number,
        priority: priority.parse().ok()?,
        processors: Processors::read_list(list.trim())?,
    })
}

/// Gives a thread this priority below SCHED_FIFO; 0: an ordinary one.
pub fn set_priority(number: u32, priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority.into(),
    };
    let policy = match priority {
        0 => libc::SCHED_OTHER,
        _ => libc::SCHED_FIFO,
    };
    // SAFETY: `parameters` lives through the call.
    let result =
        unsafe { libc::sched_setscheduler(number as libc::pid_t, policy, &raw const parameters) };
    done(result)
}

/// Has a thread run on these processors alone.
pub fn set_processors(number: u32, processors: &Processors) -> io::Result<()> {
    // SAFETY: cpu_set_t is plain integers, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for processor in processors.iter() {
        // SAFETY: the macro sets a bit of `set`, which has one for each number below 1024, as `Processors` does.
        unsafe { libc::CPU_SET(processor.into(), &mut set) };
    }
    // SAFETY: `set` lives through the call, and its size is told.
    let result = unsafe {
        libc::sched_setaffinity(number as libc::pid_t, size_of_val(&set), &raw const set)
    };
    done(result)
}

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_an_interface_are_the_kernels_that_have_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::below(folder.path());
        let of_a_program = 0x0040_0100;
        for (number, name, flags) in [
            (7, "napi/eth0-8193", 0x0020_8040),
            (5, "napi/eth0-1", 0x0020_8040),
            (6, "napi/eth0-1-5", 0x0020_8040),
            (8, "napi/eth01-3", 0x0020_8040),
            (9, "ksoftirqd/0", 0x0020_8040),
            // Whoever calls their program so would be given the interface's priority.
            (10, "napi/eth0-2", of_a_program),
        ] {
            let at = tree.of_process(number);
            fs::create_dir_all(&at).unwrap();
            let zeros = |count| "0 ".repeat(count);
            fs::write(at.join("comm"), format!("{name}\n")).unwrap();
            fs::write(
                at.join("stat"),
                format!(
                    "{number} ({name})) S) S {}{flags} {}50 1 0\n",
                    zeros(5),
                    zeros(30)
                ),
            )
            .unwrap();
            fs::write(at.join("status"), "Name:\tx\nCpus_allowed_list:\t0-1\n").unwrap();
        }
        let both = Processors::read_list("0-1").unwrap();
        let thread = |number| Thread {
            number,
            priority: 50,
            processors: both,
        };
        assert_eq!(of_interface(&tree, "eth0"), [thread(5), thread(7)]);
        assert_eq!(of_interface(&tree, "eth"), []);
    }

    #[test]
    fn a_thread_whose_name_an_older_kernel_has_cut_is_its_interfaces() {
        let begins = |name: &str| format!("napi/{name}-");
        let cut = |name: &str| name[..CUT].to_owned();
        for name in ["enp0s31f6", "enp0s3f6", "ens1"] {
            let whole = format!("napi/{name}-8193");
            assert!(is_of(&whole, &begins(name)), "{whole}");
            let kept = &whole[..whole.len().min(CUT)];
            assert!(is_of(kept, &begins(name)), "{kept}");
        }
        // Of which of two interfaces it is, nobody can tell: `enp0s31f6np0` and `enp0s31f6np1`.
        assert!(!is_of(
            &cut("napi/enp0s31f6np0-8193"),
            &begins("enp0s31f6np0")
        ));
        assert!(!is_of("napi/eth0-", &begins("eth0")));
    }
}
