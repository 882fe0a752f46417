//! Located variables: what the generated code declares, and which of an application's values each is (H-26).

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use toml_edit::{DocumentMut, Item};

use super::BuildFault;

/// A type that a value of an application can have in a PLC program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of IEC 61131-3")]
pub enum Type {
    Bool,
    Sint,
    Int,
    Dint,
    Lint,
    Usint,
    Uint,
    Udint,
    Ulint,
    Real,
    Lreal,
}

impl Type {
    /// The names of IEC 61131-3, the type in C, and the name in the library's table.
    const ALL: [(Self, &'static [&'static str], &'static str, &'static str); 11] = [
        (Self::Bool, &["BOOL"], "uint8_t", "TYPE_BOOL"),
        (Self::Sint, &["SINT"], "int8_t", "TYPE_SINT"),
        (Self::Int, &["INT"], "int16_t", "TYPE_INT"),
        (Self::Dint, &["DINT"], "int32_t", "TYPE_DINT"),
        (Self::Lint, &["LINT"], "int64_t", "TYPE_LINT"),
        (Self::Usint, &["USINT", "BYTE"], "uint8_t", "TYPE_USINT"),
        (Self::Uint, &["UINT", "WORD"], "uint16_t", "TYPE_UINT"),
        (Self::Udint, &["UDINT", "DWORD"], "uint32_t", "TYPE_UDINT"),
        (Self::Ulint, &["ULINT", "LWORD"], "uint64_t", "TYPE_ULINT"),
        (Self::Real, &["REAL"], "float", "TYPE_REAL"),
        (Self::Lreal, &["LREAL"], "double", "TYPE_LREAL"),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        let found = Self::ALL
            .iter()
            .find(|(_, names, ..)| names.contains(&name));
        found.map(|(of, ..)| *of)
    }

    fn row(self) -> (&'static str, &'static str) {
        // Every type is in the table.
        let found = Self::ALL.iter().find(|(of, ..)| *of == self);
        found.map_or(("void", ""), |(_, _, c, table)| (c, table))
    }

    /// Bytes of a value.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Bool | Self::Sint | Self::Usint => 1,
            Self::Int | Self::Uint => 2,
            Self::Dint | Self::Udint | Self::Real => 4,
            Self::Lint | Self::Ulint | Self::Lreal => 8,
        }
    }

    /// The type in C.
    pub(super) fn in_c(self) -> &'static str {
        self.row().0
    }

    /// The name in the library's table.
    pub(super) fn in_table(self) -> &'static str {
        self.row().1
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(of, ..)| of == self);
        f.write_str(found.map_or("", |(_, names, ..)| names[0]))
    }
}

/// A variable with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// `%IX0.0` and the like.
    pub address: String,
    /// Its type.
    pub of: Type,
    /// The pointer by which the generated code reaches it.
    pub symbol: String,
    /// By which addresses are ordered: size, then numbers.
    order: (usize, Vec<u32>),
}

impl Located {
    /// The variable with this address, whose size has this place among X, B, W, D and L and is followed by these numbers.
    pub(super) fn new(address: String, of: Type, symbol: String, order: (usize, Vec<u32>)) -> Self {
        Self {
            address,
            of,
            symbol,
            order,
        }
    }
}

/// A project's located variables.
#[derive(Debug)]
pub(super) struct Table {
    /// The file that declares them.
    declared_in: &'static str,
    pub inputs: Vec<Located>,
    pub outputs: Vec<Located>,
    /// `%M`: state like any other, if their type is known.
    pub memory: Vec<Located>,
}

const DECLARATIONS: &str = "LOCATED_VARIABLES.h";
const ORDER: &str = "io.toml";
/// The list in it of what is retained.
const RETAIN: &str = "retain";

impl Table {
    /// None yet.
    pub fn new(declared_in: &'static str) -> Self {
        Self {
            declared_in,
            inputs: Vec::new(),
            outputs: Vec::new(),
            memory: Vec::new(),
        }
    }

    /// What MATIEC has declared in the folder `project`, by address.
    pub fn of_matiec(project: &Path) -> Result<Self, BuildFault> {
        let path = project.join(DECLARATIONS);
        let text = fs::read_to_string(&path).map_err(|error| {
            BuildFault::one(format!(
                "{} cannot be read: {error}; the compiler of the editor generates it beside Config0.c",
                path.display()
            ))
        })?;
        Self::declared(&text, &path.display().to_string())
    }

