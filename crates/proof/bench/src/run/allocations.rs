//! How often a process asks for memory, counted by the kernel from outside: a probe at the beginning of each
//! function of the C library by which programs allocate, whatever language they are written in.
//!
//! A probe makes each of these calls dearer, so this is counted apart from what takes time.

use std::ffi::{CString, c_int, c_void};
use std::fs;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};

/// Where the kernel says by which number it knows probes in user space.
const KIND: &str = "/sys/bus/event_source/devices/uprobe/type";
/// The descriptor is not for the programs that are started meanwhile.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Arguments of perf_event_open(2) as far as its second version has them.
#[repr(C)]
struct Event {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    path: u64,
    offset: u64,
}

/// A function in a file.
struct Function {
    file: CString,
    offset: u64,
}

/// The counters of one process.
pub struct Allocations(Vec<fs::File>);

impl Allocations {
    /// Counts from here on in all threads that `process` has.
    ///
    /// # Errors
    /// The kernel refuses: it takes root, and probes in user space (`CONFIG_UPROBE_EVENTS`).
    pub fn of(process: u32) -> io::Result<Self> {
        let kind = fs::read_to_string(KIND)?;
        let kind = kind.trim().parse().map_err(io::Error::other)?;
        let functions = functions()?;
        let mut counters = Vec::new();
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            let Some(thread) = number(&task?) else {
                continue;
            };
            for function in &functions {
                match open(kind, function, thread) {
                    // It has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => break,
                    counter => counters.push(counter?),
                }
            }
        }
        Ok(Self(counters))
    }

    /// How often it has asked for memory.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn count(&self) -> io::Result<u64> {
        let mut sum = 0;
        for mut counter in &self.0 {
            let mut bytes = [0; 8];
            counter.read_exact(&mut bytes)?;
            sum += u64::from_ne_bytes(bytes);
        }
        Ok(sum)
    }
}

fn number(task: &fs::DirEntry) -> Option<c_int> {
    task.file_name().to_str()?.parse().ok()
}

fn open(kind: u32, function: &Function, thread: c_int) -> io::Result<fs::File> {
    let event = Event {
        kind,
        size: size_of::<Event>() as u32,
        config: 0,
        sample_period: 0,
        sample_type: 0,
        read_format: 0,
        // Threads that are started later do not inherit it: the kernel would look for the path in their process.
        flags: 0,
        wakeup_events: 0,
        breakpoint: 0,
        path: function.file.as_ptr() as u64,
        offset: function.offset,
    };
    // SAFETY: `event` is valid for reading its stated size through the call, and so is the path that it points to.
    let result = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const event,
            thread,
            -1 as c_int,
            -1 as c_int,
            CLOSE_ON_EXEC,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened this descriptor for us.
    let descriptor = unsafe { OwnedFd::from_raw_fd(result as c_int) };
    Ok(descriptor.into())
}

/// Where the functions that allocate lie in the C library that this process uses; the programs that are
/// measured use the same.
fn functions() -> io::Result<Vec<Function>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let addresses = [
        libc::malloc as *const c_void,
        libc::calloc as *const c_void,
        libc::realloc as *const c_void,
        libc::posix_memalign as *const c_void,
        libc::aligned_alloc as *const c_void,
    ];
    let found = addresses.map(|address| locate(&maps, address as u64));
    let found: Option<Vec<_>> = found.into_iter().collect();
    found.ok_or_else(|| io::Error::other("the C library lies in no file"))
}

/// The file that is mapped at `address`, and where in it that is; `maps` as in proc_pid_maps(5).
fn locate(maps: &str, address: u64) -> Option<Function> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (from, to) = fields.next()?.split_once('-')?;
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        let (from, to) = (hexadecimal(from)?, hexadecimal(to)?);
        let offset = hexadecimal(fields.nth(1)?)?;
        let file = fields.nth(2)?;
        let fits = (from..to).contains(&address) && file.starts_with('/');
        fits.then(|| CString::new(file).ok())
            .flatten()
            .map(|file| Function {
                file,
                offset: address - from + offset,
            })
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_function_is_found_in_the_file_that_is_mapped_there() {
        let maps = "55d0-55d8 r--p 00000000 fe:00 17 /usr/bin/program\n\
                    7f00-7f80 r--p 00000000 fe:00 18 /usr/lib/libc.so.6\n\
                    7f80-8100 r-xp 00000080 fe:00 18 /usr/lib/libc.so.6\n\
                    9000-9100 rw-p 00000000 00:00 0 \n";
        let found = locate(maps, 0x7f93).unwrap();
        assert_eq!(found.file.to_str().unwrap(), "/usr/lib/libc.so.6");
        assert_eq!(found.offset, 0x93);
        assert!(locate(maps, 0x8100).is_none() && locate(maps, 0x9010).is_none());
    }

    #[test]
    fn what_a_process_allocates_is_counted() {
        let root = fs::metadata("/proc/self").unwrap().uid() == 0;
        if !(root && fs::exists(KIND).unwrap()) {
            eprintln!("not run: probes take root and CONFIG_UPROBE_EVENTS");
            return;
        }
        let counted = Allocations::of(std::process::id()).unwrap();
        let before = counted.count().unwrap();
        let boxes: Vec<_> = (0..1000u64).map(Box::new).collect();
        let after = counted.count().unwrap();
        assert_eq!(boxes.len(), 1000);
        // Other tests run beside this one.
        assert!(after - before >= 1001, "{before} {after}");
    }
}
