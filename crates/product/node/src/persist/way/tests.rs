use super::*;

const SIZE: usize = 64;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn every(millis: u64) -> (Keeper, Outlet) {
    let every = Duration::from_millis(millis);
    way(SIZE, every, None, &Arc::default())
}

/// What waits at `outlet`, if anything does.
fn taken(outlet: &Outlet) -> Option<Vec<u8>> {
    let copy = outlet.take()?;
    let state = copy.state().to_vec();
    outlet.give_back(copy);
    Some(state)
}

#[test]
fn at_most_one_state_per_interval_is_taken_and_that_is_the_current_one() {
    let (mut keeper, outlet) = every(100);
    for millis in 0..=250 {
        keeper.keep(&[millis as u8; 3], at(millis));
        let expected = (millis % 100 == 0).then(|| vec![millis as u8; 3]);
        assert_eq!(taken(&outlet), expected, "{millis}");
    }
    keeper.set_every(Duration::from_millis(1));
    keeper.keep(&[9], at(251));
    assert_eq!(taken(&outlet), Some(vec![9]));
}

#[test]
fn the_executor_always_finds_a_buffer_and_the_newest_state_waits() {
    // Every order in which the writer can take, hold, and give back over eight states.
    for order in 0..1u32 << 16 {
        let (mut keeper, outlet) = every(0);
        let mut held: Option<Box<StateCopy>> = None;
        let mut waits = None;
        for state in 0..8u8 {
            for step in 0..2 {
                if order >> (2 * state + step) & 1 == 0 {
                    continue;
                }
                match held.take() {
                    Some(copy) => outlet.give_back(copy),
                    None => {
                        held = outlet.take();
                        assert_eq!(held.as_ref().map(|copy| copy.state()[0]), waits);
                        waits = None;
                    }
                }
            }
            keeper.keep(&[state], at(1 + u64::from(state)));
            waits = Some(state);
        }
        if let Some(copy) = held {
            outlet.give_back(copy);
        }
        assert_eq!(taken(&outlet), Some(vec![7]), "{order:x}");
    }
}

#[test]
fn threads_pass_states_on_whole_and_forward() {
    const ROUNDS: u64 = if cfg!(miri) { 100 } else { 20_000 };
    let (mut keeper, outlet) = every(0);
    let executor = std::thread::spawn(move || {
        for round in 1..=ROUNDS {
            keeper.keep(&round.to_be_bytes().repeat(8), at(round));
        }
    });
    let mut last = 0;
    while last < ROUNDS {
        let Some(copy) = outlet.take() else { continue };
        let (numbers, []) = copy.state().as_chunks::<8>() else {
            panic!("half a number")
        };
        let number = u64::from_be_bytes(numbers[0]);
        assert!(numbers.iter().all(|other| *other == numbers[0]));
        assert!(number > last && copy.published_at == at(number));
        last = number;
        outlet.give_back(copy);
    }
    executor.join().unwrap();
    assert!(outlet.has_ended());
}

#[test]
fn a_received_state_is_taken_once_with_the_time_at_which_it_came() {
    let (mut keeper, outlet) = every(10);
    keeper.keep_received(&[1], 41, at(5), at(20));
    let copy = outlet.take().unwrap();
    assert_eq!((copy.state(), copy.published_at), (&[1][..], at(5)));
    outlet.give_back(copy);
    keeper.keep_received(&[1], 41, at(5), at(30));
    assert_eq!(taken(&outlet), None);
    keeper.keep_received(&[2], 42, at(35), at(40));
    assert_eq!(taken(&outlet), Some(vec![2]));
}

#[test]
fn an_earlier_process_state_stays_while_young_until_another_is_kept() {
    let restored = Some((&[7, 8][..], at(100)));
    let (mut keeper, outlet) = way(SIZE, Duration::ZERO, restored, &Arc::default());
    assert_eq!(keeper.restored(at(99)), Some(&[7, 8][..]));
    assert_eq!(keeper.restored(at(100)), None);
    assert_eq!(taken(&outlet), None, "it is on disk already");
    keeper.keep(&[1], at(50));
    assert_eq!(keeper.restored(at(50)), None);
    assert_eq!(taken(&outlet), Some(vec![1]));
}

#[test]
fn a_state_that_is_too_long_is_cut_and_does_no_harm() {
    let (mut keeper, outlet) = every(0);
    keeper.keep(&[3; SIZE + 9], at(1));
    assert_eq!(taken(&outlet), Some(vec![3; SIZE]));
}

#[test]
fn the_record_that_an_earlier_process_left_outlasts_the_states_that_are_kept_since() {
    let progress = Progress {
        epoch: bumpless_base::Epoch(3),
        cycle: 41,
    };
    let record = b"\x05COUNT\x03INT\0\0\0\x02\x2a\0".to_vec();
    let (keeper, _outlet) = every(0);
    assert_eq!(keeper.retained(), None);
    let mut keeper = keeper.retaining(Some(LeftRecord {
        progress,
        record: record.clone(),
    }));
    keeper.keep(&[1], at(1));
    assert_eq!(
        keeper.retained(),
        Some((progress, Record::parse(&record).unwrap()))
    );
}
