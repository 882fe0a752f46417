//! What C++ of STruC++ has besides: variables that a debugger can force, references, classes that are made from others, and what
//! belongs to a version.

use std::collections::BTreeMap;

use super::StateVariable;
use super::dies::{Die, Dies};

/// Classes that hold an address.
const REFERENCES: [&str; 3] = ["IEC_REF_TO<", "IEC_REFERENCE_TO<", "IEC_Ptr<"];

/// Where everything is that programs have.
const CONFIGURATION: &str = "bumpless_configuration.";

/// Tables that the generated code and the library fill at the start.
const TABLES: [&str; 5] = [
    "locatedVars",
    "bumpless_before",
    "tasks_storage",
    "task_programs_storage",
    "resources_storage",
];

/// Where classes are described, by their names with those of what they lie in.
pub(super) struct Classes(BTreeMap<String, u64>);

impl Classes {
    pub fn of(dies: &Dies) -> Self {
        let described = dies.iter().filter(|(_, it)| {
            !it.is_declaration && matches!(&*it.tag, "class_type" | "structure_type")
        });
        Self(
            described
                .map(|(at, it)| (qualified(dies, it), *at))
                .collect(),
        )
    }

    /// The description of a type, which may be announced only; `None`: there is none.
    pub fn definition<'a>(&self, dies: &'a Dies, die: &'a Die) -> Option<&'a Die> {
        if !die.is_declaration {
            return Some(die);
        }
        dies.get(self.0.get(&qualified(dies, die))?)
    }
}

fn qualified(dies: &Dies, die: &Die) -> String {
    let mut name = die.name.clone().unwrap_or_default();
    let mut above = die.parent;
    while let Some(outer) = above.and_then(|at| dies.get(&at)) {
        if outer.tag != "compile_unit" {
            name = format!("{}::{name}", outer.name.as_deref().unwrap_or_default());
        }
        above = outer.parent;
    }
    name
}

/// The type of what is one value: `IECVar<T>` and what is made like it hold it beside one that a debugger puts in its place.
pub(super) fn value(dies: &Dies, die: &Die) -> Option<u64> {
    let children = || die.children.iter().filter_map(|at| dies.get(at));
    let member = |name: &str| children().find(|it| it.name.as_deref() == Some(name));
    member("forced_value_")?;
    member("value_")?.of
}

/// Whether it holds an address, which means nothing in another version.
pub(super) fn is_reference(die: &Die) -> bool {
    let name = die.name.as_deref().unwrap_or_default();
    REFERENCES.iter().any(|it| name.starts_with(it))
}

/// What the type of a variable begins with whose value lies in memory from the heap.
pub(super) const HEAP: &str = "heap";

/// Whether it holds memory from the heap by functions of the library: `std::string`. Others take it themselves.
pub(super) fn is_in_heap(die: &Die) -> bool {
    let name = die.name.as_deref().unwrap_or_default();
    name.starts_with("basic_string<")
}

/// Types of the classes that this one is made from, and where they lie in it.
pub(super) fn bases(dies: &Dies, die: &Die) -> Vec<(u64, u64)> {
    let children = die.children.iter().filter_map(|at| dies.get(at));
    let bases = children.filter(|it| it.tag == "inheritance");
    bases
        .filter_map(|it| Some((it.of?, it.member_at.unwrap_or_default())))
        .collect()
}

/// The variables of programs by the names that the project gives them, without what belongs to the version.
pub(super) fn of_programs(found: Vec<StateVariable>) -> Vec<StateVariable> {
    let named = found.into_iter().map(|it| StateVariable {
        name: match it.name.strip_prefix(CONFIGURATION) {
            Some(name) => name.to_owned(),
            None => it.name,
        },
        ..it
    });
    named
        .filter(|it| {
            let is_all = it.name == CONFIGURATION.trim_end_matches('.');
            let end = it.name.find(['[', '.']).unwrap_or(it.name.len());
            !is_all && !TABLES.contains(&&it.name[..end])
        })
        .collect()
}

/// Whether a symbol is a flag by which a global variable is made once: it is set before the state is the host's.
pub(super) fn is_guard(symbol: &str) -> bool {
    symbol.starts_with("_ZGV")
}
