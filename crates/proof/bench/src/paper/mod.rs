//! What the first paper measured: tables 15, 16, 20, 21 and 22 of Johansson et al., *Checkpointing and State
//! Transfer for Industrial Controller Redundancy*, in milliseconds, on two mini computers with VxWorks
//! and one switched network of 1 Gbit/s.

#[rustfmt::skip]
mod tables;

pub use tables::*;

/// Minimum, average, maximum for each size and loss; `None` where nothing was measured. Losses are in the
/// order of `LossCase::ALL`.
pub type Table = [[Option<[f64; 3]>; 6]; 13];

/// The sizes of table 13, bytes.
pub const SIZES: [usize; 13] = [
    128,
    256,
    512,
    1 << 10,
    2 << 10,
    5 << 10,
    10 << 10,
    25 << 10,
    50 << 10,
    100 << 10,
    250 << 10,
    500 << 10,
    1 << 20,
];

/// One application of table 20, and its transfer times of table 22.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Application {
    /// Period and deadline, milliseconds.
    pub period_ms: u64,
    /// Bytes of its state.
    pub size: usize,
    /// Minimum, average, maximum of the transfer time, milliseconds.
    pub measured_ms: [f64; 3],
}

/// Tables 20 and 22: eleven applications at once, one packet lost each second.
pub const APPLICATIONS: [Application; 11] = [
    Application {
        period_ms: 10,
        size: 800,
        measured_ms: [0.96, 1.16, 5.01],
    },
    Application {
        period_ms: 20,
        size: 800,
        measured_ms: [0.96, 2.02, 6.0],
    },
    Application {
        period_ms: 50,
        size: 40_000,
        measured_ms: [0.96, 2.8, 15.99],
    },
    Application {
        period_ms: 100,
        size: 400_000,
        measured_ms: [4.0, 10.59, 32.0],
    },
    Application {
        period_ms: 100,
        size: 800_000,
        measured_ms: [7.97, 13.48, 34.03],
    },
    Application {
        period_ms: 200,
        size: 1_600_000,
        measured_ms: [23.0, 32.37, 104.0],
    },
    Application {
        period_ms: 500,
        size: 8_000_000,
        measured_ms: [77.98, 106.16, 157.01],
    },
    Application {
        period_ms: 500,
        size: 8_000_000,
        measured_ms: [154.01, 213.69, 257.01],
    },
    Application {
        period_ms: 500,
        size: 8_000_000,
        measured_ms: [216.98, 309.76, 363.01],
    },
    Application {
        period_ms: 500,
        size: 8_000_000,
        measured_ms: [282.05, 403.81, 459.01],
    },
    Application {
        period_ms: 1000,
        size: 8_000_000,
        measured_ms: [456.04, 922.46, 981.0],
    },
];

/// The table whose circumstances are most like those of a peer, with its name.
pub fn counterpart(peer: &str, connection: &str) -> Option<(&'static str, &'static Table)> {
    let many = connection == "many";
    Some(match peer {
        "transfer" | "transfer-replicate" | "transfer-spread" => {
            ("RSTP prototype, table 21", &TRANSFER)
        }
        "tcp" | "mptcp" if many => ("TCP, default, many, table 15", &TCP_DEFAULT_MANY),
        "tcp" | "mptcp" => ("TCP, default, single, table 15", &TCP_DEFAULT_SINGLE),
        "tcp-tuned" if many => ("TCP, optimized, many, table 15", &TCP_OPTIMIZED_MANY),
        "tcp-tuned" => ("TCP, optimized, single, table 15", &TCP_OPTIMIZED_SINGLE),
        "usrsctp" if many => ("SCTP, default, many, table 16", &SCTP_DEFAULT_MANY),
        "usrsctp" => ("SCTP, default, single, table 16", &SCTP_DEFAULT_SINGLE),
        "usrsctp-tuned" if many => ("SCTP, optimized, many, table 16", &SCTP_OPTIMIZED_MANY),
        "usrsctp-tuned" => ("SCTP, optimized, single, table 16", &SCTP_OPTIMIZED_SINGLE),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_where_the_paper_has_them() {
        // 1 MB over TCP without loss, and 10 KB with ten packets lost, each once by hand.
        assert_eq!(TCP_DEFAULT_SINGLE[12][0], Some([9.0, 9.1, 9.2]));
        assert_eq!(TCP_OPTIMIZED_SINGLE[6][5], Some([99.9, 215.3, 5300.0]));
        assert_eq!(SCTP_OPTIMIZED_MANY[12][5], Some([11.2, 17.6, 409.7]));
        assert_eq!(TRANSFER[12][5], Some([11.0, 12.2, 16.0]));
        assert_eq!(TRANSFER[3][0], Some([1.0; 3]));
        assert_eq!(TCP_DEFAULT_SINGLE[0][3], None);
        for table in [&TCP_DEFAULT_MANY, &SCTP_DEFAULT_SINGLE, &TRANSFER] {
            let all = table.iter().flatten().flatten();
            assert!(all.clone().all(|[min, avg, max]| min <= avg && avg <= max));
        }
    }

    #[test]
    fn the_applications_use_as_much_of_the_network_as_the_paper_says() {
        let load: f64 = APPLICATIONS
            .iter()
            .map(|app| app.size as f64 * 8.0 / (app.period_ms as f64 / 1e3) / 1e9)
            .sum();
        // The paper's column adds up to 74.3 %.
        assert!((load - 0.743).abs() < 0.001, "{load}");
    }
}
