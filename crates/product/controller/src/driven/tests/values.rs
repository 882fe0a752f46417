//! Values, their quality and their age.

use super::*;

#[test]
fn values_are_scaled_and_written_with_stamp_and_deadline() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    inside.begin(sound(good(8.0)));
    let mut values = [0.0];
    assert_eq!(field.read(&mut values, later()), Ok(FieldSample::default()));
    assert_eq!(values, [4.0]);
    let until = later();
    field.write(&[3.2], STAMP, until).unwrap();
    let written = Order::Write {
        until: until.as_nanos(),
        epoch: 5,
        cycle: 7,
        values: vec![6.0],
    };
    assert_eq!(inside.orders.lock().unwrap()[1], written);
}

#[test]
fn a_backup_has_its_driver_write_nothing_and_read_no_inputs() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    inside.begin(sound(good(8.0)));
    for _ in 0..5 {
        field.keep_warm(later()).unwrap();
    }
    assert_eq!(inside.kinds(), ["probe"; 5]);
}

#[test]
fn no_order_goes_to_a_driver_after_its_time() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    inside.begin(sound(good(8.0)));
    field.read(&mut [0.0], later()).unwrap();
    let late = field.write(&[1.0], STAMP, clock());
    assert_eq!(kind_of(late), FieldErrorKind::Timeout);
    field.read(&mut [0.0], later()).unwrap();
    assert_eq!(inside.kinds(), ["read", "read"]);
}

#[test]
fn a_bad_value_fails_the_device_unless_the_program_asks_for_its_quality() {
    let bad = Value {
        quality: Quality::Bad,
        status: 0x8031_0000,
        ..good(9.0)
    };
    let failing = field(device(true, None), &[read_in(1)], &[]);
    let (mut field, inside) = failing;
    inside.begin(sound(bad));
    let mut values = [7.0];
    let kind = kind_of(field.read(&mut values, later()));
    let status = 0x8031_0000;
    assert_eq!(kind, FieldErrorKind::BadValue { input: 0, status });
    assert_eq!(values, [7.0]);

    let inputs = [
        read_in(1),
        input(InputFrom::Quality(0)),
        input(InputFrom::Age(0)),
        input(InputFrom::Answers),
    ];
    let (mut field, inside) = super::tests::field(device(true, None), &inputs, &[]);
    inside.begin(sound(good(9.0)));
    let mut values = [0.0; 4];
    field.read(&mut values, later()).unwrap();
    assert_eq!((values[0], values[1], values[3]), (4.5, 2.0, 1.0));
    assert!(values[2] < 60_000.0, "{values:?}");
    let doubted = Value {
        quality: Quality::Uncertain,
        ..good(10.0)
    };
    inside.begin(sound(doubted));
    field.read(&mut values, later()).unwrap();
    assert_eq!((values[0], values[1], values[3]), (5.0, 1.0, 1.0));
    inside.begin(sound(bad));
    field.read(&mut values, later()).unwrap();
    assert_eq!(
        (values[0], values[1], values[3]),
        (5.0, 0.0, 1.0),
        "a bad value leaves what was there"
    );
}

#[test]
fn what_is_too_old_is_bad_and_says_how_old_it_is() {
    let inputs = [
        read_in(1),
        input(InputFrom::Quality(0)),
        input(InputFrom::Age(0)),
    ];
    let limit = Duration::from_secs(60);
    let (mut field, inside) = field(device(true, Some(limit)), &inputs, &[]);
    let old = Value {
        taken_at: now() - Duration::from_secs(90).as_nanos(),
        ..good(2.0)
    };
    inside.begin(sound(old));
    let mut values = [0.0; 3];
    field.read(&mut values, later()).unwrap();
    assert_eq!(values[1], 0.0);
    assert!((90_000.0..1e9).contains(&values[2]), "{values:?}");
}

#[test]
fn a_polling_group_is_read_in_its_periods_and_anew_from_another_process() {
    let (mut field, inside) = field(device(true, None), &[read_in(1), read_in(4)], &[]);
    inside.begin(sound(good(2.0)));
    let mut due = Vec::new();
    for _ in 0..5 {
        field.read(&mut [0.0; 2], later()).unwrap();
    }
    inside.begin(sound(good(2.0)));
    field.read(&mut [0.0; 2], later()).unwrap();
    for order in inside.orders.lock().unwrap().iter() {
        if let Order::Read { due: it, .. } = order {
            due.push(it[1]);
        }
    }
    assert_eq!(due, [true, false, false, false, true, true]);
}

#[test]
fn a_write_that_is_done_does_not_hide_that_what_is_read_is_bad() {
    let (mut field, inside) = field(device(false, None), &[read_in(1)], &[output()]);
    let bad = Value {
        quality: Quality::Bad,
        ..good(9.0)
    };
    inside.begin(sound(bad));
    field.read(&mut [0.0], later()).unwrap();
    assert_eq!(field.silent(), 1);
    field.write(&[1.0], STAMP, later()).unwrap();
    assert_eq!(field.silent(), 1);
    inside.begin(sound(good(9.0)));
    field.read(&mut [0.0], later()).unwrap();
    assert_eq!(field.silent(), 0);
}
