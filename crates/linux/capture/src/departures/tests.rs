//! What waits and leaves together, beside a twin that sends each copy at once.

use std::collections::BTreeMap;

use bumpless_net_linux::Errno;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// What has gone each way, in order.
type Gone = BTreeMap<(usize, SocketAddr), Vec<Vec<u8>>>;

/// Networks that take what is not longer than their MTU until they go down, some of which refuse segments.
#[derive(Default)]
struct Made {
    mtus: Vec<usize>,
    /// Calls after which each network is down.
    until: Vec<usize>,
    refuse_segments: Vec<bool>,
    given_up: Vec<bool>,
    calls: Vec<usize>,
    gone: Gone,
}

impl Made {
    fn is_taken(&self, on: usize, copy: &[u8]) -> bool {
        copy.len() <= self.mtus[on]
    }
}

/// As udp(7) and the kernel have it: equal sizes, of which the last may be shorter and none is empty.
fn is_one_message(copies: &[Segment<'_>]) -> bool {
    let size = copies[0].len();
    let (last, rest) = copies.split_last().unwrap();
    rest.iter().all(|it| it.len() == size)
        && (1..=size).contains(&last.len())
        && copies.len() <= 64
        && copies.iter().map(Segment::len).sum::<usize>() <= 65_507
}

impl Outlet for Made {
    fn segmentation(&self, on: usize) -> bool {
        !self.given_up[on]
    }

    fn give_up_segmentation(&mut self, on: usize) {
        self.given_up[on] = true;
    }

    fn send(
        &mut self,
        on: usize,
        to: SocketAddr,
        copies: &[Segment<'_>],
        segmentation: bool,
    ) -> Result<Taken, Rejected> {
        // A run grows as long as it is one message: what is none does not become one by more copies.
        let grown = (2..=copies.len()).take_while(|run| is_one_message(&copies[..*run]));
        let run = if segmentation { grown.count() + 1 } else { 1 };
        self.calls[on] += 1;
        let rejected = |errno| Err(Rejected { errno, run });
        if self.calls[on] > self.until[on] {
            return rejected(Errno(libc::ENETDOWN));
        }
        if run > 1 && self.refuse_segments[on] {
            return rejected(Errno(libc::EIO));
        }
        let copies = &copies[..run];
        if !copies.iter().all(|it| self.is_taken(on, it.header)) {
            return rejected(Errno(libc::EMSGSIZE));
        }
        let gone = self.gone.entry((on, to)).or_default();
        gone.extend(copies.iter().map(|it| it.header.to_vec()));
        let in_runs = if run > 1 { run } else { 0 };
        Ok(Taken {
            packets: run,
            in_runs,
        })
    }
}

fn to(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The copy at `at` in a list: its number, as far as it fits.
fn content(at: usize, len: usize) -> Vec<u8> {
    let number = (at as u32).to_be_bytes();
    number.into_iter().cycle().take(len).collect()
}

fn made(networks: &[(usize, usize, bool)]) -> Made {
    Made {
        mtus: networks.iter().map(|it| it.0).collect(),
        until: networks.iter().map(|it| it.1).collect(),
        refuse_segments: networks.iter().map(|it| it.2).collect(),
        given_up: vec![false; networks.len()],
        calls: vec![0; networks.len()],
        gone: Gone::new(),
    }
}

/// Copies that all are added, and then leave.
fn add_all(departures: &mut Departures, copies: &[(usize, u16, usize)]) {
    for (at, &(on, port, len)) in copies.iter().enumerate() {
        assert!(departures.add((on, to(port)), at, &content(at, len)));
    }
}

const ROOM: usize = 4 << 20;

/// Mostly of a few sizes, so that runs come about.
fn a_length() -> impl Strategy<Value = usize> {
    prop_oneof![4 => Just(40), 1 => Just(300), 1 => Just(1_400), 1 => 1usize..1_500, 1 => Just(9_000)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_copy_meets_with_the_fate_that_it_has_alone_in_its_order(
        copies in vec((0usize..2, 0u16..2, a_length()), 0..200),
        mtus in [100usize..10_000, 100usize..10_000],
        refuse_segments in any::<[bool; 2]>(),
    ) {
        let networks: Vec<_> = mtus.into_iter().zip(refuse_segments).map(|(mtu, refuse)| (mtu, usize::MAX, refuse)).collect();
        let mut outlet = made(&networks);
        let mut departures = Departures::new(copies.len(), ROOM);
        add_all(&mut departures, &copies);
        let (mut fates, mut in_segments) = (vec![None; copies.len()], 0);
        leave(&mut departures.waiting, &departures.bytes, &mut outlet, |it| match it {
            Departed::Left { on, packet } => assert_eq!(fates[packet].replace((on, true)), None),
            Departed::NotTaken { on, packet } => assert_eq!(fates[packet].replace((on, false)), None),
            Departed::InSegments { copies, .. } => in_segments += copies,
            Departed::RunRefused { .. } => {}
        });
        let (mut twin, mut gone) = (Vec::new(), Gone::new());
        for (at, &(on, port, len)) in copies.iter().enumerate() {
            let copy = content(at, len);
            let is_taken = outlet.is_taken(on, &copy);
            twin.push(Some((on, is_taken)));
            if is_taken {
                gone.entry((on, to(port))).or_default().push(copy);
            }
        }
        prop_assert_eq!(fates, twin);
        prop_assert_eq!(&outlet.gone, &gone);
        prop_assert!(in_segments <= copies.len());
        for (on, refuse) in refuse_segments.into_iter().enumerate() {
            prop_assert!(refuse || !outlet.given_up[on], "an MTU is no reason");
        }
    }

    #[test]
    fn a_network_that_goes_down_among_copies_takes_none_from_another(
        copies in vec((0usize..2, 0u16..2, prop_oneof![Just(40), Just(41)]), 1..200),
        down_after in 0usize..6,
    ) {
        let mut outlet = made(&[(1_500, down_after, false), (1_500, usize::MAX, false)]);
        let mut departures = Departures::new(copies.len(), ROOM);
        add_all(&mut departures, &copies);
        let (mut left, mut not_taken) = ([0usize; 2], [0usize; 2]);
        leave(&mut departures.waiting, &departures.bytes, &mut outlet, |it| match it {
            Departed::Left { on, .. } => left[on] += 1,
            Departed::NotTaken { on, .. } => not_taken[on] += 1,
            _ => {}
        });
        for on in 0..2 {
            let all = copies.iter().filter(|it| it.0 == on).count();
            prop_assert_eq!(left[on] + not_taken[on], all);
            let gone = outlet.gone.iter().filter(|it| it.0.0 == on);
            prop_assert_eq!(gone.map(|it| it.1.len()).sum::<usize>(), left[on]);
        }
        prop_assert_eq!(not_taken[1], 0);
        prop_assert!(!outlet.given_up[0], "it is down, and not unable");
    }
}

#[test]
fn copies_of_a_size_for_one_address_leave_in_one_message_with_others_between_them() {
    let copies: Vec<_> = (0..60).map(|at| (at % 2, (at % 3) as u16, 300)).collect();
    let mut outlet = made(&[(1_500, usize::MAX, false); 2]);
    let mut departures = Departures::new(60, ROOM);
    add_all(&mut departures, &copies);
    leave(
        &mut departures.waiting,
        &departures.bytes,
        &mut outlet,
        |_| {},
    );
    assert_eq!(outlet.calls, [3, 3]);
}

#[test]
fn segments_are_given_up_where_they_alone_are_refused_and_nowhere_else() {
    let mut outlet = made(&[(1_500, usize::MAX, true), (200, usize::MAX, false)]);
    for (calls, refused) in [([11, 11], 2), ([10, 11], 1)] {
        let mut departures = Departures::new(20, ROOM);
        let copies: Vec<_> = (0..20).map(|at| (at % 2, 1, 300)).collect();
        add_all(&mut departures, &copies);
        outlet.calls = vec![0; 2];
        let mut runs_refused = 0;
        leave(
            &mut departures.waiting,
            &departures.bytes,
            &mut outlet,
            |it| {
                runs_refused += usize::from(matches!(it, Departed::RunRefused { .. }));
            },
        );
        assert_eq!((&outlet.calls[..], runs_refused), (&calls[..], refused));
    }
    assert_eq!(outlet.given_up, [true, false]);
}
