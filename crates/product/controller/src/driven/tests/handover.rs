//! Other settings, which go on with the driver of those before.

use super::*;

#[test]
fn other_settings_go_on_with_the_driver_and_read_all_anew() {
    let (mut old, inside) = field(device(true, None), &[read_in(100)], &[output()]);
    inside.begin(sound(good(8.0)));
    let mut values = [0.0];
    old.read(&mut values, later()).unwrap();
    old.write(&[1.0], STAMP, later()).unwrap();
    let (mut next, heir) = field(device(true, None), &[read_in(100)], &[output()]);
    *heir.heir_to.lock().unwrap() = Some(DriverNumber(Arc::as_ptr(&inside) as u64));
    inside.kinds();
    next.take_over(&mut old);
    drop(old);
    for _ in 0..2 {
        next.read(&mut values, later()).unwrap();
        next.write(&[2.0], STAMP, later()).unwrap();
    }
    // The second time, nothing is due.
    assert_eq!(inside.kinds(), ["read", "write", "write"]);
    assert_eq!(inside.given_up.lock().unwrap()[..], []);
}

#[test]
fn what_a_driver_owed_before_a_change_counts_for_nothing_after_it() {
    let (mut old, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    let answers = Arc::new(Mutex::new(()));
    let held = answers.lock().unwrap();
    let waits = Arc::clone(&answers);
    inside.begin(move |number, order| {
        let _answers = waits.lock().unwrap();
        sound(good(8.0))(number, order)
    });
    let late = old.write(&[1.0], STAMP, clock() + SHORT);
    assert_eq!(kind_of(late), FieldErrorKind::Timeout);
    let (mut next, heir) = field(device(true, None), &[read_in(1)], &[output()]);
    *heir.heir_to.lock().unwrap() = Some(DriverNumber(Arc::as_ptr(&inside) as u64));
    next.take_over(&mut old);
    drop(old);
    assert_eq!(
        kind_of(next.read(&mut [0.0], later())),
        FieldErrorKind::DriverBusy
    );
    drop(held);
    while next.read(&mut [0.0], later()).is_err() {
        assert_eq!(inside.given_up.lock().unwrap()[..], []);
    }
}
