//! Which files of a project are compiled.

use std::fs;
use std::path::Path;

use super::BuildFault;
use super::tasks::{self, Task};

/// Files of runtimes, whose place is taken here.
const RUNTIMES: [(&str, &str); 5] = [
    (
        "plc_main.c",
        "Beremiz's runtime, whose place Bumpless takes",
    ),
    ("plc_debugger.c", "Beremiz's debugger"),
    ("plc_debug.c", "Beremiz's debugger"),
    ("debug.c", "OpenPLC's debugger"),
    ("main.c", "a runtime's, whose place Bumpless takes"),
];

/// The C files of a project.
#[derive(Debug)]
pub(super) struct Sources {
    pub compiled: Vec<String>,
    pub left_out: Vec<(String, &'static str)>,
    pub tasks: Vec<Task>,
}

impl Sources {
    pub fn find(project: &Path) -> Result<Self, BuildFault> {
        let entries = fs::read_dir(project).map_err(|error| {
            BuildFault::one(format!(
                "the folder {} cannot be read: {error}; give the folder with the C files that the compiler of your \
                 editor has generated",
                project.display()
            ))
        })?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        let is = |name: &String, ends: &[&str]| {
            let ending = Path::new(name)
                .extension()
                .and_then(|ending| ending.to_str());
            ending.is_some_and(|ending| ends.contains(&ending))
        };
        if let Some(cpp) = names
            .iter()
            .find(|name| is(name, &["cpp", "cc", "cxx", "hpp"]))
        {
            let remedy = if cpp == "glueVars.cpp" {
                "it is C that OpenPLC 3 calls C++: rename it to glueVars.c"
            } else {
                "only the C of MATIEC can be built: choose that compiler in the editor"
            };
            return Err(BuildFault::one(format!(
                "{} is C++; {remedy}",
                project.join(cpp).display()
            )));
        }
        names.retain(|name| is(name, &["c"]));
        if names.is_empty() {
            return Err(BuildFault::one(format!(
                "the folder {} has no C file; give the folder with the C files that the compiler of your editor has \
                 generated (Config0.c, Res0.c, POUS.c, LOCATED_VARIABLES.h)",
                project.display()
            )));
        }
        Ok(Self::sort_out(project, names))
    }

    fn sort_out(project: &Path, names: Vec<String>) -> Self {
        let texts: Vec<String> = names
            .iter()
            .map(|name| {
                // What cannot be read the compiler names.
                let bytes = fs::read(project.join(name)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            })
            .collect();
        let (mut compiled, mut left_out) = (Vec::new(), Vec::new());
        let mut found = Vec::new();
        for (name, text) in names.into_iter().zip(&texts) {
            let runtime = RUNTIMES.iter().find(|(known, _)| *known == name);
            if let Some((_, why)) = runtime {
                left_out.push((name, *why));
            } else if texts.iter().any(|text| includes(text, &name)) {
                left_out.push((name, "another file includes it"));
            } else {
                found.extend(tasks::of(text));
                compiled.push(name);
            }
        }
        Self {
            compiled,
            left_out,
            tasks: found,
        }
    }
}

/// Whether a C file includes the one of this name.
fn includes(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let directive = line.trim_start().strip_prefix('#');
        let rest = directive.and_then(|rest| rest.trim_start().strip_prefix("include"));
        rest.is_some_and(|rest| {
            rest.trim()
                .strip_prefix('"')
                .and_then(|rest| rest.split('"').next())
                == Some(name)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::includes;

    #[test]
    fn an_included_file_is_known_by_its_directive() {
        assert!(includes("int a;\n#include \"POUS.c\"\n", "POUS.c"));
        assert!(includes("  #  include \"POUS.c\" // all", "POUS.c"));
        assert!(!includes("// include \"POUS.c\"", "POUS.c"));
        assert!(!includes("#include \"MYPOUS.c\"", "POUS.c"));
    }
}