    /// In the order that the project's `io.toml` gives, if there is one.
    pub fn in_order(self, project: &Path) -> Result<Self, BuildFault> {
        let order = project.join(ORDER);
        match fs::read_to_string(&order) {
            Ok(text) => self.ordered(&text, &order.display().to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(self),
            Err(error) => Err(BuildFault::one(format!(
                "{} cannot be read: {error}",
                order.display()
            ))),
        }
    }

    /// All that is declared, by address.
    fn declared(text: &str, place: &str) -> Result<Self, BuildFault> {
        let mut table = Self::new(DECLARATIONS);
        let mut problems = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let Some(inner) = declaration(line) else {
                continue;
            };
            let fields: Vec<&str> = inner.split(',').map(str::trim).collect();
            if let Err(problem) = table.add(&fields) {
                problems.push(format!("{place}, line {}: {problem}", number + 1));
            }
        }
        if !problems.is_empty() {
            return Err(BuildFault(problems));
        }
        Ok(table.by_address())
    }

    /// The list of an area: 0 is %I, 1 is %Q, any other %M.
    pub fn list(&mut self, area: usize) -> &mut Vec<Located> {
        match area {
            0 => &mut self.inputs,
            1 => &mut self.outputs,
            _ => &mut self.memory,
        }
    }

    /// Ordered by address: size, then numbers.
    pub fn by_address(mut self) -> Self {
        for list in [&mut self.inputs, &mut self.outputs, &mut self.memory] {
            list.sort_by(|a, b| a.order.cmp(&b.order));
        }
        self
    }

    fn add(&mut self, fields: &[&str]) -> Result<(), String> {
        let [type_name, symbol, area, size, numbers @ ..] = fields else {
            return Err("this is no declaration of MATIEC's".into());
        };
        let numbers: Vec<u32> = numbers
            .iter()
            .map(|number| number.parse())
            .collect::<Result<_, _>>()
            .map_err(|_| "an address has numbers behind its size".to_owned())?;
        let Some(size_order) = "XBWDL".find(*size).filter(|_| size.len() == 1) else {
            return Err(format!("{size:?} is no size of an address (X, B, W, D, L)"));
        };
        let joined: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        let address = format!("%{area}{size}{}", joined.join("."));
        let is_name = symbol
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if !is_name || symbol.is_empty() {
            return Err(format!("{symbol:?} is no name in C"));
        }
        let Some(area_at) = "IQM".find(*area).filter(|_| area.len() == 1) else {
            return Err(format!("{area:?} is no area of an address (I, Q, M)"));
        };
        let Some(of) = Type::named(type_name) else {
            if *area == "M" {
                return Ok(());
            }
            return Err(format!(
                "{address} has the type {type_name}, which is no number: declare an elementary type for inputs and \
                 outputs"
            ));
        };
        let order = (size_order, numbers);
        let located = Located::new(address, of, (*symbol).to_owned(), order);
        self.list(area_at).push(located);
        Ok(())
    }

    /// In the order that `io.toml` gives.
    fn ordered(self, text: &str, place: &str) -> Result<Self, BuildFault> {
        let document: DocumentMut = text
            .parse()
            .map_err(|error| BuildFault::one(format!("{place}: {error}")))?;
        let mut problems = Vec::new();
        for (key, _) in document.iter() {
            if !["inputs", "outputs", RETAIN].contains(&key) {
                problems.push(format!(
                    "{place}: {key:?} is unknown; the file has the lists \"inputs\", \"outputs\" and \"retain\""
                ));
            }
        }
        let declared_in = self.declared_in;
        let mut arrange = |key: &str, declared: Vec<Located>| match strings(document.get(key)) {
            Some(wanted) => arranged(&wanted, declared, (place, key, declared_in), &mut problems),
            None => {
                problems.push(format!(
                    "{place}: {key:?} is no list of addresses, as in {key} = [\"%IX0.0\"]"
                ));
                declared
            }
        };
        let (inputs, outputs) = (
            arrange("inputs", self.inputs),
            arrange("outputs", self.outputs),
        );
        if !problems.is_empty() {
            return Err(BuildFault(problems));
        }
        Ok(Self {
            inputs,
            outputs,
            ..self
        })
    }
}

/// The names that a project's `io.toml` has in `retain`, and the file. What cannot be read [`Table::in_order`] tells.
///
/// # Errors
/// It is no list of names.
pub(super) fn retain(project: &Path) -> Result<(Vec<String>, String), BuildFault> {
    let file = project.join(ORDER);
    let place = file.display().to_string();
    let text = fs::read_to_string(&file).unwrap_or_default();
    let document: DocumentMut = text.parse().unwrap_or_default();
    match strings(document.get(RETAIN)) {
        Some(names) => Ok((names, place)),
        None => Err(BuildFault::one(format!(
            "{place}: \"retain\" is no list of names, as in retain = [\"CONFIG0.RES0.TANK0.COUNT\"]"
        ))),
    }
}

