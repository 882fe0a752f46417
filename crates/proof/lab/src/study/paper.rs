//! The fifth paper's figures (table II and V-B), milliseconds.

use bumpless_wan::emulation::Line;

/// What the paper says of an amount of round trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The mean.
    pub mean: f64,
    /// The median, where it is told.
    pub median: Option<f64>,
    /// 1 of 100 is not above it, where it is told.
    pub low: Option<f64>,
    /// 99 of 100 are not above it, where it is told.
    pub high: Option<f64>,
}

const fn whole(mean: f64, median: f64, low: f64, high: f64) -> Figures {
    Figures {
        mean,
        median: Some(median),
        low: Some(low),
        high: Some(high),
    }
}

/// Table II: the emulated network.
pub const NETWORK: Figures = whole(8.018, 8.184, 5.064, 11.053);

/// Table II: a backup.
pub const fn backup(line: Line) -> Figures {
    match line {
        Line::Lte => whole(86.601, 81.067, 60.324, 157.903),
        Line::Ethernet => whole(3.602, 3.576, 2.589, 5.27),
    }
}

/// Messages of others in a second (V-B3).
pub const BACKGROUND: u32 = 50_000;

/// Whether the paper's failovers with this backup were measured beside them.
pub const fn loaded(line: Line) -> bool {
    matches!(line, Line::Lte)
}

/// Table I: each row with its protocol, congestion control, security, and timeout.
pub const TABLE_I: [(u8, &str, &str, &str, &str); 9] = [
    (1, "TCP", "Cubic", "-", "50"),
    (2, "TCP", "Cubic", "TLS 1.3", "50"),
    (3, "QUICv1", "Cubic", "TLS 1.3", "50"),
    (4, "MPTCPv0 (def. sched.)", "Balia", "-", "-"),
    (5, "MPTCPv0 (def. sched.)", "Balia", "TLS 1.3", "-"),
    (6, "MPTCPv1 (def. sched.)", "Cubic", "-", "-"),
    (7, "MPTCPv1 (def. sched.)", "Cubic", "TLS 1.3", "-"),
    (8, "MPTCPv0 (red. sched.)", "Balia", "-", "-"),
    (9, "MPTCPv0 (red. sched.)", "Balia", "TLS 1.3", "-"),
];

/// The time of a failover with this backup, by row of table I (V-B2 and V-B3); where the text has a word for it and no
/// number, the number that it names.
pub const fn failover(row: u8, line: Line) -> Option<Figures> {
    let (mean, median) = match (row, line) {
        (1, Line::Ethernet) => (70.0, Some(68.0)),
        (2 | 3, Line::Ethernet) => (134.0, Some(127.0)),
        (4, Line::Ethernet) => (619.0, Some(499.0)),
        (5, Line::Ethernet) => (665.0, Some(504.0)),
        (6, Line::Ethernet) => (442.0, Some(424.0)),
        (7, Line::Ethernet) => (467.0, Some(420.0)),
        (1, Line::Lte) => (218.0, Some(208.0)),
        (2, Line::Lte) => (386.0, Some(379.0)),
        (3, Line::Lte) => (234.0, Some(219.0)),
        (4 | 5, Line::Lte) => (1200.0, None),
        (6 | 7, Line::Lte) => (500.0, Some(500.0)),
        (8 | 9, Line::Lte) => (95.0, Some(91.0)),
        _ => return None,
    };
    Some(Figures {
        mean,
        median,
        low: None,
        high: None,
    })
}
