//! All variables of a program by name and type (H-33): by them the next version goes on with the state of this one.
//!
//! The lists of MATIEC's compiler lack some (structures, enumerations, what a sequence keeps), so they come from what the
//! compiler knows.

mod cpp;
mod dies;
mod layout;

use super::BuildFault;
use super::tools::{STATE_ADDRESS, Tools};
use std::collections::BTreeSet;
use std::path::Path;

/// What stands in front of the table.
const MARK: &[u8; 16] = b"BUMPLESSVARIABLE";
/// The table's version.
const VERSION: u32 = 1;
/// Most variables: a table that is believed has no more.
const MOST: usize = 65_536;
/// Longest name or type, bytes.
const TEXT_MAX: usize = 1024;

/// Variables that are no state, but constants of a version.
const CONSTANTS: [&str; 2] = ["common_ticktime__", "greatest_tick_count__"];

/// A variable, or a structure or array of variables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateVariable {
    /// Its name in C, as `RES0__TANK0.COUNTED.CV`.
    pub name: String,
    /// Its type.
    pub of: String,
    /// Where its value lies in the state, bytes.
    pub offset: u32,
    /// Bytes of its value; 0 of a structure or array whose parts are variables themselves, and of what holds an address.
    pub len: u32,
}

impl StateVariable {
    /// Whether it holds an address, which means nothing in another version.
    pub fn is_address(&self) -> bool {
        self.len == 0 && self.of.starts_with(layout::ADDRESS)
    }
}

/// The variables of a linked executable whose state is `state_len` bytes long.
pub(super) fn find(
    tools: &Tools<'_>,
    executable: &Path,
    state_len: usize,
) -> Result<Vec<StateVariable>, BuildFault> {
    let said = tools.inspect("readelf", &["--debug-dump=info", "-W"], executable)?;
    let dies = dies::parse(&said);
    if !all_are_described(tools, executable, &dies, state_len)? {
        return Ok(Vec::new());
    }
    // If there is none, it is built, and no version goes on with another one's state.
    let found = all_or_none(layout::variables(&dies, state_len as u64));
    let in_heap = found.iter().filter(|it| it.of == cpp::HEAP);
    let problems: Vec<_> = in_heap
        .map(|it| {
            format!(
                "{} is a std::string, whose text lies in the heap, which is not in the state: make it an array of characters",
                it.name
            )
        })
        .collect();
    match problems.is_empty() {
        true => Ok(found),
        false => Err(BuildFault(problems)),
    }
}

/// The rows of a table; none, if it would lack a variable: what is left out would begin anew, and nobody would know.
fn all_or_none(found: Option<Vec<StateVariable>>) -> Vec<StateVariable> {
    let mut found = cpp::of_programs(found.unwrap_or_default());
    found.retain(|it| !CONSTANTS.contains(&it.name.as_str()));
    found.sort();
    found.dedup();
    // In two functions of one name in two files, or two blocks of a function: nobody could tell which is which.
    let twice = found.windows(2).any(|pair| pair[0].name == pair[1].name);
    let fits = |it: &StateVariable| it.name.len() <= TEXT_MAX && it.of.len() <= TEXT_MAX;
    match !twice && found.len() <= MOST && found.iter().all(fits) {
        true => found,
        false => Vec::new(),
    }
}

/// Whether the compiler describes each variable in the state: what it does not would begin anew, and nobody would know.
fn all_are_described(
    tools: &Tools<'_>,
    executable: &Path,
    dies: &dies::Dies,
    state_len: usize,
) -> Result<bool, BuildFault> {
    let said = tools.inspect("nm", &["-P", "-t", "x"], executable)?;
    let state = STATE_ADDRESS..STATE_ADDRESS + state_len as u64;
    let described: BTreeSet<u64> = dies.values().filter_map(|die| die.address).collect();
    let mut symbols = said.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (name, kind) = (fields.next()?, fields.next()?);
        let [address, size] =
            [fields.next()?, fields.next()?].map(|it| u64::from_str_radix(it, 16));
        // Of C++ those are weak or unique which several files have.
        let is_data = matches!(kind, "d" | "D" | "b" | "B" | "V" | "v" | "u") && size.ok()? > 0;
        let is_data = is_data && !cpp::is_guard(name);
        address.ok().filter(|at| is_data && state.contains(at))
    });
    Ok(symbols.all(|address| described.contains(&address)))
}

/// The table as it stands in the executable.
pub(super) fn table(variables: &[StateVariable]) -> Vec<u8> {
    let mut bytes = MARK.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((variables.len() as u32).to_le_bytes());
    for it in variables {
        bytes.extend(it.offset.to_le_bytes());
        bytes.extend(it.len.to_le_bytes());
        for text in [&it.of, &it.name] {
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}

/// The variables that an executable of [`build`](super::build) tells, in ascending order of their names; none, if an older
/// `program build` has made it.
///
/// # Errors
/// The table in it is damaged.
pub fn variables(binary: &[u8]) -> Result<Vec<StateVariable>, Unreadable> {
    let mut marks = binary
        .windows(MARK.len())
        .enumerate()
        .filter(|(_, it)| *it == MARK);
    let Some((at, _)) = marks.next() else {
        return Ok(Vec::new());
    };
    if marks.next().is_some() {
        return Err(Unreadable);
    }
    rows(&binary[at + MARK.len()..]).ok_or(Unreadable)
}

/// The table of variables in an executable is not one that `program build` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("its table of variables is damaged; build it again with bumpless program build")
    }
}

impl std::error::Error for Unreadable {}

fn rows(table: &[u8]) -> Option<Vec<StateVariable>> {
    let mut rest = Reader(table);
    if rest.number()? != VERSION {
        return None;
    }
    let count = rest.number()? as usize;
    if count > MOST {
        return None;
    }
    let mut found: Vec<StateVariable> = Vec::new();
    for _ in 0..count {
        let (offset, len) = (rest.number()?, rest.number()?);
        let (of, name) = (rest.text()?, rest.text()?);
        // Names ascend, so that none stands twice.
        if found.last().is_some_and(|before| before.name >= name) {
            return None;
        }
        offset.checked_add(len)?;
        found.push(StateVariable {
            name,
            of,
            offset,
            len,
        });
    }
    Some(found)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<String> {
        let (len, rest) = self.0.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_le_bytes(*len));
        let (text, rest) = rest
            .split_at_checked(len)
            .filter(|_| len > 0 && len <= TEXT_MAX)?;
        self.0 = rest;
        std::str::from_utf8(text).ok().map(ToOwned::to_owned)
    }
}

#[cfg(test)]
mod tests;
