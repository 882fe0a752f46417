//! Figures as people read them.

/// A size as the paper writes it: KB and MB as powers of two where it is one of those.
pub fn size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MB", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{} KB", b >> 10),
        b if b >= 1_000_000 => format!("{:.1} MB", b as f64 / 1e6),
        b if b >= 10_000 => format!("{} kB", b / 1000),
        b => format!("{b} B"),
    }
}

/// Milliseconds in as many digits as mean something.
pub fn millis(nanoseconds: u64) -> String {
    match nanoseconds as f64 / 1e6 {
        ms if ms < 10.0 => format!("{ms:.3}"),
        ms if ms < 100.0 => format!("{ms:.2}"),
        ms => format!("{ms:.0}"),
    }
}

/// Milliseconds of the paper, which has one digit after the point.
pub fn paper(ms: f64) -> String {
    if ms >= 100.0 {
        format!("{ms:.0}")
    } else {
        format!("{ms:.1}")
    }
}

/// Memory.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
}
