use proptest::prelude::*;

use super::*;

fn opening() -> Opening {
    Opening {
        inputs: 2,
        outputs: 1,
        device: "boiler".into(),
        address: "192.0.2.7:4840".into(),
        options: vec![("policy".into(), "None".into())],
    }
}

fn orders() -> Vec<(Vec<u8>, Order)> {
    let mut all = Vec::new();
    let mut add = |put: &dyn Fn(&mut Vec<u8>), order| {
        let mut buffer = vec![9; 3];
        put(&mut buffer);
        all.push((buffer, order));
    };
    add(&|b| put_open(b, 7, &opening()), Order::Open(opening()));
    let point = Point {
        direction: Direction::Output,
        kind: ValueKind::I16,
        name: "ns=2;s=Valve".into(),
    };
    add(
        &|b| put_point(b, 7, 3, &point),
        Order::Point(3, point.clone()),
    );
    add(&|b| put_begin(b, 7), Order::Begin);
    let due = vec![true, false, false, false, false, false, false, false, true];
    let read = Order::Read {
        until: 5,
        due: due.clone(),
    };
    add(&|b| put_read(b, 7, 5, due.iter().copied()), read);
    let write = Order::Write {
        until: 5,
        epoch: 2,
        cycle: 90,
        values: vec![1.5, -2.0],
    };
    let values = [1.5, -2.0];
    add(&|b| put_write(b, 7, (5, 2, 90), values.into_iter()), write);
    add(&|b| put_probe(b, 7, 5), Order::Probe { until: 5 });
    all
}

const VALUE: Value = Value {
    quality: Quality::Uncertain,
    status: 0x4090_0000,
    taken_at: 11,
    value: 2.5,
};

fn sayings() -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); 7];
    put_ready(&mut all[0], 7, "text 1.0");
    put_refused(&mut all[1], 7, "no");
    put_values(&mut all[2], 7, Outcome::Done, &[VALUE, VALUE]);
    put_values(&mut all[3], 7, Outcome::NoAnswer, &[VALUE]);
    put_written(&mut all[4], 7, Outcome::Refused(0x803b_0000));
    put_state(&mut all[5], 7, Outcome::NotConnected);
    put_note(&mut all[6], "certificate refused");
    all
}

#[test]
fn a_write_has_the_bytes_that_are_written_here_by_hand() {
    let mut buffer = Vec::new();
    put_write(&mut buffer, 7, (0x0102, 3, 0x0908), [1.0].into_iter());
    let expected = [
        [1, 5, 0, 0, 0, 0, 0, 7].as_slice(),
        &[0, 0, 0, 0, 0, 0, 1, 2],
        &[0, 0, 0, 0, 0, 0, 0, 3],
        &[0, 0, 0, 0, 0, 0, 9, 8],
        &[0, 0, 0, 1],
        &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(buffer, expected.concat());
}

#[test]
fn a_value_has_the_bytes_that_are_written_here_by_hand() {
    let mut buffer = Vec::new();
    put_values(&mut buffer, 0x0a0b, Outcome::Done, &[VALUE]);
    let expected = [
        [1, 0x84, 0, 0, 0, 0, 10, 11].as_slice(),
        &[0, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 0x40, 0x90, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0, 11],
        &[0x40, 4, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(buffer, expected.concat());
}

#[test]
fn every_order_is_read_as_it_was_written() {
    for (message, order) in orders() {
        assert_eq!(Order::parse(&message), Ok((7, order)));
        assert_eq!(Said::parse(&message), Err(Fault::Malformed), "an order");
    }
}

#[test]
fn everything_that_a_driver_says_is_read_as_it_was_written() {
    let all = sayings();
    let parsed: Vec<_> = all.iter().map(|it| Said::parse(it).unwrap()).collect();
    assert_eq!(parsed[0], (7, Said::Ready("text 1.0")));
    assert_eq!(parsed[1], (7, Said::Refused("no")));
    let (7, Said::Values(Outcome::Done, values)) = parsed[2] else {
        panic!("{:?}", parsed[2]);
    };
    assert_eq!(values.iter().collect::<Vec<_>>(), [VALUE, VALUE]);
    let (7, Said::Values(Outcome::NoAnswer, none)) = parsed[3] else {
        panic!("{:?}", parsed[3]);
    };
    assert!(none.is_empty());
    assert_eq!(parsed[4], (7, Said::Written(Outcome::Refused(0x803b_0000))));
    assert_eq!(parsed[5], (7, Said::State(Outcome::NotConnected)));
    assert_eq!(parsed[6], (0, Said::Note("certificate refused")));
}

#[test]
fn what_is_cut_or_longer_or_of_another_version_is_no_message() {
    let orders = orders().into_iter().map(|(message, _)| message);
    for message in orders.chain(sayings()) {
        // Values may be fewer; whoever asked knows how many are due.
        let values = message[1] == Kind::Values as u8;
        for len in 0..message.len() {
            let cut = &message[..len];
            let fewer = values && len >= 16 && (len - 16) % 24 == 0;
            assert!(Order::parse(cut).is_err(), "{cut:?}");
            assert_eq!(Said::parse(cut).is_err(), !fewer, "{cut:?}");
        }
        let longer = [&message[..], &[0]].concat();
        assert!(Order::parse(&longer).is_err() && Said::parse(&longer).is_err());
        let mut other = message.clone();
        other[0] = 2;
        assert_eq!(Order::parse(&other), Err(Fault::Version(2)));
        assert_eq!(Said::parse(&other), Err(Fault::Version(2)));
    }
}

#[test]
fn a_text_that_is_too_long_is_cut_between_two_characters() {
    let mut buffer = Vec::new();
    put_note(&mut buffer, &"é".repeat(40_000));
    let (_, Said::Note(text)) = Said::parse(&buffer).unwrap() else {
        panic!("{buffer:?}");
    };
    assert_eq!(text.chars().count(), 32_767);
}

proptest! {
    #[test]
    fn no_bytes_make_either_side_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Order::parse(&bytes);
        let _ = Said::parse(&bytes);
    }

    #[test]
    fn no_changed_byte_makes_either_side_panic(which in 0..13usize, at in 0..400usize, to: u8) {
        let orders = orders().into_iter().map(|(message, _)| message);
        let mut message = orders.chain(sayings()).nth(which).unwrap();
        let len = message.len();
        message[at % len] = to;
        let _ = Order::parse(&message);
        let _ = Said::parse(&message);
    }

    #[test]
    fn the_inputs_that_are_due_are_those_that_were_asked_for(due in proptest::collection::vec(any::<bool>(), 0..90)) {
        let mut buffer = Vec::new();
        put_read(&mut buffer, 1, 2, due.iter().copied());
        prop_assert_eq!(Order::parse(&buffer), Ok((1, Order::Read { until: 2, due })));
    }
}
