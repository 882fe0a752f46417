//! What `readelf --debug-dump=info` says of the types and variables of a program (DWARF 4).

use std::collections::BTreeMap;

/// An entry: a type, a variable, a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Die {
    /// What it is, without `DW_TAG_`.
    pub tag: String,
    pub name: Option<String>,
    /// The entry of its type.
    pub of: Option<u64>,
    /// The entry that this one completes, or is an instance of.
    pub origin: Option<u64>,
    /// The address of a variable that always lies at one place.
    pub address: Option<u64>,
    pub byte_size: Option<u64>,
    pub encoding: Option<u64>,
    /// Of a member of a structure.
    pub member_at: Option<u64>,
    /// Whether it only says that something is there, as the static member of a class.
    pub is_declaration: bool,
    /// Whether it is a member of bits.
    pub is_bits: bool,
    /// Of an array's range: how many elements it has.
    pub length: Option<u64>,
    /// Of an enumerator, as it is printed.
    pub constant: Option<String>,
    pub parent: Option<u64>,
    pub children: Vec<u64>,
}

/// The entries by their offset.
pub(super) type Dies = BTreeMap<u64, Die>;

pub(super) fn parse(said: &str) -> Dies {
    let mut dies = Dies::new();
    // The entries that the next one may lie in, with their depth.
    let mut path: Vec<(u64, u64)> = Vec::new();
    let mut current = None;
    for line in said.lines() {
        if let Some((depth, offset, tag)) = entry(line) {
            path.retain(|(above, _)| *above < depth);
            let Some(tag) = tag else {
                current = None;
                continue;
            };
            let parent = path.last().map(|(_, offset)| *offset);
            if let Some(parent) = parent.and_then(|parent| dies.get_mut(&parent)) {
                parent.children.push(offset);
            }
            dies.insert(
                offset,
                Die {
                    tag: tag.to_owned(),
                    parent,
                    ..Die::default()
                },
            );
            path.push((depth, offset));
            current = Some(offset);
        } else if let Some((name, value)) = attribute(line)
            && let Some(die) = current.and_then(|at| dies.get_mut(&at))
        {
            note(die, name, value);
        }
    }
    dies
}

/// ` <1><2d>: Abbrev Number: 2 (DW_TAG_base_type)`: depth, offset and tag, which the end of a list lacks.
fn entry(line: &str) -> Option<(u64, u64, Option<&str>)> {
    let rest = line.strip_prefix(" <")?;
    let (depth, rest) = rest.split_once("><")?;
    let (offset, rest) = rest.split_once(">: Abbrev Number:")?;
    let tag = rest
        .split_once("(DW_TAG_")
        .and_then(|(_, tag)| tag.split(')').next());
    Some((
        hexadecimal(depth).or_else(|| depth.parse().ok())?,
        hexadecimal(offset)?,
        tag,
    ))
}

/// `    <2e>   DW_AT_byte_size   : (data1) 1`: name and value.
fn attribute(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start().strip_prefix('<')?;
    let (_, rest) = rest.split_once("DW_AT_")?;
    let (name, value) = rest.split_once(':')?;
    Some((name.trim(), value.trim()))
}

fn note(die: &mut Die, name: &str, value: &str) {
    match name {
        "name" => die.name = Some(text(value).to_owned()),
        "declaration" => die.is_declaration = true,
        "type" => die.of = reference(value),
        "specification" | "abstract_origin" => die.origin = reference(value),
        "byte_size" => die.byte_size = number(value),
        "encoding" => die.encoding = number(value),
        "data_member_location" => die.member_at = number(value),
        "bit_size" | "data_bit_offset" | "bit_offset" => die.is_bits = true,
        // GCC tells the last index, Clang how many there are. -1 is the last index of none.
        "upper_bound" => die.length = number(value).map(|last| last.wrapping_add(1)),
        "count" => die.length = number(value),
        "const_value" => die.constant = Some(plain(value).to_owned()),
        "location" => {
            let address = value.split_once("(DW_OP_addr: ").map(|(_, rest)| rest);
            // Anything behind the address is computed from it.
            die.address = address
                .and_then(|rest| rest.strip_suffix(')'))
                .and_then(hexadecimal);
        }
        _ => {}
    }
}

/// A name, which stands behind the form of its value: `(strp) (offset: 0x156b): IECVar<short int>`, `(string) T`, `T`.
fn text(value: &str) -> &str {
    match (value.split_once("): "), value.strip_prefix('(')) {
        (Some((form, text)), Some(_)) if !form.contains(['<', '"']) => text.trim(),
        (_, Some(rest)) => rest.split_once(") ").map_or(value, |(_, text)| text.trim()),
        _ => value,
    }
}

/// What stands behind the form of a value, which not every version of the tool names.
fn plain(value: &str) -> &str {
    let rest = match value.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or("", |(_, rest)| rest),
        None => value,
    };
    rest.split_whitespace().next().unwrap_or_default()
}

fn number(value: &str) -> Option<u64> {
    let text = plain(value);
    match text.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits),
        None => text.parse().ok(),
    }
}

fn reference(value: &str) -> Option<u64> {
    let (_, rest) = value.split_once("<0x")?;
    hexadecimal(rest.split('>').next()?)
}

fn hexadecimal(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}
