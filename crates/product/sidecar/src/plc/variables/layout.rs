//! From types and addresses to variables with one value each.

use super::dies::{Die, Dies};
use super::{StateVariable, cpp};
use crate::plc::tools::STATE_ADDRESS;

/// What the type of an address begins with.
pub(super) const ADDRESS: &str = "address";

/// Types deeper in one another than this are no program's.
const DEPTH: usize = 40;
/// Most rows that are made of one program.
const MOST: usize = 200_000;

/// Structures that are one value: what is in them means nothing by itself.
const VALUES: [&str; 10] = [
    "TIME", "DATE", "TOD", "DT", "TIMESPEC", "STRING", "WSTRING", "LTIME", "LDATE", "LTOD",
];

/// All variables that lie in the state of `state_len` bytes; `None`: some of them have no row, since nobody could say of which
/// type or where they are.
pub(super) fn variables(dies: &Dies, state_len: u64) -> Option<Vec<StateVariable>> {
    let mut flat = Flat {
        dies,
        classes: cpp::Classes::of(dies),
        found: Vec::new(),
        is_whole: true,
    };
    let end = STATE_ADDRESS + state_len;
    for die in dies.values().filter(|die| die.tag == "variable") {
        let Some(address) = die.address.filter(|at| (STATE_ADDRESS..end).contains(at)) else {
            continue;
        };
        let (Some(name), Some(of)) = (flat.name(die), flat.type_of(die)) else {
            flat.is_whole = false;
            continue;
        };
        let name = match flat.function(die) {
            Some(function) => format!("{function}.{name}"),
            None => name.to_owned(),
        };
        flat.put(name, of, address - STATE_ADDRESS, 0);
    }
    let inside = |it: &StateVariable| u64::from(it.offset) + u64::from(it.len) <= state_len;
    (flat.is_whole && flat.found.iter().all(inside)).then_some(flat.found)
}

struct Flat<'a> {
    dies: &'a Dies,
    classes: cpp::Classes,
    found: Vec<StateVariable>,
    /// Whether nothing was left out.
    is_whole: bool,
}

