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

/// The bytes of the vector called `name` in the specification, and where the field lies whose line's
/// comment begins with `field`.
fn vector_field(name: &str, field: &str) -> Range<usize> {
    let text = include_str!("../../../../../../../spec/vectors/heartbeat.txt");
    let mut lines = text
        .lines()
        .skip_while(|line| *line != format!("vector {name}"));
    lines.next();
    let mut at = 0;
    for line in lines {
        let (bytes, comment) = line.split_once('#').unwrap_or((line, ""));
        let length = bytes.split_whitespace().collect::<String>().len() / 2;
        if comment.trim_start().starts_with(&format!("{field} ")) {
            return at..at + length;
        }
        at += length;
    }
    panic!("no {field} in {name}");
}

#[test]
fn the_fields_lie_where_the_vectors_of_the_specification_have_them() {
    let vector = "a primary that also is a backup";
    assert_eq!(vector_field(vector, "SentAt"), SENT_AT);
    assert_eq!(vector_field(vector, "Epoch"), EPOCH);
}
