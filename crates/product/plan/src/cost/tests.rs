use super::*;
use fit::largest_error;
use proptest::prelude::*;

const SIZES: [u32; 20] = [
    0, 700, 1_500, 3_000, 5_000, 7_000, 15_000, 25_000, 35_000, 45_000, 65_000, 75_000, 140_000,
    250_000, 350_000, 700_000, 1_400_000, 3_000_000, 5_000_000, 8_000_000,
];
const ASKED: [u32; 9] = [
    1_000, 2_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 2_000_000, 8_000_000,
];

fn route(payload: u32, bandwidth: u64) -> Route {
    Route {
        payload,
        overhead: 96,
        packet: 1538,
        bandwidth,
        shared_by: 1,
    }
}

fn samples(cost: &Cost, bandwidth: u64, noise: impl Fn(usize) -> f64) -> Vec<Sample> {
    let routes = [route(1442, bandwidth), route(721, bandwidth)];
    let both = routes
        .iter()
        .flat_map(|route| SIZES.map(|size| (*route, size)));
    let measured = both.enumerate().map(|(at, (route, size))| Sample {
        route,
        size,
        nanos: cost.predict(&route, size) * noise(at),
    });
    measured.collect()
}

/// By how much the prediction of `found` differs from `cost` at most, for sizes that were not measured.
fn worst_of(found: &Cost, cost: &Cost, bandwidth: u64) -> f64 {
    let route = route(1442, bandwidth);
    let errors =
        ASKED.map(|size| (found.predict(&route, size) / cost.predict(&route, size) - 1.0).abs());
    errors.into_iter().fold(0.0, f64::max)
}

/// Lateness is a multiple of the step in which it is looked for: beside it, a wait may be one too many.
fn costs() -> impl Strategy<Value = Cost> {
    (
        20e3..300e3,
        50.0..2_000.0,
        50.0..1_500.0,
        0..24u32,
        1.0..1.05,
    )
        .prop_map(
            |(per_transfer_ns, per_packet_ns, per_kilobyte_ns, late, pace_stretch)| Cost {
                per_transfer_ns,
                per_packet_ns,
                per_kilobyte_ns,
                pace_late_ns: f64::from(late) * 2_500.0,
                pace_stretch,
                ..Cost::default()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn an_unpaced_path_with_known_costs_is_recovered(known in costs()) {
        let found = fit(&samples(&known, 0, |_| 1.0)).unwrap();
        prop_assert!(worst_of(&found, &known, 0) < 0.01, "{found:?}");
        prop_assert!((found.per_packet_ns / known.per_packet_ns - 1.0).abs() < 0.05, "{found:?}");
        prop_assert!((found.per_kilobyte_ns / known.per_kilobyte_ns - 1.0).abs() < 0.05, "{found:?}");
        prop_assert!((found.per_transfer_ns / known.per_transfer_ns - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_paced_path_is_predicted_within_two_percent(known in costs()) {
        let found = fit(&samples(&known, 1_000_000_000, |_| 1.0)).unwrap();
        prop_assert!(worst_of(&found, &known, 1_000_000_000) < 0.02, "{found:?}");
    }

    #[test]
    fn a_slow_wire_with_a_bucket_is_predicted_within_five_percent(
        known in costs(), ahead in 0.0..40e3,
    ) {
        let wire = Cost { wire_per_kilobyte_ns: 8_000.0, wire_ahead_bytes: ahead, ..known };
        let known = Cost { pace_late_ns: 0.0, pace_stretch: 1.0, ..wire };
        let found = fit(&samples(&known, 1_015_000_000, |_| 1.0)).unwrap();
        prop_assert!(worst_of(&found, &known, 1_015_000_000) < 0.05, "{found:?}");
    }

    #[test]
    fn medians_off_by_four_percent_move_no_prediction_by_more_than_eight(
        known in costs(), seed in 1u64..1_000_000,
    ) {
        let noise = |at: usize| {
            let random = bumpless_base::random::mix64(seed.wrapping_mul(at as u64 + 1));
            0.96 + 0.08 * (random >> 11) as f64 / (1u64 << 53) as f64
        };
        let found = fit(&samples(&known, 0, noise)).unwrap();
        prop_assert!(worst_of(&found, &known, 0) < 0.08, "{found:?}");
    }
}

#[test]
fn what_no_cost_can_be_told_from_is_refused() {
    let known = Cost {
        per_transfer_ns: 80e3,
        per_packet_ns: 500.0,
        per_kilobyte_ns: 300.0,
        pace_stretch: 1.0,
        ..Cost::default()
    };
    let good = samples(&known, 0, |_| 1.0);
    assert!(fit(&good).is_ok());
    let only = |keep: &dyn Fn(&Sample) -> bool| -> Vec<Sample> {
        good.iter().copied().filter(|sample| keep(sample)).collect()
    };
    assert_eq!(fit(&[]), Err(Unfit::FewSizes(0)));
    assert_eq!(fit(&only(&|s| s.size == 15_000)), Err(Unfit::FewSizes(1)));
    assert_eq!(fit(&only(&|s| s.size > 0)), Err(Unfit::NoEmptyState));
    assert_eq!(fit(&only(&|s| s.size < 100_000)), Err(Unfit::Narrow));
    assert_eq!(
        fit(&only(&|s| s.route.payload == 1442)),
        Err(Unfit::OnePayload)
    );
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut samples = good.clone();
        samples[7].nanos = wrong;
        assert_eq!(fit(&samples), Err(Unfit::Time));
    }
}

#[test]
fn a_paced_sender_waits_for_each_half_burst() {
    // 62,500 bytes at once are 40 packets of 1538; 20 more each 250 us.
    let route = route(1442, 1_000_000_000);
    let pace = Cost {
        pace_stretch: 1.0,
        ..Cost::default()
    };
    let micros = |packets: u32| (pace.predict(&route, packets * 1442) / 1e3).round();
    assert_eq!(micros(40), 0.0);
    // 40 packets have gone, and half a burst is earned anew: 61,520 + 31,250 - 62,500 bytes.
    assert_eq!((micros(41), micros(60)), (242.0, 242.0));
    assert_eq!(micros(61), 488.0);
    assert_eq!(micros(10_000), (241.84 + 246.08f64 * 497.0).round());
}

#[test]
fn the_largest_error_is_the_worst_samples() {
    let known = Cost {
        per_transfer_ns: 1e5,
        pace_stretch: 1.0,
        ..Cost::default()
    };
    let mut samples = samples(&known, 0, |_| 1.0);
    samples[3].nanos *= 0.8;
    assert!((largest_error(&samples, &known) - 0.25).abs() < 1e-9);
}
