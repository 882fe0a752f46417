//! Which files of a project are compiled.

use std::fs;
use std::path::Path;

use super::tasks::{self, Task};
use super::{BuildFault, strucpp};

/// Files of runtimes, whose place is taken here.
const RUNTIMES: [(&str, &str); 6] = [
    ("generated_debug.cpp", "STruC++'s debugger"),
    (
        "plc_main.c",
        "Beremiz's runtime, whose place Bumpless takes",
    ),
    ("plc_debugger.c", "Beremiz's debugger"),
    ("plc_debug.c", "Beremiz's debugger"),
    ("debug.c", "OpenPLC's debugger"),
    ("main.c", "a runtime's, whose place Bumpless takes"),
];

/// Where the editor puts what a project brings in C and C++ besides.
const LIBRARIES: &str = "libraries";

/// The C and C++ files of a project.
#[derive(Debug)]
pub(super) struct Sources {
    pub compiled: Vec<String>,
    pub left_out: Vec<(String, &'static str)>,
    pub tasks: Vec<Task>,
    /// What STruC++ declares, if it has generated them; else MATIEC has.
    pub strucpp: Option<strucpp::Project>,
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
        let strucpp = strucpp::Project::find(project)?;
        if strucpp.is_none() {
            refuse_cpp(project, &names)?;
        }
        let compiled = match strucpp {
            Some(_) => ["c", "cpp", "cc", "cxx"].as_slice(),
            None => &["c"],
        };
        names.retain(|name| ends(name, compiled));
        if names.is_empty() {
            let what = match strucpp {
                Some(_) => {
                    "no C++ file beside generated.hpp; give the folder with all that STruC++ has generated"
                }
                None => "",
            };
            if !what.is_empty() {
                return Err(BuildFault::one(format!(
                    "the folder {} has {what}",
                    project.display()
                )));
            }
            return Err(BuildFault::one(format!(
                "the folder {} has no C file; give the folder with the C files that the compiler of your editor has \
                 generated (Config0.c, Res0.c, POUS.c, LOCATED_VARIABLES.h)",
                project.display()
            )));
        }
        let mut sources = Self::sort_out(project, names, strucpp);
        if sources.strucpp.is_some() && project.join(LIBRARIES).is_dir() {
            let why = "libraries in C and C++ are not built: put the files that the program needs into the folder itself";
            sources.left_out.push((LIBRARIES.into(), why));
        }
        Ok(sources)
    }

    fn sort_out(project: &Path, names: Vec<String>, strucpp: Option<strucpp::Project>) -> Self {
        let texts: Vec<String> = names
            .iter()
            .map(|name| {
                // What cannot be read the compiler names.
                let bytes = fs::read(project.join(name)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            })
            .collect();
        let (mut compiled, mut left_out) = (Vec::new(), Vec::new());
        let mut tasks = match strucpp {
            Some(_) => tasks::of_strucpp(&texts),
            None => Vec::new(),
        };
        for (name, text) in names.into_iter().zip(&texts) {
            let runtime = RUNTIMES.iter().find(|(known, _)| *known == name);
            if let Some((_, why)) = runtime {
                left_out.push((name, *why));
            } else if texts.iter().any(|text| includes(text, &name)) {
                left_out.push((name, "another file includes it"));
            } else {
                if strucpp.is_none() {
                    tasks.extend(tasks::of_matiec(text));
                }
                compiled.push(name);
            }
        }
        Self {
            compiled,
            left_out,
            tasks,
            strucpp,
        }
    }
}

/// Whether the file has one of these endings.
fn ends(name: &str, endings: &[&str]) -> bool {
    let ending = Path::new(name).extension().and_then(|it| it.to_str());
    ending.is_some_and(|ending| endings.contains(&ending))
}

/// C++ that nobody knows how to call.
fn refuse_cpp(project: &Path, names: &[String]) -> Result<(), BuildFault> {
    let found = names
        .iter()
        .find(|name| ends(name, &["cpp", "cc", "cxx", "hpp"]));
    let Some(cpp) = found else { return Ok(()) };
    let remedy = match cpp.as_str() {
        "glueVars.cpp" => "it is C that OpenPLC 3 calls C++: rename it to glueVars.c".to_owned(),
        _ => format!(
            "the folder has no {}, by which a project of STruC++ is known: generate it with that compiler, or the C of \
             MATIEC",
            strucpp::HEADER
        ),
    };
    Err(BuildFault::one(format!(
        "{} is C++; {remedy}",
        project.join(cpp).display()
    )))
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
