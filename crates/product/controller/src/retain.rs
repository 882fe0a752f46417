//! Retained variables (IEC 61131-3, `RETAIN`): single values of a state that are worth keeping where the state itself
//! may not be gone on from, since it is too old or of another version of the program (spec/persist.md, K-14 to K-19).
//!
//! A [`Table`] says where they lie in a state. A *record* holds their values, each with its name, type and length, so
//! that another version of the program finds what it has itself. All big endian but for the values, which are as in
//! the state. For each variable, in ascending order of the names' bytes:
//!
//! | length | field |
//! |---|---|
//! | 1 | length of the name, n, not 0 |
//! | n | the name, UTF-8 |
//! | 1 | length of the type's name, t, not 0 |
//! | t | the type's name, UTF-8 |
//! | 4 | length of the value, v |
//! | v | the value |

use std::cmp::Ordering;
use std::fmt;

/// Longest name of a variable or type, bytes.
pub const NAME_MAX: usize = u8::MAX as usize;
/// Most bytes of a record: so many does a file of a state have room for (K-15).
pub const RECORD_MAX: usize = 1 << 20;

/// A variable of a program that is retained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// Its name, by which another version of the program knows it.
    pub name: String,
    /// Its type's name.
    pub of: String,
    /// Where its value lies in a saved state, bytes from the beginning.
    pub offset: usize,
    /// Bytes of its value.
    pub len: usize,
}

impl Retained {
    /// Bytes of its part of a record.
    pub fn entry_len(&self) -> usize {
        (6 + self.name.len() + self.of.len()).saturating_add(self.len)
    }

    fn value<'a>(&self, state: &'a [u8]) -> Option<&'a [u8]> {
        state.get(self.offset..)?.get(..self.len)
    }
}

/// Why variables make no table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableError {
    /// Two have this name.
    Twice(String),
    /// A name or type of this one is empty or longer than [`NAME_MAX`].
    Name(String),
    /// This one does not lie in the state, whose length is given.
    Outside(String, usize),
    /// Their record has this many bytes, more than [`RECORD_MAX`].
    TooLarge(usize),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(name) => write!(f, "two retained variables are called {name}"),
            Self::Name(name) => write!(
                f,
                "the retained variable {name:?} or its type has no name, or one of more than {NAME_MAX} bytes"
            ),
            Self::Outside(name, len) => write!(
                f,
                "the retained variable {name} does not lie in the state, which has {len} bytes"
            ),
            Self::TooLarge(len) => write!(
                f,
                "the retained variables have {len} bytes with their names, and {RECORD_MAX} are the most that are kept"
            ),
        }
    }
}

impl std::error::Error for TableError {}

/// The retained variables of a program, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(Box<[Retained]>);

impl Table {
    /// Of `variables` in any order, in saved states of `state_len` bytes.
    ///
    /// # Errors
    /// What is wrong with the first one that is.
    pub fn new(mut variables: Vec<Retained>, state_len: usize) -> Result<Self, TableError> {
        variables.sort_by(|a, b| a.name.cmp(&b.name));
        for pair in variables.windows(2) {
            if pair[0].name == pair[1].name {
                return Err(TableError::Twice(pair[0].name.clone()));
            }
        }
        for it in &variables {
            let named = |name: &str| (1..=NAME_MAX).contains(&name.len());
            if !named(&it.name) || !named(&it.of) {
                return Err(TableError::Name(it.name.clone()));
            }
            let end = it.offset.checked_add(it.len);
            if u32::try_from(it.len).is_err() || end.is_none_or(|end| end > state_len) {
                return Err(TableError::Outside(it.name.clone(), state_len));
            }
        }
        let table = Self(variables.into());
        match table.record_len() {
            len if len > RECORD_MAX => Err(TableError::TooLarge(len)),
            _ => Ok(table),
        }
    }

    /// The variables in ascending order of their names.
    pub fn variables(&self) -> &[Retained] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of a record of these variables.
    pub fn record_len(&self) -> usize {
        let each = self.0.iter().map(Retained::entry_len);
        each.fold(0, usize::saturating_add)
    }

    /// Adds the record of these variables, as they are in the saved `state`, to `into`. Where the state is too short for
    /// one of them, which no state of the table's program is, that one is left out.
    pub fn cut(&self, state: &[u8], into: &mut Vec<u8>) {
        for it in &self.0 {
            let Some(value) = it.value(state) else {
                continue;
            };
            for name in [&it.name, &it.of] {
                // The table has none that is longer.
                into.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
                into.extend(name.as_bytes());
            }
            into.extend((value.len() as u32).to_be_bytes());
            into.extend(value);
        }
    }

