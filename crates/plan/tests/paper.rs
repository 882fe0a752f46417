//! The first paper's own numbers: 7.2.4, figure 12, table 20.

use bumpless_base::{Duration, LinkSet};
use bumpless_plan::reliability::{lost_on_all, state_loss, states_per_year};
use bumpless_plan::{
    Burst, Channel, Distribution, Link, Loss, Machine, Packets, Scenario, evaluate,
};

/// Bytes of a full-size Ethernet frame, 12,144 bits.
const FRAME: u64 = 1518;

#[test]
fn a_tenth_of_a_gigabit_link_loses_between_0_36_and_36_frames_an_hour() {
    for (rate, expected) in [(1e-12, 0.36), (1e-10, 36.0)] {
        let frames = 100e6 * 3_600.0 / (FRAME as f64 * 8.0);
        let lost = frames * Loss::BitErrors(rate).of_frame(FRAME);
        assert!((lost - expected).abs() < expected * 1e-6, "{rate}: {lost}");
    }
}

/// Expected messages lost per year for figure 12: one each 100 ms, bit error rate 1e-10.
fn figure_12(size: f64, budget: u32, links: usize) -> f64 {
    let packets = (size / 1460.0).ceil() as u64;
    let one = Loss::BitErrors(1e-10).of_frame(FRAME);
    let p = lost_on_all(std::iter::repeat_n(one, links));
    state_loss(packets, budget, p) * states_per_year(Duration::from_millis(100))
}

/// Figure 12: size of the message, and for one network and for two, the messages lost in a year with budgets from
/// none to six. Reckoned with 120 decimal digits from equation 4 as it is printed.
type Row = (f64, [[f64; 7]; 2]);
const FIGURE_12: [Row; 6] = [
    (
        5e6,
        [
            [1.31e6, 2.72e3, 3.77, 3.93e-3, 3.27e-6, 2.27e-9, 1.35e-12],
            [
                1.59, 4.02e-9, 6.78e-18, 8.57e-27, 8.67e-36, 7.31e-45, 5.28e-54,
            ],
        ],
    ),
    (
        2.5e6,
        [
            [
                6.55e5, 6.82e2, 4.73e-1, 2.47e-4, 1.03e-7, 3.57e-11, 1.07e-14,
            ],
            [
                7.97e-1, 1.01e-9, 8.49e-19, 5.37e-28, 2.72e-37, 1.15e-46, 4.16e-56,
            ],
        ],
    ),
    (
        1e6,
        [
            [
                2.62e5, 1.09e2, 3.04e-2, 6.34e-6, 1.06e-9, 1.48e-13, 1.78e-17,
            ],
            [
                3.19e-1, 1.61e-10, 5.44e-20, 1.38e-29, 2.81e-39, 4.76e-49, 6.93e-59,
            ],
        ],
    ),
    (
        0.5e6,
        [
            [
                1.31e5, 2.74e1, 3.83e-3, 4.02e-7, 3.39e-11, 2.39e-15, 1.45e-19,
            ],
            [
                1.60e-1, 4.05e-11, 6.86e-21, 8.75e-31, 8.96e-41, 7.66e-51, 5.64e-61,
            ],
        ],
    ),
    (
        0.1e6,
        [
            [
                2.64e4, 1.12, 3.23e-5, 7.06e-10, 1.25e-14, 1.87e-19, 2.44e-24,
            ],
            [
                3.21e-2, 1.66e-12, 5.78e-23, 1.53e-33, 3.30e-44, 6.01e-55, 9.50e-66,
            ],
        ],
    ),
    (
        0.015e6,
        [
            [
                4.21e3, 3.07e-2, 1.62e-7, 6.87e-13, 2.50e-18, 8.10e-24, 2.39e-29,
            ],
            [
                5.12e-3, 4.53e-14, 2.89e-25, 1.49e-36, 6.61e-48, 2.60e-59, 9.31e-71,
            ],
        ],
    ),
];

#[test]
fn figure_12_comes_out() {
    for (size, networks) in FIGURE_12 {
        for (links, row) in networks.iter().enumerate() {
            for (budget, &expected) in row.iter().enumerate() {
                let seen = figure_12(size, budget as u32, links + 1);
                let error = (seen / expected - 1.0).abs();
                assert!(
                    error < 0.01,
                    "{size} B, budget {budget}, {} networks: {seen:e}",
                    links + 1
                );
            }
        }
    }
}

#[test]
fn with_a_budget_of_five_or_more_less_than_a_millionth_message_is_lost_in_a_year() {
    for (size, _) in FIGURE_12 {
        for budget in 5..=10 {
            let lost = figure_12(size, budget, 1);
            assert!(lost < 1e-6, "{size} bytes, budget {budget}: {lost:e}");
        }
    }
    let four = figure_12(5e6, 4, 1);
    assert!(four > 1e-6, "the largest message needs the fifth: {four:e}");
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
