//! Projects of STruC++, the compiler of later OpenPLC editors: what their `generated.hpp` declares (H-37 to H-39).

mod declared;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::located::{Located, Table, Type};
use super::{BuildFault, elementary};
use declared::Declared;

/// The header by which a project is known, with all that it declares.
pub(super) const HEADER: &str = "generated.hpp";
/// Where the editor puts the headers of STruC++ beside it.
pub(super) const HEADERS: &str = "strucpp_runtime/include";

/// What it means if the library's part does not compile with a project's headers.
pub(super) const UNKNOWN: &str = "the project's headers are not those of a version of STruC++ that is known here (0.5 and 0.6 are)";

/// What is read of a project.
#[derive(Debug)]
pub(super) struct Project {
    /// The class of its configuration.
    configuration: String,
    /// Its located variables in the order of the generator's table.
    rows: Vec<Row>,
    /// Type of each variable, by class and name; the class of a global one is empty.
    types: BTreeMap<(String, String), String>,
    /// Global variables that lie in a `GlobalVar`.
    boxed: BTreeSet<String>,
}

/// A located variable of the generator's table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    name: String,
    /// The class that it is a member of, empty for a global one.
    class: String,
    address: Address,
    /// Its type in IEC 61131-3, without which it can be memory only.
    of: Option<String>,
}

/// `%IX0.3` in its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Address {
    area: usize,
    size: usize,
    byte: u16,
    bit: u8,
}

const AREAS: &str = "IQM";
const SIZES: &str = "XBWDL";

impl Address {
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('%')?;
        let area = AREAS.find(rest.chars().next()?)?;
        let rest = &rest[1..];
        // An address without a size is that of a bit.
        let sized = rest.chars().next().and_then(|it| SIZES.find(it));
        let numbers = if sized.is_some() { &rest[1..] } else { rest };
        let (byte, bit) = numbers.split_once('.').unwrap_or((numbers, "0"));
        Some(Self {
            area,
            size: sized.unwrap_or(0),
            byte: byte.parse().ok()?,
            bit: bit.parse().ok()?,
        })
    }

    /// Bytes of what lies there.
    fn len(&self) -> usize {
        1 << self.size.saturating_sub(1)
    }

    /// Part of a name in C.
    fn symbol(&self) -> String {
        let letter = |of: &str, at: usize| of[at..=at].to_owned();
        let bit = match self.size {
            0 => format!("_{}", self.bit),
            _ => String::new(),
        };
        let (area, size) = (letter(AREAS, self.area), letter(SIZES, self.size));
        format!("{area}{size}{}{bit}", self.byte)
    }
}

impl Project {
    /// The project in this folder; `None`: it is none of STruC++.
    pub fn find(folder: &Path) -> Result<Option<Self>, BuildFault> {
        let path = folder.join(HEADER);
        if !path.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(|error| {
            BuildFault::one(format!("{} cannot be read: {error}", path.display()))
        })?;
        Self::parse(&text, &path.display().to_string()).map(Some)
    }

    fn parse(text: &str, place: &str) -> Result<Self, BuildFault> {
        let declared = Declared::parse(text);
        let [configuration] = &declared.configurations[..] else {
            return Err(BuildFault::one(match &declared.configurations[..] {
                [] => format!(
                    "{place} declares no configuration: the project needs a CONFIGURATION with a task that runs its programs"
                ),
                several => format!(
                    "{place} declares several configurations ({}): a pair runs one; take the others out of the project",
                    several.join(", ")
                ),
            }));
        };
        let configuration = configuration.clone();
        let mut problems = declared.uncounted(&configuration, place);
        let mut rows = Vec::new();
        for (name, address, class) in declared.located {
            match Address::parse(&address) {
                Some(parsed) => rows.push(Row {
                    address: parsed,
                    of: declared.types.get(&(class.clone(), name.clone())).cloned(),
                    name,
                    class,
                }),
                None => problems.push(format!(
                    "{place}: {name} is at {address}, which is no address that is known here"
                )),
            }
        }
        match problems.is_empty() {
            true => Ok(Self {
                configuration,
                rows,
                types: declared.types,
                boxed: declared.boxed,
            }),
            false => Err(BuildFault(problems)),
        }
    }

    /// Its inputs and outputs, one for each address.
    pub fn table(&self, folder: &Path) -> Result<Table, BuildFault> {
        let place = folder.join(HEADER).display().to_string();
        let mut table = Table::new(HEADER);
        let (mut problems, mut known) = (Vec::new(), BTreeMap::new());
        for row in &self.rows {
            match row.located() {
                Ok(None) => {}
                Ok(Some(it)) => match known.insert(row.address.clone(), it.of) {
                    None => table.list(row.address.area).push(it),
                    Some(of) if of == it.of => {}
                    Some(of) => problems.push(format!(
                        "{place}: {} is declared as {of} and as {}; it is one value, so give it one type",
                        it.address, it.of
                    )),
                },
                Err(problem) => problems.push(format!("{place}: {problem}")),
            }
        }
        match problems.is_empty() {
            true => Ok(table.by_address()),
            false => Err(BuildFault(problems)),
        }
    }

