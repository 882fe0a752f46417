//! What of a program's state its next version goes on with, by names and types of variables (H-34).

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;

use super::StateVariable;

/// A variable of another type in the next version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherType {
    /// Its name.
    pub name: String,
    /// Its type in the version before.
    pub was: String,
    /// Its type in the next one.
    pub is: String,
}

/// What becomes of the variables of one version in the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Succession {
    /// Names of variables that keep their values.
    pub kept: Vec<String>,
    /// Variables that begin with their initial values, since they are of another type.
    pub other_type: Vec<OtherType>,
    /// Names of variables that begin with their initial values, since the version before has none of that name.
    pub added: Vec<String>,
    /// Names of variables whose values are lost, since the next version has none of that name.
    pub lost: Vec<String>,
    /// Names of variables that hold addresses: they begin as the next version sets them.
    pub addresses: Vec<String>,
    moves: Vec<Move>,
}

/// Bytes that lie elsewhere in the next version's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Move {
    from: usize,
    to: usize,
    len: usize,
}

/// The variables of two versions in ascending order of their names, each with the one of the same name.
fn met<'a>(
    before: &'a [StateVariable],
    next: &'a [StateVariable],
) -> impl Iterator<Item = (Option<&'a StateVariable>, Option<&'a StateVariable>)> {
    let (mut before, mut next) = (before.iter().peekable(), next.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (before.peek(), next.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(next)) => before.name.cmp(&next.name),
        };
        Some(match order {
            Ordering::Less => (before.next(), None),
            Ordering::Greater => (None, next.next()),
            Ordering::Equal => (before.next(), next.next()),
        })
    })
}

impl Succession {
    /// From the variables of the version before to those of the next one.
    pub fn between(before: &[StateVariable], next: &[StateVariable]) -> Self {
        let mut found = Self::default();
        let mut other: BTreeSet<&str> = BTreeSet::new();
        let pairs: Vec<_> = met(before, next).collect();
        for (was, is) in &pairs {
            if let (Some(was), Some(is)) = (was, is)
                && (&was.of, was.len) != (&is.of, is.len)
            {
                other.insert(&is.name);
            }
        }
        for (was, is) in pairs {
            match (was, is) {
                (Some(was), Some(is)) => found.meet(was, is, &other),
                (Some(was), None) if was.len > 0 => found.lost.push(was.name.clone()),
                (None, Some(is)) if is.is_address() => found.addresses.push(is.name.clone()),
                (None, Some(is)) if is.len > 0 => found.added.push(is.name.clone()),
                _ => {}
            }
        }
        found.moves.sort_by_key(|it| it.to);
        found.moves.dedup_by(|next, before| {
            let goes_on =
                before.from + before.len == next.from && before.to + before.len == next.to;
            if goes_on {
                before.len += next.len;
            }
            goes_on
        });
        found
    }

    fn meet(&mut self, was: &StateVariable, is: &StateVariable, other: &BTreeSet<&str>) {
        let name = || is.name.clone();
        if other.contains(is.name.as_str()) {
            self.other_type.push(OtherType {
                name: name(),
                was: was.of.clone(),
                is: is.of.clone(),
            });
        } else if is.is_address() {
            self.addresses.push(name());
        } else if is.len == 0 {
            // Its parts are variables themselves.
        } else if within(&is.name, other) {
            self.added.push(name());
        } else {
            self.kept.push(name());
            self.moves.push(Move {
                from: was.offset as usize,
                to: is.offset as usize,
                len: is.len as usize,
            });
        }
    }

    /// Puts what is kept of `state`, which is one of the version before, into `into`, the initial state of the next one; `head`
    /// bytes stand before either. Whether all of it was there.
    #[must_use]
    pub fn carry(&self, state: &[u8], into: &mut [u8], head: usize) -> bool {
        self.moves.iter().all(|&Move { from, to, len }| {
            let from = state.get(head + from..).and_then(|it| it.get(..len));
            let to = into.get_mut(head + to..).and_then(|it| it.get_mut(..len));
            match (from, to) {
                (Some(from), Some(to)) => {
                    to.copy_from_slice(from);
                    true
                }
                _ => false,
            }
        })
    }
}

