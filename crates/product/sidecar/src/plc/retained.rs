//! Retained variables (H-31): named in `io.toml`, known from what MATIEC lists in `VARIABLES.csv` or STruC++ in its header,
//! told by a table in the executable (H-32).

mod executable;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::elementary::size;
use super::{BuildFault, located, strucpp};
use executable::{MARK, MOST, NAME, VERSION};

pub use executable::{Damaged, retained};

const VARIABLES: &str = "VARIABLES.csv";

/// A variable that is to be retained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name, as `VARIABLES.csv` has it; in STruC++ its instance's and its own, `INST0.COUNTED.CV`.
    pub name: String,
    /// Its type in IEC 61131-3.
    pub of: String,
    /// Bytes of its value.
    pub len: u32,
    place: Place,
}

/// Where a retained variable lies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A global variable of MATIEC, by its name in C.
    Global(String),
    /// In the program of this type whose instance is called `symbol`.
    Program {
        of: String,
        symbol: String,
        member: String,
    },
    /// An expression in C++.
    Strucpp(String),
}

/// What a project says of its variables.
#[derive(Debug, Default)]
struct Listed {
    /// Type of each instance of a program, by its symbol in C.
    programs: BTreeMap<String, String>,
    /// By name: class, path in C, type.
    variables: BTreeMap<String, (String, String, String)>,
}

impl Listed {
    fn parse(text: &str) -> Self {
        let (mut listed, mut section) = (Self::default(), 0);
        for line in text.lines().map(str::trim) {
            if line.starts_with("//") {
                section += 1;
                continue;
            }
            let fields: Vec<&str> = line.split(';').map(str::trim).collect();
            match (section, &fields[..]) {
                (1, [_, path, of, ..]) => {
                    listed.programs.insert(in_c(path).0, (*of).to_owned());
                }
                (2, [_, class, name, path, of, ..]) => {
                    let row = [class, path, of].map(|it| (*it).to_owned());
                    listed.variables.insert((*name).to_owned(), row.into());
                }
                _ => {}
            }
        }
        listed
    }

    fn find(&self, name: &str) -> Result<Variable, String> {
        let Some((class, path, of)) = self.variables.get(name) else {
            return Err(format!("is not in {VARIABLES}; {}", self.remedy(name)));
        };
        let located = "has an address, and lies where inputs and outputs do: copy it to a variable without AT, and retain that";
        match class.as_str() {
            "VAR" => {}
            "IN" | "OUT" | "MEM" => return Err(located.into()),
            "FB" => {
                return Err(format!(
                    "is an instance of {of}: name those of its variables that are to be retained"
                ));
            }
            "EXT" => {
                return Err("is VAR_EXTERNAL: name the global variable that it stands for".into());
            }
            other => {
                return Err(format!(
                    "is of the class {other}, which cannot be retained: name a variable (VAR)"
                ));
            }
        }
        let len = size(of).ok_or_else(|| {
            format!(
                "has the type {of}, which cannot be retained: only elementary numbers, bits, times and dates can; name its \
                 elements one by one as variables of their own"
            )
        })?;
        let (symbol, member) = in_c(path);
        let is_c =
            |it: &str| !it.is_empty() && it.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
        if !is_c(&symbol)
            || !member
                .split('.')
                .all(|part| is_c(part) || member.is_empty())
        {
            return Err(format!("has the path {path:?}, which is no variable in C"));
        }
        let place = match (member.is_empty(), self.programs.get(&symbol)) {
            (true, _) => Place::Global(symbol),
            (false, Some(program)) if is_c(program) => Place::Program {
                of: program.clone(),
                symbol,
                member,
            },
            _ => {
                return Err(format!(
                    "lies in {symbol}, which is no instance of a program: retain a variable of a program, or a global one"
                ));
            }
        };
        Ok(Variable {
            name: name.into(),
            of: of.clone(),
            len,
            place,
        })
    }

    /// What to write in place of `name`.
    fn remedy(&self, name: &str) -> String {
        let last = name.rsplit('.').next().unwrap_or(name);
        let same = |it: &&String| {
            it.rsplit('.')
                .next()
                .is_some_and(|it| it.eq_ignore_ascii_case(last))
        };
        let similar: Vec<&str> = self
            .variables
            .keys()
            .filter(same)
            .take(3)
            .map(String::as_str)
            .collect();
        match similar.is_empty() {
            true => "its third column has the names that can be retained".into(),
            false => format!("is {} meant?", similar.join(" or ")),
        }
    }
}

/// From a path as `CONFIG0.RES0.TANK0.COUNTED.CV` to what MATIEC calls it in C: symbol and member.
fn in_c(path: &str) -> (String, String) {
    let mut parts = path.splitn(3, '.');
    let first = parts.next().unwrap_or_default();
    match (parts.next(), parts.next()) {
        (Some(resource), Some(rest)) => {
            let (instance, member) = rest.split_once('.').unwrap_or((rest, ""));
            (format!("{resource}__{instance}"), member.to_owned())
        }
        (Some(global), None) => (format!("{first}__{global}"), String::new()),
        _ => (first.to_owned(), String::new()),
    }
}

