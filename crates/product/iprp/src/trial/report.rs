//! What a listener tells of a stream.

use serde::{Deserialize, Serialize};

use super::datagram::{ASK_LEN, LEN_MIN};

/// What came of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Datagrams of which at least one came.
    pub arrived: u32,
    /// Datagrams that came again.
    pub doubled: u32,
    /// Datagrams that came after a later one.
    pub reordered: u32,
    /// How delays are spread; `None` if nothing came.
    pub spread: Option<Spread>,
    /// What the listener's daemon counted for the stream, by network.
    pub networks: Vec<Came>,
}

/// How much longer datagrams took than the fastest one, microseconds. The hosts' clocks need not agree for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Half of them took no longer.
    pub median_us: f64,
    /// Of a hundred, 99.
    pub p99_us: f64,
    /// The slowest.
    pub most_us: f64,
}

/// Copies that came, by the network on which they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Came {
    /// The network.
    pub ind: u8,
    /// Handed on.
    pub first: u64,
    /// Discarded, since another one had come.
    pub duplicate: u64,
    /// Discarded as very late.
    pub very_late: u64,
    /// Of all these, on another network.
    pub wrong_network: u64,
}

impl Came {
    /// All copies.
    pub const fn all(&self) -> u64 {
        self.first + self.duplicate + self.very_late
    }
}

impl Report {
    /// As it travels behind a head.
    pub fn bytes(&self) -> Vec<u8> {
        let whole = serde_json::to_vec(self).unwrap_or_default();
        if whole.len() + LEN_MIN <= ASK_LEN {
            return whole;
        }
        // Eight networks with numbers of twenty digits.
        let short = Self {
            networks: Vec::new(),
            ..self.clone()
        };
        serde_json::to_vec(&short).unwrap_or_default()
    }

    /// Reads what [`bytes`](Self::bytes) has made.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_fits_into_what_asks_for_it() {
        let came = |ind| Came {
            ind,
            first: 100_000,
            duplicate: 100_000,
            very_late: 100_000,
            wrong_network: 100_000,
        };
        let report = Report {
            arrived: 100_000,
            doubled: 100_000,
            reordered: 100_000,
            spread: Some(Spread {
                median_us: 123_456.789,
                p99_us: 123_456.789,
                most_us: 123_456.789,
            }),
            networks: (8..16).map(came).collect(),
        };
        let bytes = report.bytes();
        assert!(bytes.len() + LEN_MIN <= ASK_LEN, "{}", bytes.len());
        assert_eq!(Report::read(&bytes), Some(report));
        assert_eq!(Report::read(b"{"), None);
    }
}
