//! What a process takes, as /proc tells, and whether that grows.

use std::fs;

use super::result::{Growth, Usage};

/// Growth that is allowed for: an allocator settles for a while.
const RESIDENT_KB: u64 = 1_024;
/// The same as a share of the early figure, in percent.
const RESIDENT_PERCENT: u64 = 10;
/// Descriptors and threads come and go by as many.
const OTHERS: u64 = 2;
/// With fewer samples nothing can be said.
const SAMPLES_MIN: usize = 8;

/// What the process `pid` takes at this moment; `None` if it is gone.
pub fn usage(pid: u32) -> Option<Usage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some(Usage {
        resident_kb: field("VmRSS:")?,
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64,
        threads: field("Threads:")?,
    })
}

/// Whether `samples`, in order of time, grow: the median of the last quarter beside that of the first.
pub fn growth(process: String, samples: &[Usage]) -> Growth {
    let quarter = (samples.len() / 4).max(1).min(samples.len());
    let early = median(&samples[..quarter]);
    let late = median(&samples[samples.len() - quarter..]);
    let allowed_kb = RESIDENT_KB.max(early.resident_kb * RESIDENT_PERCENT / 100);
    let grew = samples.len() >= SAMPLES_MIN
        && (late.resident_kb > early.resident_kb + allowed_kb
            || late.descriptors > early.descriptors + OTHERS
            || late.threads > early.threads + OTHERS);
    Growth {
        process,
        samples: samples.len(),
        early,
        late,
        grew,
    }
}

fn median(samples: &[Usage]) -> Usage {
    let of = |figure: fn(&Usage) -> u64| {
        let mut figures: Vec<u64> = samples.iter().map(figure).collect();
        figures.sort_unstable();
        figures.get(figures.len() / 2).copied().unwrap_or_default()
    };
    Usage {
        resident_kb: of(|usage| usage.resident_kb),
        descriptors: of(|usage| usage.descriptors),
        threads: of(|usage| usage.threads),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(kb: impl Fn(u64) -> u64, descriptors: impl Fn(u64) -> u64) -> Vec<Usage> {
        let sample = |n| Usage {
            resident_kb: kb(n),
            descriptors: descriptors(n),
            threads: 7,
        };
        (0..40).map(sample).collect()
    }

    #[test]
    fn a_leak_is_seen_and_what_settles_or_wavers_is_not() {
        let grew = |samples: &[Usage]| growth("plant".into(), samples).grew;
        assert!(!grew(&samples(|n| 8_000 + n % 7 * 100, |n| 20 + n % 3)));
        assert!(!grew(&samples(
            |n| if n < 2 { 5_000 } else { 9_000 },
            |_| 20
        )));
        assert!(grew(&samples(|n| 8_000 + n * 100, |_| 20)), "memory");
        assert!(grew(&samples(|_| 8_000, |n| 20 + n / 8)), "descriptors");
        assert!(
            !grew(&samples(|n| n * 9_000, |_| 20)[..7]),
            "too few to say"
        );
        assert!(!growth("none".into(), &[]).grew);
    }

    #[test]
    fn this_very_process_takes_something() {
        let usage = usage(std::process::id()).unwrap();
        assert!(usage.resident_kb > 100 && usage.descriptors > 2 && usage.threads > 0);
    }
}