/// The variables of `project` that its `io.toml` names.
///
/// # Errors
/// All that is wrong with them.
pub(super) fn find(
    project: &Path,
    strucpp: Option<&strucpp::Project>,
) -> Result<Vec<Variable>, BuildFault> {
    let (names, place) = located::retain(project)?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    match strucpp {
        Some(it) => found(&names, &place, |name| {
            let strucpp::Variable {
                name,
                of,
                len,
                expression,
            } = it.variable(name)?;
            let place = Place::Strucpp(expression);
            Ok(Variable {
                name,
                of,
                len,
                place,
            })
        }),
        None => {
            let listed = listed(project, &place)?;
            found(&names, &place, |name| listed.find(name))
        }
    }
}

fn listed(project: &Path, place: &str) -> Result<Listed, BuildFault> {
    let path = project.join(VARIABLES);
    let text = fs::read_to_string(&path).map_err(|error| {
        BuildFault::one(format!(
            "{} cannot be read: {error}; the compiler of the editor generates it beside Config0.c, and \"retain\" in {place} \
             names variables in it: put it in the folder, or leave \"retain\" out",
            path.display()
        ))
    })?;
    Ok(Listed::parse(&text))
}

fn found(
    names: &[String],
    place: &str,
    find: impl Fn(&str) -> Result<Variable, String>,
) -> Result<Vec<Variable>, BuildFault> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            problems.push(format!(
                "{place}: {name} stands twice in \"retain\"; remove one"
            ));
            continue;
        }
        match find(name) {
            Ok(_) if name.len() > NAME => problems.push(format!(
                "{place}: {name} in \"retain\" has a name of more than {NAME} bytes: name its instances shorter"
            )),
            Ok(variable) => found.push(variable),
            Err(problem) => problems.push(format!("{place}: {name} in \"retain\" {problem}")),
        }
    }
    if found.len() > MOST {
        problems.push(format!(
            "{place}: \"retain\" has more than {MOST} variables; retain fewer"
        ));
    }
    if !problems.is_empty() {
        return Err(BuildFault(problems));
    }
    Ok(found)
}

/// What it means if the table does not compile.
pub(super) const OTHER: &str = "the variables in \"retain\" of io.toml are not what VARIABLES.csv or generated.hpp says of them; generate the \
     project's code again, with both";

/// The rows of the table in C and C++.
const ROWS: &str = "#include <stdint.h>
struct bumpless_retained {
	const volatile void *address;
	uint32_t length;
	char of[16], name[116];
};
";

/// The table: file and text. The compiler checks that each variable has its type's length.
pub(super) fn table(
    variables: &[Variable],
    strucpp: Option<&strucpp::Project>,
) -> (&'static str, String) {
    let mut text = String::from(ROWS);
    match strucpp {
        Some(it) => text.push_str(&it.declaration()),
        None => text.push_str(&declarations(variables)),
    }
    let mut rows = String::new();
    for Variable {
        name,
        of,
        len,
        place,
    } in variables
    {
        let (address, check) = match place {
            // The value is the first thing in a global variable.
            Place::Global(symbol) => (symbol.clone(), String::new()),
            Place::Program { symbol, member, .. } => {
                let value = format!("{symbol}.{member}.value");
                let check =
                    format!("_Static_assert(sizeof {value} == {len}, \"{name} is no {of}\");");
                (format!("&{value}"), check)
            }
            Place::Strucpp(expression) => (
                format!("&{expression}"),
                strucpp::is_value(expression, *len, name),
            ),
        };
        let _ = writeln!(text, "{check}");
        let (of, name) = (characters(of.as_bytes()), characters(name.as_bytes()));
        let _ = writeln!(rows, "\t\t{{{address}, {len}, {of}, {name}}},");
    }
    let _ = write!(
        text,
        "extern const struct bumpless_retain_table {{\n\tunsigned char mark[16];\n\tuint32_t version, count;\n\
         \tstruct bumpless_retained of[{}];\n}} bumpless_retain;\n\
         const struct bumpless_retain_table bumpless_retain = {{\n\t{}, {VERSION}, {},\n\t{{\n{rows}\t}},\n}};\n",
        variables.len().max(1),
        MARK.map(|byte| format!("'{}'", char::from(byte)))
            .join(", "),
        variables.len(),
    );
    let name = if strucpp.is_some() {
        "retained.cpp"
    } else {
        "retained.c"
    };
    (name, text)
}

/// A text without the zero at its end, for which C++ wants room.
fn characters(text: &[u8]) -> String {
    let each: Vec<_> = text
        .iter()
        .map(|&byte| format!("'{}'", char::from(byte)))
        .collect();
    format!("{{{}}}", each.join(", "))
}

/// What MATIEC's code has of them.
fn declarations(variables: &[Variable]) -> String {
    let mut text = String::new();
    let mut declared = BTreeMap::new();
    for it in variables {
        match &it.place {
            Place::Global(symbol) => declared.insert(symbol, None),
            Place::Program { of, symbol, .. } => declared.insert(symbol, Some(of)),
            Place::Strucpp(_) => None,
        };
    }
    if declared.values().any(Option::is_some) {
        text.push_str("#include \"POUS.h\"\n");
    }
    for (symbol, program) in declared {
        let _ = match program {
            Some(program) => writeln!(text, "extern {program} {symbol};"),
            None => writeln!(text, "extern char {symbol}[];"),
        };
    }
    text
}

#[cfg(test)]
mod tests;