impl<'a> Flat<'a> {
    fn origin(&self, die: &Die) -> Option<&'a Die> {
        self.dies.get(&die.origin?)
    }

    fn name(&self, die: &'a Die) -> Option<&'a str> {
        let own = die.name.as_deref();
        own.or_else(|| self.origin(die)?.name.as_deref())
    }

    fn type_of(&self, die: &Die) -> Option<u64> {
        die.of.or_else(|| self.origin(die)?.of)
    }

    /// The function in which a variable is.
    fn function(&self, die: &'a Die) -> Option<&'a str> {
        let mut above = die.parent;
        while let Some(die) = above.and_then(|at| self.dies.get(&at)) {
            if die.tag == "subprogram" || die.tag == "inlined_subroutine" {
                return self.name(die);
            }
            above = die.parent;
        }
        None
    }

    fn row(&mut self, name: String, of: String, offset: u64, len: u64) {
        match (offset.try_into(), len.try_into()) {
            (Ok(offset), Ok(len)) if self.found.len() < MOST => self.found.push(StateVariable {
                name,
                of,
                offset,
                len,
            }),
            _ => self.is_whole = false,
        }
    }

    /// Rows for the variable `name` of the type at `of`.
    fn put(&mut self, name: String, of: u64, offset: u64, depth: usize) {
        let (names, of) = self.resolved(of);
        let die = self.dies.get(&of).filter(|_| depth < DEPTH);
        // A class is described where its functions are, and only announced elsewhere.
        let Some(die) = die.and_then(|it| self.classes.definition(self.dies, it)) else {
            self.is_whole = false;
            return;
        };
        if let Some((of, len)) = self.value(die, &names) {
            return self.row(name, of, offset, len);
        }
        let named = names.first().copied().or(die.name.as_deref());
        match die.tag.as_str() {
            // One that the program has a type for may be changed by it; the others are set at the beginning.
            "pointer_type" if named.is_some_and(|it| it.contains("REF")) => {
                self.row(
                    name,
                    format!("{ADDRESS} {}", named.unwrap_or_default()),
                    offset,
                    0,
                );
            }
            "pointer_type" | "reference_type" | "rvalue_reference_type" => {}
            "structure_type" | "class_type" if cpp::is_reference(die) => {
                let of = die.name.as_deref().unwrap_or_default();
                self.row(name, format!("{ADDRESS} {of}"), offset, 0);
            }
            "structure_type" | "class_type" if cpp::is_in_heap(die) => {
                self.row(name, cpp::HEAP.into(), offset, 0);
            }
            "structure_type" | "class_type" => self.structure(&name, (die, named), offset, depth),
            "array_type" => {
                let all = self.array(&name, (die, named), offset, depth);
                self.is_whole &= all.is_some();
            }
            // As a union without a name.
            _ => self.is_whole = false,
        }
    }

    /// Names of the type at `of`, the outermost first, and what it is under them.
    fn resolved(&self, mut of: u64) -> (Vec<&'a str>, u64) {
        let mut names = Vec::new();
        for _ in 0..DEPTH {
            let Some(die) = self.dies.get(&of) else { break };
            match (die.tag.as_str(), die.of) {
                ("typedef", Some(next)) => {
                    names.extend(die.name.as_deref());
                    of = next;
                }
                ("const_type" | "volatile_type" | "restrict_type" | "atomic_type", Some(next)) => {
                    of = next
                }
                _ => break,
            }
        }
        (names, of)
    }

    /// Type and length of what is one value.
    fn value(&self, die: &Die, names: &[&str]) -> Option<(String, u64)> {
        let named = names.first().map(|name| iec(name).to_owned());
        let size = die.byte_size;
        match die.tag.as_str() {
            "base_type" => {
                let plain = || format!("number of kind {}", die.encoding.unwrap_or_default());
                Some((named.unwrap_or_else(plain), size?))
            }
            "enumeration_type" => {
                let name = named.or_else(|| die.name.clone()).unwrap_or_default();
                let values = die.children.iter().filter_map(|at| self.dies.get(at));
                let values: Vec<String> = values
                    .filter_map(|it| {
                        Some(format!("{}={}", it.name.as_ref()?, it.constant.as_ref()?))
                    })
                    .collect();
                Some((
                    format!("{name} ({})", fingerprint(&values.join(","))),
                    size?,
                ))
            }
            "union_type" => Some((named.or_else(|| die.name.clone())?, size?)),
            "structure_type" | "class_type" => {
                if let Some(of) = cpp::value(self.dies, die) {
                    return Some((
                        self.enumeration(of)
                            .or(named)
                            .or_else(|| die.name.clone())?,
                        size?,
                    ));
                }
                let known = names.iter().map(|name| iec(name));
                let known = known
                    .filter(|name| VALUES.contains(name))
                    .collect::<Vec<_>>();
                let bits = self.members(die).any(|member| member.is_bits);
                match (known.first(), bits) {
                    (Some(name), _) => Some(((*name).to_owned(), size?)),
                    (None, true) => Some((named.or_else(|| die.name.clone())?, size?)),
                    (None, false) => None,
                }
            }
            _ => None,
        }
    }

    /// The name of an enumeration, which tells its values.
    fn enumeration(&self, of: u64) -> Option<String> {
        let (names, of) = self.resolved(of);
        let die = self.dies.get(&of)?;
        let value = (die.tag == "enumeration_type").then(|| self.value(die, &names))??;
        Some(value.0)
    }

    fn members(&self, die: &'a Die) -> impl Iterator<Item = &'a Die> {
        let dies = self.dies;
        let children = die.children.iter().filter_map(move |at| dies.get(at));
        children.filter(|it| it.tag == "member" && !it.is_declaration)
    }

    fn structure(
        &mut self,
        name: &str,
        (die, named): (&'a Die, Option<&str>),
        offset: u64,
        depth: usize,
    ) {
        let member = |wanted: &str| {
            let mut members = self.members(die);
            members.find(|it| it.name.as_deref() == Some(wanted))
        };
        // What MATIEC declares: a value with flags for its debugger.
        if let (Some(value), Some(_)) = (member("value"), member("flags")) {
            let at = offset + value.member_at.unwrap_or_default();
            match value.of {
                Some(of) => self.put(name.to_owned(), of, at, depth + 1),
                None => self.is_whole = false,
            }
            return;
        }
        let of = format!("structure {}", named.unwrap_or_default());
        self.row(name.to_owned(), of, offset, 0);
        self.parts(name, die, offset, depth);
    }

    /// Rows for what is in a structure, and in the classes that it is made from.
    fn parts(&mut self, name: &str, die: &'a Die, offset: u64, depth: usize) {
        for (of, at) in cpp::bases(self.dies, die) {
            let base = self.dies.get(&self.resolved(of).1);
            match base.and_then(|it| self.classes.definition(self.dies, it)) {
                Some(base) if depth < DEPTH => self.parts(name, base, offset + at, depth + 1),
                _ => self.is_whole = false,
            }
        }
        for member in self.members(die).collect::<Vec<_>>() {
            let at = offset + member.member_at.unwrap_or_default();
            match (&member.name, member.of) {
                (Some(field), Some(of)) => self.put(format!("{name}.{field}"), of, at, depth + 1),
                _ => self.is_whole = false,
            }
        }
    }

    /// `None`: its length is not known, or that of its elements.
    fn array(
        &mut self,
        name: &str,
        (die, named): (&'a Die, Option<&str>),
        offset: u64,
        depth: usize,
    ) -> Option<()> {
        let lengths = self.lengths(die)?;
        let mut each = lengths.iter();
        let count = each.try_fold(1u64, |all, len| all.checked_mul(*len))?;
        if count == 0 {
            return Some(());
        }
        let of = die.of?;
        let sizes: String = lengths.iter().map(|len| format!("[{len}]")).collect();
        let (names, element) = self.resolved(of);
        let element = self
            .classes
            .definition(self.dies, self.dies.get(&element)?)?;
        if let Some((of, len)) = self.value(element, &names) {
            let len = len.checked_mul(count)?;
            self.row(name.to_owned(), format!("{of}{sizes}"), offset, len);
            return Some(());
        }
        let size = self.size(of, 0)?;
        let of_elements = names.first().copied().or(named).unwrap_or_default();
        self.row(
            name.to_owned(),
            format!("array {of_elements}{sizes}"),
            offset,
            0,
        );
        for index in (0..count).take(MOST) {
            let at = index.checked_mul(size)?.checked_add(offset)?;
            self.put(format!("{name}[{index}]"), of, at, depth + 1);
        }
        (count <= MOST as u64).then_some(())
    }

    /// How many elements an array has in each of its dimensions.
    fn lengths(&self, die: &Die) -> Option<Vec<u64>> {
        let ranges = die.children.iter().filter_map(|at| self.dies.get(at));
        let ranges = ranges.filter(|it| it.tag == "subrange_type");
        ranges.map(|it| it.length).collect()
    }

    /// Bytes of the type at `of`.
    fn size(&self, of: u64, depth: usize) -> Option<u64> {
        let (_, of) = self.resolved(of);
        let die = self.dies.get(&of).filter(|_| depth < DEPTH)?;
        let die = self.classes.definition(self.dies, die)?;
        if die.byte_size.is_some() || die.tag != "array_type" {
            return die.byte_size;
        }
        let element = self.size(die.of?, depth + 1)?;
        let mut lengths = self.lengths(die)?.into_iter();
        lengths.try_fold(element, |all, len| all.checked_mul(len))
    }
}

/// MATIEC has two names for each type.
fn iec(name: &str) -> &str {
    match name.strip_prefix("IEC_").unwrap_or(name) {
        "TIME_OF_DAY" => "TOD",
        "DATE_AND_TIME" => "DT",
        name => name,
    }
}

/// FNV-1a, 32 bits.
fn fingerprint(text: &str) -> String {
    let step = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", text.bytes().fold(0x811c_9dc5, step))
}