/// What stands between the parentheses of a declaration.
fn declaration(line: &str) -> Option<&str> {
    let inner = line.trim().strip_prefix("__LOCATED_VAR")?.trim_start();
    inner.strip_prefix('(')?.split(')').next()
}

/// A list of texts; one that is not there is empty.
fn strings(item: Option<&Item>) -> Option<Vec<String>> {
    let Some(item) = item else {
        return Some(Vec::new());
    };
    item.as_array()?
        .iter()
        .map(|value| value.as_str().map(ToOwned::to_owned))
        .collect()
}

fn arranged(
    wanted: &[String],
    mut declared: Vec<Located>,
    (place, key, declared_in): (&str, &str, &str),
    problems: &mut Vec<String>,
) -> Vec<Located> {
    let mut list: Vec<Located> = Vec::new();
    for address in wanted {
        if let Some(at) = declared.iter().position(|it| it.address == *address) {
            list.push(declared.remove(at));
        } else if list.iter().any(|it| it.address == *address) {
            problems.push(format!(
                "{place}: {address} stands twice in {key:?}; each variable is one value"
            ));
        } else {
            problems.push(format!(
                "{place}: {address} in {key:?} is not declared by the program ({declared_in}); remove it, or declare \
                 a variable AT {address}"
            ));
        }
    }
    problems.extend(declared.iter().map(|it| {
        format!(
            "{place}: {} ({}) is declared by the program and not in {key:?}; add it",
            it.address, it.of
        )
    }));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &str = "\
__LOCATED_VAR(INT,__QW10,Q,W,10)
__LOCATED_VAR(BOOL,__IX0_1,I,X,0,1)
__LOCATED_VAR(BOOL,__IX0_0,I,X,0,0)
__LOCATED_VAR(WORD,__QW2,Q,W,2)
__LOCATED_VAR(BOOL,__QX1_0,Q,X,1,0)
__LOCATED_VAR(TIME,__ML0,M,L,0)
";

    fn names(list: &[Located]) -> Vec<&str> {
        list.iter().map(|it| it.address.as_str()).collect()
    }

    #[test]
    fn without_a_table_the_order_is_that_of_the_addresses() {
        let table = Table::declared(DECLARED, "L").unwrap();
        assert_eq!(names(&table.inputs), ["%IX0.0", "%IX0.1"]);
        assert_eq!(names(&table.outputs), ["%QX1.0", "%QW2", "%QW10"]);
        assert_eq!(table.outputs[1].of, Type::Uint);
    }

    #[test]
    fn the_table_gives_the_order() {
        let text = "inputs = [\"%IX0.1\", \"%IX0.0\"]\noutputs = [\"%QW10\", \"%QX1.0\", \"%QW2\"]";
        let table = Table::declared(DECLARED, "L").unwrap();
        let table = table.ordered(text, "io").unwrap();
        assert_eq!(names(&table.inputs), ["%IX0.1", "%IX0.0"]);
        assert_eq!(names(&table.outputs), ["%QW10", "%QX1.0", "%QW2"]);
    }

    #[test]
    fn variables_missing_doubled_or_unknown_are_all_named_at_once() {
        let text = "inputs = [\"%IX0.0\", \"%IX0.0\", \"%IX7.7\"]\noutputs = 3\nmore = []";
        let table = Table::declared(DECLARED, "L").unwrap();
        let problems = table.ordered(text, "io").unwrap_err().0;
        assert_eq!(problems.len(), 5, "{problems:#?}");
        for part in ["twice", "%IX7.7", "%IX0.1", "no list", "\"more\""] {
            let named = problems.iter().any(|problem| problem.contains(part));
            assert!(named, "{part}: {problems:#?}");
        }
    }

    #[test]
    fn a_declaration_that_cannot_be_a_value_is_refused_with_its_line() {
        for (line, part) in [
            ("__LOCATED_VAR(STRING,__IB0,I,B,0)", "STRING"),
            ("__LOCATED_VAR(INT,__ZW0,Z,W,0)", "area"),
            ("__LOCATED_VAR(INT,__IY0,I,Y,0)", "size"),
            ("__LOCATED_VAR(INT,a b,I,W,0)", "name in C"),
            ("__LOCATED_VAR(INT)", "no declaration"),
        ] {
            let fault = Table::declared(&format!("\n{line}"), "L").unwrap_err();
            assert!(fault.0[0].starts_with("L, line 2: "), "{fault}");
            assert!(fault.0[0].contains(part), "{fault}");
        }
    }
}
