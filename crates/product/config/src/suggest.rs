//! "Did you mean": the known name nearest to a misspelt one.

use strsim::osa_distance;

/// The candidate nearest to `given`, if it is near enough to be a likely slip of the keyboard.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer than any name here; the distance's cost is quadratic.
    if given.chars().count() > 64 {
        return None;
    }
    let given = given.to_ascii_lowercase();
    // Every name of one or two letters is near every other.
    let limit = match given.chars().count() {
        0..3 => 0,
        length => length / 3,
    };
    candidates
        .into_iter()
        .map(|candidate| (cost(&given, &candidate.to_ascii_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Shorter beginnings of names are like those of too many others.
const BEGINNING_MIN: usize = 3;

/// How unlikely it is that `given` was meant to be `candidate`: slips of the keyboard, an end left off or added.
fn cost(given: &str, candidate: &str) -> usize {
    let whole = osa_distance(given, candidate);
    let beginnings = candidate.char_indices().skip(BEGINNING_MIN);
    let left_off = beginnings.map(|(end, next)| {
        let distance = osa_distance(given, &candidate[..end]);
        match next {
            // A unit left off (`period` for `period_ms`) is as likely as one wrong letter, and goes with one.
            '_' => distance.max(1),
            _ => distance + 1,
        }
    });
    let least = left_off.min().unwrap_or(whole).min(whole);
    let added = given.starts_with(candidate) && candidate.chars().count() >= BEGINNING_MIN;
    if added { least.min(1) } else { least }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["heartbeat_ms", "lease_ms", "period_ms", "mtu"];
        assert_eq!(nearest("hearbeat_ms", known), Some("heartbeat_ms"));
        assert_eq!(nearest("heratbeat_ms", known), Some("heartbeat_ms"));
        assert_eq!(nearest("period", known), Some("period_ms"));
        assert_eq!(nearest("MTU", known), Some("mtu"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("C", ["A", "B"]), None);
        assert_eq!(nearest("a", ["A", "B"]), Some("A"));
    }

    #[test]
    fn a_slip_in_a_name_whose_end_is_left_off_is_recognised() {
        let node = ["name", "addresses", "control"];
        assert_eq!(nearest("adress", node), Some("addresses"));
        assert_eq!(nearest("adresses", node), Some("addresses"));
        assert_eq!(nearest("address", node), Some("addresses"));
        assert_eq!(
            nearest("perid", ["period_ms", "expiry_ms"]),
            Some("period_ms")
        );
        assert_eq!(
            nearest("periods", ["period_ms", "expiry_ms"]),
            Some("period_ms")
        );
        for stranger in ["nothing", "contents", "ad", "mtu"] {
            assert_eq!(nearest(stranger, node), None, "{stranger}");
        }
    }
}
