use super::*;

#[test]
fn every_way_of_a_message_has_its_turn() {
    let flips: Vec<_> = (1..=8)
        .map(|number| Target::Witness.flip(number, 0))
        .collect();
    for message in [REQUEST, REPLY] {
        for network in 0..2 {
            for node in 0..2 {
                let fits = |flip: &&Flip| {
                    flip.message == message
                        && flip.network == network
                        && (flip.from == node || flip.to == node)
                };
                assert_eq!(
                    flips.iter().filter(fits).count(),
                    1,
                    "{message:#x} {network} {node}"
                );
            }
        }
    }
    let first = Target::SentAt.flip(1, 1);
    assert_eq!(
        (first.from, first.to, first.message),
        (1, 0, HEARTBEAT),
        "the primary's"
    );
}
