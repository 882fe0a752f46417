//! The lines of `generated.hpp` that count.

use std::collections::{BTreeMap, BTreeSet};

/// What the header declares.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub configurations: Vec<String>,
    /// Name, address and class of each located variable; the class is empty for a global one.
    pub located: Vec<(String, String, String)>,
    /// By class and name.
    pub types: BTreeMap<(String, String), String>,
    /// Global variables that lie in a `GlobalVar`.
    pub boxed: BTreeSet<String>,
}

impl Declared {
    pub fn parse(text: &str) -> Self {
        let (mut declared, mut class) = (Self::default(), String::new());
        for line in text.lines() {
            if line.starts_with("};") {
                class.clear();
            } else if let Some((name, base)) = class_of(line) {
                class = name.to_owned();
                if base.contains("ConfigurationInstance") {
                    declared.configurations.push(class.clone());
                }
            } else if let Some(found) = located(line) {
                declared.located.push(found);
            } else if let Some(Declaration { of, name, is_boxed }) = variable(line.trim()) {
                let key = (class.clone(), name.to_owned());
                if is_boxed {
                    declared.boxed.insert(name.to_owned());
                }
                declared.types.insert(key, of.to_owned());
            }
        }
        declared
    }

    /// Programs with addresses that are not there once: the generator has one row for each variable, whatever the number of
    /// instances.
    pub fn uncounted(&self, configuration: &str, place: &str) -> Vec<String> {
        let programs: BTreeSet<&str> = self
            .located
            .iter()
            .map(|(_, _, class)| class.as_str())
            .filter(|class| !class.is_empty())
            .collect();
        let instances = |program: &str| {
            let members = self
                .types
                .iter()
                .filter(|((class, _), _)| class == configuration);
            members.filter(|(_, of)| of.as_str() == program).count()
        };
        let problem = |program: &str| match instances(program) {
            1 => None,
            0 => Some(format!(
                "{place}: {program} has variables at addresses, and no task runs it: give it to a task, or take it out of the \
                 project"
            )),
            count => Some(format!(
                "{place}: {program} has variables at addresses and {count} instances, which cannot share them: declare these \
                 variables in VAR_GLOBAL of the configuration"
            )),
        };
        programs.into_iter().filter_map(problem).collect()
    }
}

/// `class NAME : public BASE {` or `struct NAME {`; a class that is only announced has no body.
fn class_of(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end();
    let rest = line
        .strip_prefix("class ")
        .or_else(|| line.strip_prefix("struct "))?;
    let rest = rest.strip_suffix('{')?;
    let (name, base) = rest.split_once(':').unwrap_or((rest, ""));
    let name = name.trim();
    Some((name.strip_suffix(" final").unwrap_or(name), base))
}

/// `// Forward: NAME AT ADDRESS in CLASS`, or `in configuration`.
fn located(line: &str) -> Option<(String, String, String)> {
    let rest = line.trim().strip_prefix("// Forward: ")?;
    let (name, rest) = rest.split_once(" AT ")?;
    let (address, scope) = rest.split_once(" in ")?;
    let class = if scope == "configuration" { "" } else { scope };
    Some((name.into(), address.into(), class.into()))
}

/// The declaration of a variable.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declaration<'a> {
    pub of: &'a str,
    pub name: &'a str,
    /// Whether it lies in a `GlobalVar`.
    pub is_boxed: bool,
}

/// `IEC_INT NAME;` in a class, or `inline GlobalVar<IEC_INT> NAME{0};`.
pub(super) fn variable(line: &str) -> Option<Declaration<'_>> {
    let mut line = line;
    for word in ["const ", "inline ", "const "] {
        line = line.strip_prefix(word).unwrap_or(line);
    }
    let (declared, _) = line.split_at(line.find([';', '{', '='])?);
    let (of, name) = declared.trim().rsplit_once(' ')?;
    let boxed = of
        .strip_prefix("GlobalVar<")
        .and_then(|it| it.strip_suffix('>'));
    let of = boxed.unwrap_or(of);
    Some(Declaration {
        of: of.strip_prefix("IEC_").unwrap_or(of),
        name,
        is_boxed: boxed.is_some(),
    })
}
