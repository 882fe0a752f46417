//! What the generated code has, lacks, and must not use (H-21 to H-23).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::BuildFault;
use super::tools::{STATE_ADDRESS, Tools};

/// What calls MATIEC's code.
const NEEDED: [(&str, &str); 3] = [
    ("config_init__", "Config0.c"),
    ("config_run__", "Config0.c"),
    ("common_ticktime__", "Config0.c"),
];

/// Functions that make a program's outputs hang on what cannot be moved, with what that is.
const REFUSED: [(&str, &[&str]); 8] = [
    (
        "memory from the heap, which is not in the state",
        &[
            "malloc",
            "calloc",
            "realloc",
            "reallocarray",
            "free",
            "strdup",
            "strndup",
            "asprintf",
            "aligned_alloc",
            "posix_memalign",
            "mmap",
            "mremap",
            "brk",
            "sbrk",
        ],
    ),
    (
        "threads or processes, which end with this one",
        &[
            "fork",
            "vfork",
            "clone",
            "popen",
            "system",
            "execve",
            "execvp",
            "execl",
            "sem_wait",
            "thrd_create",
        ],
    ),
    (
        "sockets, which stay on this computer",
        &[
            "socket",
            "connect",
            "bind",
            "listen",
            "accept",
            "send",
            "sendto",
            "recv",
            "recvfrom",
            "getaddrinfo",
        ],
    ),
    (
        "files, which stay on this computer",
        &[
            "open", "open64", "openat", "fopen", "fopen64", "creat", "read", "write", "ioctl",
            "dlopen",
        ],
    ),
    (
        "a clock, which another computer reads differently",
        &[
            "time",
            "clock",
            "clock_gettime",
            "gettimeofday",
            "times",
            "timespec_get",
            "ftime",
        ],
    ),
    (
        "random numbers, which another computer draws differently",
        &[
            "rand",
            "srand",
            "random",
            "srandom",
            "drand48",
            "lrand48",
            "mrand48",
            "getrandom",
            "getentropy",
            "arc4random",
        ],
    ),
    (
        "what is the computer's own",
        &["getenv", "getpid", "gethostname", "uname", "getrusage"],
    ),
    (
        "waiting or signals",
        &[
            "sleep",
            "usleep",
            "nanosleep",
            "select",
            "poll",
            "signal",
            "sigaction",
            "alarm",
            "setitimer",
            "timer_create",
        ],
    ),
];

/// All that these objects define.
pub(super) fn of(tools: &Tools<'_>, objects: &[PathBuf]) -> Result<BTreeSet<String>, BuildFault> {
    let mut all = BTreeSet::new();
    for object in objects {
        let said = tools.inspect("nm", &["-P", "-g", "--defined-only"], object)?;
        all.extend(
            said.lines()
                .filter_map(|line| line.split(' ').next().map(ToOwned::to_owned)),
        );
    }
    Ok(all)
}

/// Whether the one object has all that is needed, nothing that is refused, and nothing to write outside of the state.
pub(super) fn judge(tools: &Tools<'_>, gathered: &Path) -> Result<(), BuildFault> {
    let defined = of(tools, &[gathered.to_owned()])?;
    // What is missing of a project of STruC++ the linker names.
    let needed = if tools.is_cpp() { &[][..] } else { &NEEDED };
    let mut problems: Vec<String> = needed
        .iter()
        .filter(|(name, _)| !defined.contains(*name))
        .map(|(name, file)| {
            format!(
                "the symbol {name} is missing: no file of the folder defines it; MATIEC generates it in {file}"
            )
        })
        .collect();
    if defined.contains("main") {
        problems.push(
            "the generated files define main(), which is the host's part: leave the file of the runtime out of the \
             folder"
                .into(),
        );
    }
    let undefined = tools.inspect("nm", &["-P", "-u"], gathered)?;
    for name in undefined.lines().filter_map(|line| line.split(' ').next()) {
        if let Some(why) = refused(name) {
            let name = readable(name);
            problems.push(format!(
                "the program calls {name}: {why}, so the program cannot go on elsewhere; take the block that uses it \
                 out of the project"
            ));
        }
    }
    let sections = tools.inspect("readelf", &["-S", "-W"], gathered)?;
    let mut elsewhere = elsewhere(&sections);
    // Constructors of C++ fill the state before it becomes the host's, and write nothing else.
    elsewhere.retain(|section| !(tools.is_cpp() && section.starts_with(".init_array")));
    problems.extend(elsewhere.into_iter().map(|section| {
        format!(
            "the program writes outside of its state, in the section {section} (variables of a thread, or code that \
             runs before main): take the block that has it out of the project"
        )
    }));
    if problems.is_empty() {
        return Ok(());
    }
    Err(BuildFault(problems))
}

