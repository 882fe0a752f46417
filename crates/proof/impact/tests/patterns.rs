//! Every policy under random loads, and whether the model is the same each time.

use bumpless_base::{Duration, Instant};
use bumpless_impact::load::{Load, Shape, Stretch};
use bumpless_impact::machine::ESP32;
use bumpless_impact::patterns::{Round, Trial, pattern};
use bumpless_impact::policy::{Order, Policy};
use bumpless_impact::processor::Tally;

/// `bumpless impact --patterns 1000` tries more.
#[test]
fn ours_is_in_time_and_hands_on_as_much_as_queue_under_random_loads() {
    let mut late = [0; 6];
    for seed in 0..60 {
        let round = Round::run(ESP32, seed);
        assert_eq!(round.broken(), None);
        for (late, tally) in late.iter_mut().zip(&round.tallies) {
            *late += tally.late;
        }
    }
    // The patterns hurt those that do not defend themselves.
    let [none, _, hysteresis, budget, ..] = late;
    assert!(none > 0 && hysteresis > 0 && budget > 0, "{late:?}");
}

fn sound(tally: &Tally, elapsed: Duration) {
    assert_eq!(tally.sent, tally.missed + tally.received, "{tally:?}");
    assert_eq!(
        tally.received,
        tally.overflowed + tally.handled,
        "{tally:?}"
    );
    let busy = tally.interrupt_time + tally.driver_time + tally.critical_time;
    assert!(busy <= elapsed, "{tally:?}");
    assert_eq!(tally.driver_time, ESP32.packet.constant * tally.handled);
    assert_eq!(
        tally.interrupt_time,
        ESP32.interrupt.constant * tally.received
    );
}

#[test]
fn every_packet_is_accounted_for_and_time_is_spent_once() {
    for seed in 100..112 {
        for policy in Policy::ALL {
            let stretches = pattern(seed);
            let lasts = stretches
                .iter()
                .fold(Duration::ZERO, |sum, it| sum + it.lasts);
            let trial = Trial::of(ESP32, policy);
            let end = Instant::ZERO + lasts * 2 + Duration::from_secs(1);
            let mut processor = trial.processor(Load::new(stretches.clone(), 60, seed));
            // Whatever the policy holds back, it lets go in the end.
            processor.drain(end);
            let tally = processor.run_until(end);
            sound(&tally, end.since(Instant::ZERO));
            // In slices: how often somebody looks changes nothing.
            let mut again = trial.processor(Load::new(stretches, 60, seed));
            for slice in 1..40 {
                again.run_until(Instant::ZERO + lasts * slice / 60);
            }
            assert_eq!(tally, again.run_until(end), "the same twice");
        }
    }
}

#[test]
fn without_packets_nobody_is_late_and_without_a_policy_interrupts_take_their_share() {
    let rate = 10_000.0;
    for (shape, share) in [(Shape::Uniform(0.0), 0.0), (Shape::Uniform(rate), 0.056)] {
        let lasts = Duration::from_secs(1);
        let tally = Trial::of(ESP32, Policy::None).run(&[Stretch { shape, lasts }], 1);
        assert_eq!((tally.late, tally.missed), (0, 0));
        let measured = tally.interrupt_time.as_secs_f64();
        assert!((measured - share).abs() < 1e-3, "{measured}");
    }
}

/// A command that says how far it is lets time pass in pieces.
#[test]
fn time_that_passes_in_pieces_brings_what_it_brings_at_once() {
    let orders = [
        Order::CriticalFirst,
        Order::Equal,
        Order::Sliced,
        Order::DriverFirst,
    ];
    for (seed, policy) in (0..).zip(Policy::ALL) {
        for order in orders {
            let trial = Trial {
                order,
                ..Trial::of(ESP32, policy)
            };
            let stretches = pattern(seed);
            let begin = || trial.processor(Load::new(stretches.clone(), 60, seed));
            let end = |millis| Instant::ZERO + Duration::from_millis(millis);
            let whole = begin().run_until(end(1000));
            let mut processor = begin();
            // Odd ones, so that pieces end amid everything.
            for piece in (7..1000).step_by(13) {
                processor.run_until(end(piece));
            }
            assert_eq!(
                processor.run_until(end(1000)),
                whole,
                "{policy:?}, {order:?}"
            );
            assert!(whole.jobs > 0, "{whole:?}");
        }
    }
}
