//! Drivers that fail, and what that costs.

use super::*;

#[test]
fn a_driver_that_hangs_costs_one_call_and_is_given_up() {
    let inputs = [read_in(1), input(InputFrom::Answers)];
    let (mut field, inside) = field(device(false, None), &inputs, &[output()]);
    inside.begin(sound(good(2.0)));
    let mut values = [0.0; 2];
    field.read(&mut values, later()).unwrap();
    assert_eq!(values, [1.0, 1.0]);
    inside.begin(|_, _| Vec::new());
    // The first call waits, and no later one.
    let began = clock();
    field.read(&mut values, clock() + SHORT).unwrap();
    assert_eq!((values, field.silent()), ([1.0, 0.0], 1));
    let waited = clock().since(began);
    assert!(waited >= SHORT, "{waited:?}");
    let began = clock();
    let mut calls = 0;
    while inside.given_up.lock().unwrap().is_empty() {
        field.read(&mut values, clock() + LONG).unwrap();
        field.write(&[1.0], STAMP, clock() + LONG).unwrap();
        assert_eq!(values[1], 0.0);
        calls += 1;
        assert!(clock().since(began) < LONG, "it is never given up");
        thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(calls > 3, "{calls}");
    assert!(matches!(
        inside.given_up.lock().unwrap()[..],
        [DriverFault::Hung(_)]
    ));
    // Of all that it was asked, it has got one order.
    assert_eq!(inside.kinds(), ["read", "read"]);
    inside.begin(sound(good(6.0)));
    field.read(&mut values, later()).unwrap();
    assert_eq!(values, [3.0, 1.0]);
}

#[test]
fn an_answer_that_comes_late_is_not_taken_for_the_next_orders() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[]);
    let release = Arc::new(AtomicUsize::new(0));
    let held = Arc::clone(&release);
    inside.begin(move |number, order| {
        while held.load(Ordering::SeqCst) == 0 {
            thread::sleep(std::time::Duration::from_millis(1));
        }
        sound(good(f64::from(number)))(number, order)
    });
    let mut values = [0.0];
    let kind = kind_of(field.read(&mut values, clock() + SHORT));
    assert_eq!(kind, FieldErrorKind::Timeout);
    assert_eq!(
        kind_of(field.read(&mut values, later())),
        FieldErrorKind::DriverBusy
    );
    release.store(1, Ordering::SeqCst);
    let give_up = later();
    while field.read(&mut values, later()).is_err() {
        assert!(clock() < give_up);
        thread::sleep(std::time::Duration::from_millis(1));
    }
    // The second order's, which is the first that was answered in time.
    assert_eq!(values, [1.0]);
    assert!(inside.given_up.lock().unwrap().is_empty());
}

#[test]
fn a_driver_that_says_what_it_was_not_asked_is_given_up_and_delays_nobody() {
    let say = |put: Put| {
        move |number, _: &Order| {
            let mut buffer = Vec::new();
            put(&mut buffer, number);
            vec![buffer]
        }
    };
    let unasked = DriverFault::Unasked;
    let none = DriverFault::Said(Fault::Malformed);
    let cases: [(Put, DriverFault); 9] = [
        (|b, n| message::put_written(b, n, Outcome::Done), unasked),
        (|b, n| message::put_state(b, n, Outcome::Done), unasked),
        (
            |b, n| message::put_values(b, n + 1, Outcome::Done, &[good(1.0)]),
            unasked,
        ),
        (
            |b, n| message::put_values(b, n, Outcome::Done, &[]),
            unasked,
        ),
        (
            |b, n| message::put_values(b, n, Outcome::Done, &[good(1.0); 2]),
            unasked,
        ),
        (|b, n| message::put_ready(b, n, "again"), unasked),
        (|b, n| message::put_probe(b, n, 1), none),
        (|b, _| b.extend([1, 2, 3]), none),
        (
            |b, _| b.extend([9; 40]),
            DriverFault::Said(Fault::Version(9)),
        ),
    ];
    for (put, fault) in cases {
        let (mut field, inside) = field(device(true, None), &[read_in(1)], &[]);
        inside.begin(say(put));
        let mut values = [7.0];
        let began = clock();
        let kind = kind_of(field.read(&mut values, later()));
        assert_eq!(kind, FieldErrorKind::DriverGone, "{fault:?}");
        assert!(clock().since(began) < LONG / 2);
        assert_eq!(inside.given_up.lock().unwrap()[..], [fault]);
        assert_eq!(
            kind_of(field.read(&mut values, later())),
            FieldErrorKind::DriverGone
        );
        assert_eq!(values, [7.0]);
    }
}

