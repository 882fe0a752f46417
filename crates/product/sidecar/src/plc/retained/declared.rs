//! What MATIEC's headers declare: its list of variables has no arrays.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::plc::elementary;

/// Names of types for one another are not longer chains than this.
const CHAIN: usize = 16;

/// Declarations of a project.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// Type of each member, by the structure's name and its own.
    members: BTreeMap<(String, String), String>,
    /// Type of each global variable, by its name in C.
    globals: BTreeMap<String, String>,
    /// What stands behind the name of a type: another name, or `INT[2][10]`.
    types: BTreeMap<String, String>,
}

impl Declared {
    /// Of all files of C in this folder; the compiler names those that cannot be read.
    pub fn of(project: &Path) -> Self {
        let mut declared = Self::default();
        let entries = fs::read_dir(project).into_iter().flatten().flatten();
        let is_c = |path: &Path| {
            let ending = path.extension().and_then(|it| it.to_str());
            matches!(ending, Some("c" | "h"))
        };
        for path in entries.map(|it| it.path()).filter(|it| is_c(it)) {
            let bytes = fs::read(path).unwrap_or_default();
            declared.read(&String::from_utf8_lossy(&bytes));
        }
        declared
    }

    pub fn read(&mut self, text: &str) {
        let mut members: Vec<(String, String)> = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with("typedef struct") {
                members.clear();
            } else if let Some(name) = line.strip_prefix('}').and_then(ended) {
                let all = members.drain(..);
                let all = all.map(|(member, of)| ((name.to_owned(), member), of));
                self.members.extend(all);
            } else if let Some([of, name]) = call(line, "__DECLARE_VAR") {
                members.push((name.to_owned(), of.to_owned()));
            } else if let Some([of, domain, name]) = call(line, "__DECLARE_GLOBAL") {
                self.globals.insert(format!("{domain}__{name}"), of.into());
            } else if let Some([one, other, lengths]) = call(line, "__DECLARE_ARRAY_TYPE") {
                // Older versions have the element's type first.
                let (name, element) = match elementary::value(one).is_some() {
                    true => (other, one),
                    false => (one, other),
                };
                self.types
                    .insert(name.into(), format!("{element}{lengths}"));
            } else if let Some([name, of]) = call(line, "__DECLARE_DERIVED_TYPE") {
                self.types.insert(name.into(), of.into());
            } else if let Some((of, name)) = ended(line).and_then(|it| it.split_once(' ')) {
                members.push((name.trim().to_owned(), of.to_owned()));
            }
        }
    }

    /// The type of the member at this path, as `COUNTED.CV`, of the structure `of`.
    pub fn member(&self, of: &str, path: &str) -> Option<String> {
        let mut of = of.to_owned();
        for part in path.split('.') {
            of = self.members.get(&(of, part.to_owned()))?.clone();
        }
        Some(self.resolved(of))
    }

    /// The type of the global variable that is called `symbol` in C.
    pub fn global(&self, symbol: &str) -> Option<String> {
        let of = self.globals.get(symbol)?.clone();
        Some(self.resolved(of))
    }

    fn resolved(&self, mut of: String) -> String {
        for _ in 0..CHAIN {
            match self.types.get(&of) {
                Some(next) => of = next.clone(),
                None => break,
            }
        }
        of
    }
}

/// The arguments of a macro.
fn call<'a, const N: usize>(line: &'a str, name: &str) -> Option<[&'a str; N]> {
    let rest = line.strip_prefix(name)?.strip_prefix('(')?;
    let (all, _) = rest.split_once(')')?;
    let all: Vec<&str> = all.split(',').map(str::trim).collect();
    all.try_into().ok()
}

/// What ends with a semicolon, without it.
fn ended(line: &str) -> Option<&str> {
    let (declared, _) = line.split_once(';')?;
    let declared = declared.trim();
    let is_name = |it: char| it == '_' || it == ' ' || it.is_ascii_alphanumeric();
    (!declared.is_empty() && declared.chars().all(is_name)).then_some(declared)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\
__DECLARE_ARRAY_TYPE(__ARRAY_OF_INT_10,INT,[10])
__DECLARE_ARRAY_TYPE(REAL,GRID,[2][3])
__DECLARE_DERIVED_TYPE(RECIPE,__ARRAY_OF_INT_10)
__DECLARE_DERIVED_TYPE(ROUND,ROUND)
// FUNCTION_BLOCK CTU
typedef struct {
  __DECLARE_VAR(RECIPE,STEPS)
} CTU;

typedef struct {
  __DECLARE_VAR(__ARRAY_OF_INT_10,LEVELS)
  CTU COUNTED;
  __DECLARE_VAR(GRID,AREA)
  __DECLARE_VAR(ROUND,WHEEL)
} TANK;
__DECLARE_GLOBAL(STRING,CONFIG0,LABEL)
";

    #[test]
    fn types_of_members_and_global_variables_are_found_behind_their_names() {
        let mut declared = Declared::default();
        declared.read(HEADER);
        for (path, of) in [
            ("LEVELS", Some("INT[10]")),
            ("COUNTED.STEPS", Some("INT[10]")),
            ("AREA", Some("REAL[2][3]")),
            ("COUNTED", Some("CTU")),
            ("WHEEL", Some("ROUND")),
            ("STEPS", None),
            ("LEVELS.STEPS", None),
        ] {
            assert_eq!(declared.member("TANK", path).as_deref(), of, "{path}");
        }
        assert_eq!(declared.global("CONFIG0__LABEL").as_deref(), Some("STRING"));
        assert_eq!(declared.global("CONFIG0__NONE"), None);
    }
}
