//! "Did you mean": the known name nearest to a misspelt one.

/// The candidate nearest to `given`, if it is near enough to be a likely slip of the keyboard.
pub(crate) fn nearest<'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
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
        .map(|candidate| {
            let extended = candidate.starts_with(&given) && given.len() >= 3
                || given.starts_with(candidate) && candidate.len() >= 3;
            let distance = distance(&given, &candidate.to_ascii_lowercase());
            // A unit left off or added (`period` for `period_ms`) is as likely as one wrong letter.
            (if extended { distance.min(1) } else { distance }, candidate)
        })
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`
/// (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
}