    /// Puts the values of `record` in their places in the saved `state`: of each variable that has the same name, type
    /// and length in both. Whatever else `state` holds stays as it is.
    pub fn apply(&self, record: Record<'_>, state: &mut [u8]) -> Applied {
        let mut applied = Applied::default();
        self.walk(record, |met| {
            if let Met::Both(it, entry) = met {
                let fits = it.of == entry.of && it.len == entry.value.len();
                let place = state
                    .get_mut(it.offset..)
                    .and_then(|it| it.get_mut(..entry.value.len()));
                match place.filter(|_| fits) {
                    Some(place) => {
                        place.copy_from_slice(entry.value);
                        applied.taken += 1;
                    }
                    None => applied.other_type.push(OtherType {
                        name: it.name.clone(),
                        was: entry.of.to_owned(),
                        is: it.of.clone(),
                    }),
                }
            }
            if let Met::Record(entry) = met {
                applied.unknown.push(entry.name.to_owned());
            }
            if let Met::Table(it) = met {
                applied.added.push(it.name.clone());
            }
        });
        applied
    }

    /// Goes through both in the order of the names.
    fn walk(&self, record: Record<'_>, mut meet: impl FnMut(Met<'_>)) {
        let (mut table, mut record) = (self.0.iter().peekable(), record.entries().peekable());
        loop {
            let order = match (table.peek(), record.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(it), Some(entry)) => it.name.as_str().cmp(entry.name),
            };
            let it = table.next_if(|_| order != Ordering::Greater);
            let entry = record.next_if(|_| order != Ordering::Less);
            match (it, entry) {
                (Some(it), Some(entry)) => meet(Met::Both(it, entry)),
                (Some(it), None) => meet(Met::Table(it)),
                (None, Some(entry)) => meet(Met::Record(entry)),
                (None, None) => return,
            }
        }
    }
}

/// A name that table or record or both have.
#[derive(Clone, Copy)]
enum Met<'a> {
    Table(&'a Retained),
    Record(Entry<'a>),
    Both(&'a Retained, Entry<'a>),
}

/// A variable of which the value in a record is of another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherType {
    /// Its name.
    pub name: String,
    /// The type's name in the record.
    pub was: String,
    /// The type's name in the program; the same where only the length differs.
    pub is: String,
}

/// What became of a record. Memory is taken only for what does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// How many variables have the record's values.
    pub taken: u32,
    /// Names in the record that the program does not retain.
    pub unknown: Vec<String>,
    /// What has another type, and keeps its initial value.
    pub other_type: Vec<OtherType>,
    /// What is not in the record, and keeps its initial value.
    pub added: Vec<String>,
}

impl Applied {
    /// Of how many variables of the program the record had no value of their type.
    pub fn lacking(&self) -> u32 {
        (self.other_type.len() + self.added.len()) as u32
    }
}

/// How many first, then which, since a long text is cut where it is shown.
impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} retained", self.taken)?;
        let other = |it: &OtherType| format!("{} ({}, not {})", it.name, it.is, it.was);
        let other: Vec<String> = self.other_type.iter().map(other).collect();
        let lists = [
            (&other, "of another type"),
            (&self.unknown, "no longer there"),
            (&self.added, "not kept before"),
        ];
        let lists = || lists.iter().filter(|(names, _)| !names.is_empty());
        for (names, what) in lists() {
            write!(f, ", {} {what}", names.len())?;
        }
        for (index, (names, _)) in lists().enumerate() {
            f.write_str(if index == 0 { ": " } else { "; " })?;
            f.write_str(&names.join(", "))?;
        }
        Ok(())
    }
}

/// One variable of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type's name.
    pub of: &'a str,
    /// Its value.
    pub value: &'a [u8],
}

/// A record that is whole: each name stands in it once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
    /// All of `bytes` as a record; `None` if they are none. Total over all inputs.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (mut rest, mut before) = (bytes, "");
        while !rest.is_empty() {
            let (entry, more) = entry(rest)?;
            // Names are never empty, so the first one is above this.
            if entry.name <= before {
                return None;
            }
            (rest, before) = (more, entry.name);
        }
        Some(Self(bytes))
    }

    /// Its bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether it holds nothing.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Its variables in ascending order of their names.
    pub fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (entry, more) = entry(rest)?;
            rest = more;
            Some(entry)
        })
    }
}

fn entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (name, rest) = name(bytes)?;
    let (of, rest) = self::name(rest)?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    let (value, rest) = rest.split_at_checked(len)?;
    Some((Entry { name, of, value }, rest))
}

fn name(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(len))?;
    let name = std::str::from_utf8(name).ok()?;
    (!name.is_empty()).then_some((name, rest))
}

#[cfg(test)]
mod tests;
