//! The first paper's own numbers: 7.2.4, figure 12, table 20.

use bumpless_base::{ChannelId, Duration, LinkSet};
use bumpless_plan::report::paper::{FRAME, SIZES, figure_12, lost_in_a_year, packets};
use bumpless_plan::{
    Burst, Channel, Distribution, Link, Loss, Machine, Packets, Scenario, evaluate,
};

#[test]
fn a_tenth_of_a_gigabit_link_loses_between_0_36_and_36_frames_an_hour() {
    for (rate, expected) in [(1e-12, 0.36), (1e-10, 36.0)] {
        let frames = 100e6 * 3_600.0 / (FRAME as f64 * 8.0);
        let lost = frames * Loss::BitErrors(rate).of_frame(FRAME);
        assert!((lost - expected).abs() < expected * 1e-6, "{rate}: {lost}");
    }
}

/// Figure 12: by size of the message, for one network and for two, the messages lost in a year with budgets from
/// none to six. Reckoned with 160 decimal digits from equation 4 as it is printed.
const FIGURE_12: [[[f64; 7]; 2]; 6] = [
    [
        [1.27e6, 2.58e3, 3.48, 3.53e-3, 2.86e-6, 1.93e-9, 1.12e-12],
        [
            1.55, 3.81e-9, 6.25e-18, 7.69e-27, 7.57e-36, 6.22e-45, 4.37e-54,
        ],
    ],
    [
        [
            6.38e5, 6.46e2, 4.36e-1, 2.21e-4, 8.97e-8, 3.04e-11, 8.81e-15,
        ],
        [
            7.75e-1, 9.54e-10, 7.82e-19, 4.82e-28, 2.37e-37, 9.76e-47, 3.44e-56,
        ],
    ],
    [
        [
            2.55e5, 1.04e2, 2.80e-2, 5.70e-6, 9.30e-10, 1.26e-13, 1.48e-17,
        ],
        [
            3.10e-1, 1.53e-10, 5.03e-20, 1.24e-29, 2.46e-39, 4.06e-49, 5.75e-59,
        ],
    ],
    [
        [
            1.28e5, 2.60e1, 3.54e-3, 3.62e-7, 2.97e-11, 2.04e-15, 1.20e-19,
        ],
        [
            1.55e-1, 3.84e-11, 6.34e-21, 7.87e-31, 7.85e-41, 6.54e-51, 4.69e-61,
        ],
    ],
    [
        [
            2.57e4, 1.06, 2.96e-5, 6.29e-10, 1.08e-14, 1.58e-19, 2.00e-24,
        ],
        [
            3.12e-2, 1.56e-12, 5.30e-23, 1.37e-33, 2.86e-44, 5.07e-55, 7.80e-66,
        ],
    ],
    [
        [
            3.83e3, 2.56e-2, 1.24e-7, 4.90e-13, 1.67e-18, 5.06e-24, 1.41e-29,
        ],
        [
            4.65e-3, 3.77e-14, 2.23e-25, 1.07e-36, 4.40e-48, 1.62e-59, 5.47e-71,
        ],
    ],
];

#[test]
fn messages_fall_into_as_many_packets_as_the_paper_says() {
    assert_eq!(packets(15_000), 10);
    assert_eq!(packets(5_000_000), 3_334, "more than 3,000");
}

#[test]
fn figure_12_comes_out() {
    for (size, networks) in SIZES.into_iter().zip(FIGURE_12) {
        for (row, count) in networks.iter().zip(1..) {
            for (&expected, budget) in row.iter().zip(0..) {
                let seen = lost_in_a_year(size, budget, count);
                let error = (seen / expected - 1.0).abs();
                assert!(
                    error < 0.01,
                    "{size} B, budget {budget}, {count} networks: {seen:e}"
                );
            }
        }
    }
}