/// What functions of C++ are made of, by which they are refused, with what to call them; each has the place of its reason.
const REFUSED_IN_CPP: [(&str, &str, usize); 8] = [
    ("_Znw", "new (in ST: __NEW)", 0),
    ("_Zna", "new[] (in ST: __NEW)", 0),
    ("_ZNSt6thread", "std::thread", 1),
    ("basic_filebuf", "std::fstream", 3),
    ("fstream", "std::fstream", 3),
    (
        "system_clock3now",
        "system_clock::now (in ST: CURRENT_DT)",
        4,
    ),
    ("steady_clock3now", "steady_clock::now", 4),
    ("_ZNSt13random_device", "std::random_device", 5),
];

fn in_cpp(name: &str) -> Option<&'static (&'static str, &'static str, usize)> {
    let found = |part: &str| name.starts_with("_Z") && name.contains(part);
    REFUSED_IN_CPP.iter().find(|(part, ..)| found(part))
}

/// What whoever has written the program calls it.
fn readable(name: &str) -> String {
    match in_cpp(name) {
        Some((_, called, _)) => (*called).to_owned(),
        None => format!("{name}()"),
    }
}

fn refused(name: &str) -> Option<&'static str> {
    if name.starts_with("pthread_") {
        return Some(REFUSED[1].0);
    }
    if let Some((.., why)) = in_cpp(name) {
        return Some(REFUSED[*why].0);
    }
    let found = REFUSED.iter().find(|(_, names)| names.contains(&name));
    found.map(|(why, _)| *why)
}

/// Sections that can be written and are not the state, of what `readelf -SW` says.
fn elsewhere(sections: &str) -> Vec<String> {
    sections
        .lines()
        .filter_map(|line| {
            let (_, row) = line.split_once(']')?;
            let mut fields = row.split_whitespace();
            let name = fields.next()?;
            // Type, address, offset, size, entry size, flags.
            let size = fields.nth(3)?;
            let flags = fields.nth(1)?;
            let written = flags.contains('W') && flags.contains('A');
            let empty = u64::from_str_radix(size, 16) == Ok(0);
            (written && !empty && name != ".bumpless_state").then(|| name.to_owned())
        })
        .collect()
}

/// Bytes of the state of a linked executable, which must lie where it belongs.
pub(super) fn state_len(tools: &Tools<'_>, executable: &Path) -> Result<usize, BuildFault> {
    let said = tools.inspect("nm", &["-P", "-t", "x"], executable)?;
    let address = |wanted: &str| {
        let row = said
            .lines()
            .find(|line| line.split(' ').next() == Some(wanted))?;
        u64::from_str_radix(row.split(' ').nth(2)?, 16).ok()
    };
    let ends = address("bumpless_state_begin").zip(address("bumpless_state_end"));
    match ends {
        Some((STATE_ADDRESS, end)) if end >= STATE_ADDRESS => Ok((end - STATE_ADDRESS) as usize),
        _ => Err(BuildFault::one(
            "the linker has not put the state where it belongs; use GNU ld (`-fuse-ld=bfd` is the default of GCC)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_that_cannot_be_moved_is_refused_by_name() {
        for name in [
            "malloc",
            "pthread_create",
            "socket",
            "fopen",
            "time",
            "rand",
            "getenv",
            "usleep",
            "_Znwm",
            "_ZnwmRKSt9nothrow_t",
            "_ZNSt6chrono3_V212system_clock3nowEv",
            "_ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        ] {
            assert!(refused(name).is_some(), "{name}");
        }
        for name in [
            "sin",
            "memcpy",
            "snprintf",
            "localtime_r",
            "timegm",
            "_ZdlPvm",
        ] {
            assert!(refused(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_section_to_write_outside_of_the_state_is_found() {
        let said = "\
There are 4 section headers:
  [Nr] Name              Type            Address          Off    Size   ES Flg Lk Inf Al
  [ 0]                   NULL            0000000000000000 000000 000000 00      0   0  0
  [ 1] .text             PROGBITS        0000000000000000 000040 000010 00  AX  0   0  1
  [ 2] .bumpless_state   PROGBITS        0000000000000000 010000 010000 00  WA  0   0 65536
  [ 3] .tbss             NOBITS          0000000000000000 020000 000008 00 WAT  0   0  8
  [ 4] .data             PROGBITS        0000000000000000 020000 000000 00  WA  0   0  1
";
        assert_eq!(elsewhere(said), [".tbss"]);
    }
}