#[test]
fn a_driver_that_ends_is_gone_until_another_one_is_ready() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
    let mut values = [0.0];
    assert_eq!(
        kind_of(field.read(&mut values, later())),
        FieldErrorKind::DriverGone
    );
    inside.begin(|_, _| std::panic::resume_unwind(Box::new("the driver ends")));
    assert_eq!(
        kind_of(field.read(&mut values, later())),
        FieldErrorKind::DriverGone
    );
    assert_eq!(
        kind_of(field.write(&[1.0], STAMP, later())),
        FieldErrorKind::DriverGone
    );
    inside.begin(sound(good(2.0)));
    field.read(&mut values, later()).unwrap();
    assert_eq!(inside.given_up.lock().unwrap()[..], [DriverFault::LetGo]);
}

#[test]
fn what_a_driver_tells_people_is_shown_and_too_much_of_it_is_not() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[]);
    let told = |count: usize| {
        move |number, order: &Order| {
            let mut all = vec![Vec::new(); count];
            all.iter_mut()
                .for_each(|it| message::put_note(it, "certificate refused"));
            all.extend(sound(good(2.0))(number, order));
            all
        }
    };
    inside.begin(told(1));
    inside.note_is_taken.store(1, Ordering::SeqCst);
    field.read(&mut [0.0], later()).unwrap();
    assert!(
        inside.notes.lock().unwrap().is_empty(),
        "nobody waited for the place"
    );
    field.read(&mut [0.0], later()).unwrap();
    assert_eq!(inside.notes.lock().unwrap()[0], "certificate refused");
    inside.begin(told(100));
    assert_eq!(
        kind_of(field.read(&mut [0.0], later())),
        FieldErrorKind::DriverGone
    );
    assert_eq!(inside.given_up.lock().unwrap()[..], [DriverFault::Unasked]);
}

#[test]
fn orders_that_were_not_carried_out_say_why() {
    for (outcome, kind) in [
        (Outcome::Late, FieldErrorKind::Late),
        (Outcome::NoAnswer, FieldErrorKind::Timeout),
        (Outcome::Refused(3), FieldErrorKind::Status(3)),
        (
            Outcome::NotConnected,
            FieldErrorKind::NotConnected(std::io::ErrorKind::NotConnected),
        ),
    ] {
        let (mut field, inside) = field(device(true, None), &[read_in(1)], &[output()]);
        inside.begin(move |number, order| {
            let mut buffer = Vec::new();
            match order {
                Order::Read { .. } => message::put_values(&mut buffer, number, outcome, &[]),
                Order::Write { .. } => message::put_written(&mut buffer, number, outcome),
                _ => message::put_state(&mut buffer, number, outcome),
            }
            vec![buffer]
        });
        assert_eq!(kind_of(field.read(&mut [0.0], later())), kind);
        assert_eq!(kind_of(field.write(&[1.0], STAMP, later())), kind);
        assert_eq!(kind_of(field.keep_warm(later())), kind);
    }
}

#[test]
fn a_driver_that_sends_nothing_as_a_message_is_told_to_have_let_go() {
    let (mut field, inside) = field(device(true, None), &[read_in(1)], &[]);
    inside.begin(|_, _| vec![Vec::new()]);
    let kind = kind_of(field.read(&mut [0.0], later()));
    assert_eq!(kind, FieldErrorKind::DriverGone);
    assert_eq!(inside.given_up.lock().unwrap()[..], [DriverFault::LetGo]);
}