/// Whether the variable lies in a structure or array that is one of `other`.
fn within(name: &str, other: &BTreeSet<&str>) -> bool {
    let ends = name.char_indices().filter(|(_, c)| matches!(c, '.' | '['));
    ends.into_iter().any(|(at, _)| other.contains(&name[..at]))
}

/// How many, then which.
impl fmt::Display for Succession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} variables keep their values", self.kept.len())?;
        let other = |it: &OtherType| format!("{} ({}, was {})", it.name, it.is, it.was);
        let other: Vec<String> = self.other_type.iter().map(other).collect();
        for (names, what) in [
            (&other, "of another type"),
            (&self.added, "begin with their initial values"),
            (&self.lost, "are lost"),
            (&self.addresses, "hold addresses and begin anew"),
        ] {
            if !names.is_empty() {
                write!(f, "; {} {what}: {}", names.len(), names.join(", "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, of: &str, offset: u32, len: u32) -> StateVariable {
        StateVariable {
            name: name.into(),
            of: of.into(),
            offset,
            len,
        }
    }

    #[test]
    fn values_go_where_the_next_version_has_the_variable_of_the_same_name_and_type() {
        let before = [
            variable("A", "INT", 0, 2),
            variable("B", "DINT", 4, 4),
            variable("C", "INT", 8, 2),
        ];
        let next = [
            variable("A", "INT", 6, 2),
            variable("B", "REAL", 0, 4),
            variable("D", "INT", 4, 2),
        ];
        let found = Succession::between(&before, &next);
        assert_eq!(
            (&found.kept[..], &found.added[..]),
            (&["A".to_owned()][..], &["D".to_owned()][..])
        );
        assert_eq!(found.lost, ["C"]);
        assert_eq!(found.other_type.len(), 1);
        let state: Vec<u8> = (100..112).collect();
        let mut into = vec![0; 10];
        assert!(found.carry(&state, &mut into, 2));
        assert_eq!(into, [0, 0, 0, 0, 0, 0, 0, 0, 102, 103]);
        assert_eq!(
            found.to_string(),
            "1 variables keep their values; 1 of another type: B (REAL, was DINT); 1 begin with their initial values: D; 1 are \
             lost: C"
        );
    }

    #[test]
    fn nothing_in_a_block_of_another_type_keeps_its_value() {
        let block = |of: &str| {
            [
                variable("P.SOAK", of, 0, 0),
                variable("P.SOAK.IN", "BOOL", 0, 1),
                variable("P.SOAKED", "BOOL", 1, 1),
            ]
        };
        let found = Succession::between(&block("structure TON"), &block("structure TOF"));
        assert_eq!(found.kept, ["P.SOAKED"]);
        assert_eq!(found.added, ["P.SOAK.IN"]);
        assert_eq!(found.other_type[0].name, "P.SOAK");
        let longer = [variable("P.A", "INT[3]", 0, 6)];
        let found = Succession::between(&longer, &[variable("P.A", "INT[4]", 0, 8)]);
        assert_eq!(found.other_type.len(), 1);
    }

    #[test]
    fn an_address_is_never_carried_and_a_state_that_is_too_short_is_told() {
        let before = [
            variable("R", "address REF", 0, 0),
            variable("X", "INT", 8, 2),
        ];
        let found = Succession::between(&before, &before);
        assert_eq!((found.addresses.len(), found.kept.len()), (1, 1));
        assert!(!found.carry(&[0; 9], &mut [0; 10], 0));
        assert!(!found.carry(&[0; 10], &mut [0; 9], 0));
        assert!(found.carry(&[0; 10], &mut [0; 10], 0));
    }
}
