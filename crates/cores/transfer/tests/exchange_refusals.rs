//! Exchanges and channels that are refused, and what is said of them.

mod world;

use bumpless_base::{Duration, LinkSet, PeerId};
use bumpless_transfer::*;
use world::*;

#[test]
fn an_impossible_exchange_is_refused_with_its_reason_and_changes_nothing() {
    let mut world = roomy().build();
    world.transfer(&state(0, ROOMY_SIZE)).unwrap();
    let factory = world.sender.factory();
    let prepared = |place, number| {
        let setup = two_links().sender(id(number));
        factory.prepare(place, &setup).unwrap().0
    };
    let mut refusal = |place, replacement: SenderReplacement| {
        let channel = replacement.channel().copied();
        let refused = world
            .sender
            .exchange(place, replacement, world.now)
            .unwrap_err();
        assert_eq!(refused.replacement.channel().copied(), channel);
        refused.to_string()
    };
    assert_eq!(
        refusal(ChannelPlace(3), factory.vacant()),
        "place 3: there are 3 places, counted from 0; start with more room"
    );
    assert_eq!(
        refusal(ChannelPlace(2), prepared(ChannelPlace(1), 5)),
        "place 2: the channel was prepared for place 1; put it there"
    );
    assert_eq!(
        refusal(ChannelPlace(1), prepared(ChannelPlace(1), 0)),
        "channel 1 with peer 0 is at place 0; take it out there first"
    );
    let other = roomy().build().sender.factory();
    assert_eq!(
        refusal(ChannelPlace(1), other.vacant()),
        "the channel was prepared for another node; prepare it with this one's factory"
    );
    // Who was at a place belongs there; nobody belongs anywhere.
    let vacant = world
        .sender
        .exchange(ChannelPlace(1), prepared(ChannelPlace(1), 5), world.now)
        .unwrap();
    let nobody = world
        .sender
        .exchange(ChannelPlace(2), vacant, world.now)
        .unwrap();
    let left = world
        .sender
        .exchange(ChannelPlace(1), nobody, world.now)
        .unwrap();
    let refused = world
        .sender
        .exchange(ChannelPlace(2), left, world.now)
        .unwrap_err();
    let other_place = ExchangeError::OtherPlace {
        place: ChannelPlace(2),
        prepared_for: ChannelPlace(1),
    };
    assert_eq!(refused.reason, other_place);
    world.transfer(&state(1, ROOMY_SIZE)).unwrap();
    assert_eq!(world.read(0).unwrap().1, state(1, ROOMY_SIZE));
}

#[test]
fn a_receivers_exchange_is_refused_for_the_same_reasons() {
    let mut world = roomy().build();
    let factory = world.receiver.factory();
    let prepared = |place, number| {
        let setup = two_links().receiver(id(number));
        factory.prepare(place, &setup).unwrap().0
    };
    let mut reason = |place, replacement| {
        let refused = world
            .receiver
            .exchange(place, replacement, world.now)
            .unwrap_err();
        refused.reason
    };
    let no_such_place = ExchangeError::NoSuchPlace {
        place: ChannelPlace(3),
        places: 3,
    };
    assert_eq!(reason(ChannelPlace(3), factory.vacant()), no_such_place);
    let other_place = ExchangeError::OtherPlace {
        place: ChannelPlace(2),
        prepared_for: ChannelPlace(1),
    };
    assert_eq!(
        reason(ChannelPlace(2), prepared(ChannelPlace(1), 5)),
        other_place
    );
    let taken = ExchangeError::IdentityTaken {
        peer: PEER,
        id: id(0),
        place: ChannelPlace(0),
    };
    assert_eq!(reason(ChannelPlace(1), prepared(ChannelPlace(1), 0)), taken);
    let other = roomy().build().receiver.factory();
    assert_eq!(
        reason(ChannelPlace(1), other.vacant()),
        ExchangeError::OtherFactory
    );
}

#[test]
fn a_channel_that_contradicts_itself_is_refused_when_it_is_prepared() {
    let world = roomy().build();
    let (sender, receiver) = (world.sender.factory(), world.receiver.factory());
    assert_eq!((sender.places(), receiver.places()), (3, 3));
    let good = two_links();
    let error = |place, setup| sender.prepare(place, &setup).err().unwrap();
    let no_such_place = SetupError::NoSuchPlace {
        channel: ChannelPlace(3),
        places: 3,
    };
    assert_eq!(error(ChannelPlace(3), good.sender(id(5))), no_such_place);
    let hasty = ChannelPlan {
        deadline: Duration::ZERO,
        ..good
    };
    assert!(matches!(
        error(ChannelPlace(1), hasty.sender(id(5))),
        SetupError::TooShort {
            channel: ChannelPlace(1),
            ..
        }
    ));
    let linkless = ChannelPlan {
        links: LinkSet::EMPTY,
        ..good
    };
    let wrong_links = SetupError::WrongLinks {
        channel: ChannelPlace(2),
    };
    assert_eq!(error(ChannelPlace(2), linkless.sender(id(5))), wrong_links);
    let error = |place, setup| receiver.prepare(place, &setup).err().unwrap();
    assert_eq!(error(ChannelPlace(3), good.receiver(id(5))), no_such_place);
    assert_eq!(
        error(ChannelPlace(2), linkless.receiver(id(5))),
        wrong_links
    );
    let stranger = ReceiverChannel {
        peer: PeerId(1),
        ..good.receiver(id(5))
    };
    assert_eq!(
        error(ChannelPlace(2), stranger),
        SetupError::UnknownPeer {
            channel: ChannelPlace(2)
        }
    );
}
