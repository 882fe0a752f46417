use super::*;
use bumpless_base::Duration;
use proptest::prelude::*;

const CONTEXT: CycleContext = CycleContext {
    cycle: 0,
    period: Duration::from_millis(10),
};

fn after(parameters: SyntheticParameters, cycles: u64) -> Synthetic {
    let mut synthetic = Synthetic::new(parameters);
    (0..cycles).for_each(|_| synthetic.execute(&CONTEXT, &[], &mut []).unwrap());
    synthetic
}

proptest! {
    #[test]
    fn a_whole_state_verifies_and_tells_its_cycle(
        size in 0usize..700, changed_share in -0.5f64..1.5, cycles in 0u64..300,
    ) {
        let parameters = SyntheticParameters { size, changed_share };
        let synthetic = after(parameters, cycles);
        let shown = parameters.verify(&synthetic.state).unwrap();
        let visible = if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
        prop_assert_eq!(shown, cycles & visible);
    }

    #[test]
    fn a_mix_of_two_states_never_verifies(
        size in 9usize..700, changed_share in 0.01f64..1.0, cycle in 0u64..200,
        ahead in 1u64..20, cut in 1usize..700, swap: bool,
    ) {
        let parameters = SyntheticParameters { size, changed_share };
        let (old, new) = (after(parameters, cycle), after(parameters, cycle + ahead));
        let cut = cut.min(size - 1);
        let (head, tail) = if swap { (&new, &old) } else { (&old, &new) };
        let mut mixed = head.state.clone();
        mixed[cut..].copy_from_slice(&tail.state[cut..]);
        let whole = [&old, &new].iter().any(|whole| whole.state == mixed);
        prop_assert_eq!(parameters.verify(&mixed).is_ok(), whole);
    }

    #[test]
    fn any_bytes_are_loaded_without_panic(
        state in proptest::collection::vec(any::<u8>(), 0..64), changed_share in 0f64..1.0,
    ) {
        let mut synthetic = Synthetic::new(SyntheticParameters { size: state.len(), changed_share });
        let _ = synthetic.load(&state);
        synthetic.execute(&CONTEXT, &[], &mut []).unwrap();
    }

    #[test]
    fn a_successor_goes_on_as_the_original_would(
        size in 0usize..300, changed_share in 0f64..1.0, before in 0u64..200, then in 0u64..50,
    ) {
        let parameters = SyntheticParameters { size, changed_share };
        let mut original = after(parameters, before);
        let mut saved = vec![0; original.state_size_max()];
        let len = original.save(&mut saved);
        let mut successor = Synthetic::new(parameters);
        successor.load(&saved[..len]).unwrap();
        // A counter that does not fit the state counts on modulo what fits.
        for _ in 0..then {
            original.execute(&CONTEXT, &[], &mut []).unwrap();
            successor.execute(&CONTEXT, &[], &mut []).unwrap();
            prop_assert_eq!(&original.state, &successor.state);
        }
    }
}

#[test]
fn the_configured_share_of_bytes_changes_per_cycle() {
    for (share, expected) in [(0.0, 0), (0.1, 800), (0.5, 4_000), (1.0, 8_000)] {
        let parameters = SyntheticParameters {
            size: 8_008,
            changed_share: share,
        };
        let (before, now) = (after(parameters, 7), after(parameters, 8));
        let words = before.state[8..].chunks(8).zip(now.state[8..].chunks(8));
        let changed = 8 * words.filter(|(a, b)| a != b).count();
        assert_eq!(changed, expected, "share {share}");
    }
}

#[test]
fn a_state_of_another_size_is_refused() {
    let parameters = SyntheticParameters {
        size: 16,
        changed_share: 1.0,
    };
    let error = Synthetic::new(parameters).load(&[0; 15]).unwrap_err();
    assert_eq!(
        error,
        LoadError::Length {
            expected: 16,
            found: 15
        }
    );
}

#[test]
fn an_exhausted_counter_wraps_instead_of_panicking() {
    let mut synthetic = Synthetic::new(SyntheticParameters {
        size: 8,
        changed_share: 1.0,
    });
    synthetic.load(&[0xff; 8]).unwrap();
    synthetic.execute(&CONTEXT, &[], &mut []).unwrap();
    assert_eq!(synthetic.cycle(), 0);
}
