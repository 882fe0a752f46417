//! Retained variables (H-31): named in `io.toml`, known from what MATIEC lists in `VARIABLES.csv` or STruC++ in its header,
//! told by a table in the executable (H-32).

mod declared;
mod executable;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::elementary::value;
use super::variables::StateVariable;
use super::{BuildFault, located, strucpp};
use crate::sidecar::HEAD;
use bumpless_controller::retain::{RECORD_MAX, Retained};
use declared::Declared;
use executable::{MOST, NAME, OF};

pub use executable::{Damaged, retained};
pub(super) use table::table;

const VARIABLES: &str = "VARIABLES.csv";

/// A variable that is to be retained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name, as `VARIABLES.csv` has it; in STruC++ its instance's and its own, `INST0.COUNTED.CV`.
    pub name: String,
    /// Its type in IEC 61131-3.
    pub of: String,
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
    /// What the headers say besides.
    declared: Declared,
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
            let array = self.array(name);
            return array.ok_or_else(|| format!("is not in {VARIABLES}; {}", self.remedy(name)))?;
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
        self.variable(name, path, of)
    }

    /// An array, which the headers declare and the list does not have; `None`: they do not either.
    fn array(&self, name: &str) -> Option<Result<Variable, String>> {
        let (symbol, member) = in_c(name);
        let of = match member.is_empty() {
            true => self.declared.global(&symbol)?,
            false => {
                let program = self.programs.get(&symbol)?;
                self.declared.member(program, &member)?
            }
        };
        Some(self.variable(name, name, &of))
    }

    /// The variable `name` of this type, which MATIEC knows by `path`.
    fn variable(&self, name: &str, path: &str, of: &str) -> Result<Variable, String> {
        if value(of).is_none() {
            return Err(format!(
                "has the type {of}, which cannot be retained: only elementary numbers, bits, times, dates and strings can, and \
                 arrays of them; name the parts of a structure one by one as variables of their own"
            ));
        }
        if of.len() > OF {
            return Err(format!(
                "has the type {of}, whose name is longer than {OF} bytes: give the array fewer dimensions"
            ));
        }
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
            of: of.into(),
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
                expression,
            } = it.variable(name)?;
            let place = Place::Strucpp(expression);
            Ok(Variable { name, of, place })
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
    let declared = Declared::of(project);
    Ok(Listed {
        declared,
        ..Listed::parse(&text)
    })
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

/// Whether what is linked can be kept: each retained variable lies in one of `variables`, of which there are none where they cannot
/// all be told, and a file of a state has room for all of them (K-15).
///
/// # Errors
/// What is wrong with them.
pub(super) fn judge(executable: &Path, variables: &[StateVariable]) -> Result<(), BuildFault> {
    let binary = fs::read(executable).map_err(|error| {
        BuildFault::one(format!("{} cannot be read: {error}", executable.display()))
    })?;
    let linked = retained(&binary).map_err(|damaged| BuildFault::one(damaged.to_string()))?;
    let elsewhere = |it: &&Retained| {
        let within = |variable: &StateVariable| {
            let from = HEAD + variable.offset as usize;
            from <= it.offset && it.offset + it.len <= from + variable.len as usize
        };
        !variables.is_empty() && !variables.iter().any(within)
    };
    if let Some(it) = linked.iter().find(elsewhere) {
        return Err(BuildFault::one(format!(
            "{OTHER}: {} is no {}",
            it.name, it.of
        )));
    }
    has_room(&linked)
}

fn has_room(linked: &[Retained]) -> Result<(), BuildFault> {
    let len: usize = linked.iter().map(Retained::entry_len).sum();
    if len <= RECORD_MAX {
        return Ok(());
    }
    let largest = linked.iter().max_by_key(|it| it.len);
    let largest = largest.map(|it| format!("; {} has {} bytes", it.name, it.len));
    Err(BuildFault::one(format!(
        "\"retain\" of io.toml names variables of {len} bytes with their names, and {RECORD_MAX} are the most that are kept: retain \
         fewer, or shorter arrays{}",
        largest.unwrap_or_default()
    )))
}

#[cfg(test)]
mod tests;