    /// The variable that `io.toml` names in `retain`: a global one, or one of an instance, as `INST0.COUNTED.CV`.
    pub fn variable(&self, name: &str) -> Result<Variable, String> {
        // Letter case counts for nothing in IEC 61131-3, and the generator writes capitals.
        let name = &name.to_ascii_uppercase();
        let Found {
            owner,
            of,
            expression,
        } = self.find_variable(name)?;
        let last = name.rsplit('.').next();
        let mut located = self.rows.iter().filter(|row| row.class == owner);
        if located.any(|row| Some(&*row.name) == last) {
            return Err(
                "has an address, and lies where inputs and outputs do: copy it to a variable without AT, and retain that"
                    .into(),
            );
        }
        // Times and dates are as long as those which MATIEC does not have.
        let of = match of {
            "TIME" | "DATE" | "TOD" | "DT" => format!("L{of}"),
            other => other.to_owned(),
        };
        if elementary::size(&of).is_none() {
            return Err(format!(
                "has the type {of}, which cannot be retained: only elementary numbers, bits, times and dates can; name its \
                 elements one by one as variables of their own"
            ));
        }
        Ok(Variable {
            name: name.clone(),
            of,
            expression,
        })
    }

    fn find_variable(&self, name: &str) -> Result<Found<'_>, String> {
        let of = |class: &str, name: &str| self.types.get(&(class.to_owned(), name.to_owned()));
        if let Some(of) = of("", name) {
            let within = if self.boxed.contains(name) {
                ".value"
            } else {
                ""
            };
            return Ok(Found {
                owner: "",
                of,
                expression: format!("strucpp::{name}{within}"),
            });
        }
        let mut found = Found {
            owner: "",
            of: &self.configuration,
            expression: "bumpless_configuration".to_owned(),
        };
        for part in name.split('.') {
            found.owner = found.of;
            found.of = of(found.owner, part).ok_or_else(|| {
                format!(
                    "is not in {HEADER}: {part} is no variable there; name a global variable, or an instance of a program and \
                     a variable in it, as INST0.COUNT"
                )
            })?;
            found.expression.push('.');
            found.expression.push_str(part);
        }
        Ok(found)
    }

    /// What the table of retained variables needs to know.
    pub fn declaration(&self) -> String {
        format!(
            "#include \"{HEADER}\"\n#include <type_traits>\nextern strucpp::{} bumpless_configuration;\n",
            self.configuration
        )
    }

    /// The header by which the library's part reaches the project.
    pub fn header(&self) -> String {
        let mut text = String::from("#include <stdint.h>\n#include <stddef.h>\n");
        let _ = writeln!(
            text,
            "#define BUMPLESS_CONFIGURATION {}",
            self.configuration
        );
        let _ = writeln!(text, "#define BUMPLESS_LOCATED {}", self.rows.len());
        let addresses: BTreeMap<&Address, String> = self
            .rows
            .iter()
            .map(|row| (&row.address, row.address.symbol()))
            .collect();
        text.push_str("extern \"C\" {\n");
        for symbol in addresses.values() {
            let _ = writeln!(
                text,
                "uint64_t bumpless_at_{symbol};\nvoid *bumpless_to_{symbol} = &bumpless_at_{symbol};"
            );
        }
        text.push_str(
            "}\nstruct bumpless_row {\n\tunsigned area, size, byte, bit;\n\tuint64_t *image;\n};\n\
             static const bumpless_row bumpless_rows[] = {\n",
        );
        for Row { address, .. } in &self.rows {
            let Address {
                area,
                size,
                byte,
                bit,
            } = address;
            let _ = writeln!(
                text,
                "\t{{{area}, {size}, {byte}, {bit}, &bumpless_at_{}}},",
                address.symbol()
            );
        }
        // An empty table is no table in C++.
        text.push_str("\t{0, 0, 0, 0, nullptr}\n};\n");
        text
    }
}

/// What the compiler checks of a retained variable: it is as long as its type, and begins with its first member, which is its
/// value in the known versions.
pub(super) fn is_value(expression: &str, len: &str, name: &str) -> String {
    let of = format!("decltype({expression})");
    format!(
        "static_assert(std::is_standard_layout<{of}>::value && sizeof({of}::value_type) == {len}, \"{name} is another\");"
    )
}

impl Row {
    /// The input or output that it is; `None`: it is memory.
    fn located(&self) -> Result<Option<Located>, String> {
        let Address {
            area,
            size,
            byte,
            bit,
        } = &self.address;
        let symbol = self.address.symbol();
        let address = format!("%{}", symbol.replace('_', "."));
        let Some(name) = &self.of else {
            return Err(format!(
                "the type of {address} is not found: the header is of a version of STruC++ that is not known here (0.5 and 0.6 are)"
            ));
        };
        let is_memory = &AREAS[*area..=*area] == "M";
        let of = Type::named(name);
        // Times and dates, which memory can hold.
        let len = of.map_or(8, Type::len);
        let is_time = ["TIME", "DATE", "TOD", "DT"].contains(&name.trim_start_matches('L'));
        if of.is_none() && !(is_memory && is_time) {
            return Err(format!(
                "{address} has the type {name}, which is no number: declare an elementary type for what has an address"
            ));
        }
        if len != self.address.len() {
            return Err(format!(
                "{address} has the type {name}, which is not as long as its address: {len} bytes in place of {}",
                self.address.len()
            ));
        }
        let Some(of) = of.filter(|_| !is_memory) else {
            return Ok(None);
        };
        let numbers = [u32::from(*byte), u32::from(*bit)];
        let numbers = numbers[..if *size == 0 { 2 } else { 1 }].to_vec();
        let symbol = format!("bumpless_to_{symbol}");
        Ok(Some(Located::new(address, of, symbol, (*size, numbers))))
    }
}

/// A variable that can be retained.
#[derive(Debug)]
pub(super) struct Variable {
    /// Its name in the project.
    pub name: String,
    /// Its type in IEC 61131-3.
    pub of: String,
    /// What names it in C++.
    pub expression: String,
}

/// A variable of the project.
struct Found<'a> {
    /// The class that it is a member of.
    owner: &'a str,
    of: &'a str,
    /// What names it in C++.
    expression: String,
}

#[cfg(test)]
mod tests;