#[test]
fn from_a_budget_of_five_on_less_than_1e_6_messages_are_lost_in_a_year() {
    for size in SIZES {
        for budget in 5..=10 {
            let lost = lost_in_a_year(size, budget, 1);
            assert!(lost < 1e-6, "{size} bytes, budget {budget}: {lost:e}");
        }
    }
    let four = lost_in_a_year(SIZES[0], 4, 1);
    assert!(four > 1e-6, "the largest message needs the fifth: {four:e}");
}

#[test]
fn the_drawn_figure_12_has_a_line_for_each_size_on_one_network_and_on_two() {
    let drawn = figure_12();
    assert!(drawn.starts_with("<svg xmlns=") && drawn.contains("<style>"));
    for at in 0..SIZES.len() {
        for class in [format!("c{at}"), format!("c{at} dash")] {
            let line = format!("<polyline class=\"{class}\"");
            assert_eq!(drawn.matches(&line).count(), 1, "{class}");
        }
    }
    for name in ["5 MB", "2.5 MB", "1 MB", "0.5 MB", "0.1 MB", "0.015 MB"] {
        assert!(drawn.contains(&format!(">{name}<")), "{name}");
    }
}

/// Table 20: period (ms), budget, size, utilisation in percent.
const TABLE_20: [(u64, u32, u32, f64); 11] = [
    (10, 2, 800, 0.06),
    (20, 2, 800, 0.03),
    (50, 3, 40_000, 0.64),
    (100, 3, 400_000, 3.2),
    (100, 4, 800_000, 6.4),
    (200, 4, 1_600_000, 6.4),
    (500, 5, 8_000_000, 12.8),
    (500, 5, 8_000_000, 12.8),
    (500, 5, 8_000_000, 12.8),
    (500, 5, 8_000_000, 12.8),
    (1000, 5, 8_000_000, 6.4),
];

fn table_20() -> Scenario {
    let link = Link {
        name: "A".into(),
        bandwidth: 1_000_000_000,
        frame_overhead: 66,
        gap: 20,
        round_trip: (Duration::from_micros(50), Duration::from_micros(500)),
        answers_behind: false,
        burst: Burst::Fixed(65_536),
        other_frame: 1_538,
        loss: Loss::BitErrors(1e-10),
        background: Vec::new(),
    };
    let channels = TABLE_20
        .iter()
        .enumerate()
        .map(|(at, &(period, budget, size, _))| Channel {
            id: ChannelId::new(at as u16 + 1).unwrap(),
            name: (at + 1).to_string(),
            size,
            period: Duration::from_millis(period),
            deadline: Duration::from_millis(period),
            budget,
            budget_follows: false,
            accepted_loss_per_year: None,
            links: LinkSet::first(1),
            distribution: Distribution::Replicate,
        });
    Scenario {
        links: vec![link],
        packets: Packets {
            payload: 1442,
            header: 30,
            security: 0,
            in_flight_max: 512,
        },
        machine: Machine::default(),
        channels: channels.collect(),
    }
}

#[test]
fn table_20_takes_74_3_percent_of_its_link_and_is_feasible() {
    let plan = evaluate(&table_20()).expect("no impossible value");
    assert!(plan.admitted, "{:#?}", plan.unmet);
    let link = &plan.situations[0].resources[0];
    assert!(
        (link.payload_utilisation - 0.743).abs() < 0.0005,
        "{}",
        link.payload_utilisation
    );
    for (&(period, _, size, percent), channel) in TABLE_20.iter().zip(&plan.channels) {
        let share = f64::from(size) * 8.0 / (period as f64 * 1e6) * 100.0;
        assert!(
            (share - percent).abs() < 0.006,
            "channel {}: {share}",
            channel.name
        );
    }
    let responses: Vec<_> = plan.situations[0]
        .channels
        .iter()
        .map(|c| c.response_ns)
        .collect();
    for (&(period, ..), response) in TABLE_20.iter().zip(&responses) {
        assert!(
            response.is_some_and(|r| r <= period * 1_000_000),
            "{responses:?}"
        );
    }
}
