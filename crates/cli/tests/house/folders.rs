//! Which files of a crate depend on which, through whatever re-exports, and so which stand in circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path as FilePath;

use super::paths::{Named, Path, named_in};

/// Through so many re-exports a name is followed at most.
const RE_EXPORTS: usize = 8;

/// The source of a crate.
pub struct Source {
    /// Every module that is a file, a folder or in braces.
    modules: BTreeSet<Path>,
    named: Vec<Named>,
    /// What a name in a module stands for.
    aliases: BTreeMap<(Path, String), Path>,
}

impl Source {
    /// Reads what lies below `src`.
    pub fn read(src: &FilePath) -> Self {
        let mut files = Vec::new();
        read_files(src, &Path::new(), &mut files);
        Self::of(&files)
    }

    /// The source with these files, each with the module that it is.
    pub fn of(files: &[(Path, String)]) -> Self {
        let named: Vec<_> = files
            .iter()
            .flat_map(|(module, text)| named_in(text, module))
            .collect();
        let mut modules: BTreeSet<Path> = files.iter().map(|(module, _)| module.clone()).collect();
        modules.extend(named.iter().map(|named| named.module.clone()));
        let folders: Vec<Path> = modules
            .iter()
            .flat_map(|it| (0..it.len()).map(|end| it[..end].to_vec()))
            .collect();
        modules.extend(folders);
        let aliases = named.iter().filter_map(|named| {
            let alias = named.alias.clone()?;
            Some(((named.module.clone(), alias), named.path.clone()))
        });
        let aliases = aliases.collect();
        Self {
            modules,
            named,
            aliases,
        }
    }

    /// The modules with others below them.
    pub fn folders(&self) -> BTreeSet<Path> {
        let above = self.modules.iter().filter_map(|module| module.split_last());
        above.map(|(_, above)| above.to_vec()).collect()
    }

    /// Every module of which a module takes all that it has: by that, nobody sees what depends on what.
    pub fn globs(&self) -> Vec<String> {
        let whole = self
            .named
            .iter()
            .filter(|named| self.find(&named.path).1 == ["*"]);
        whole
            .map(|named| format!("{} in {}", named.path.join("::"), named.module.join("::")))
            .collect()
    }

    /// By module below `folder`, on which of its neighbours it depends.
    pub fn dependencies(&self, folder: &[String]) -> BTreeMap<String, BTreeSet<String>> {
        let below = |module: &Path| Some(module.strip_prefix(folder)?.first()?.clone());
        let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for named in &self.named {
            let Some(from) = below(&named.module) else {
                continue;
            };
            let on = found.entry(from.clone()).or_default();
            on.extend(below(&self.find(&named.path).0).filter(|to| *to != from));
        }
        found
    }

    /// The module in which that is defined to which this path leads, and what is left of the path. Of what is outside,
    /// all is left behind the module that names it.
    fn find(&self, path: &[String]) -> (Path, Path) {
        let mut path = path.to_vec();
        // A name from outside may lead to itself, longer each time.
        for _ in 0..RE_EXPORTS {
            let (module, rest) = self.split(&path);
            let alias = rest.first().map(|name| (module.to_vec(), name.clone()));
            let target = alias.and_then(|alias| self.aliases.get(&alias));
            let whole = self.aliases.get(&(module.to_vec(), "*".to_owned()));
            path = match (target, whole.and_then(|whole| whole.split_last())) {
                (Some(target), _) => [target, &rest[1..]].concat(),
                (None, Some((_, whole))) if self.modules.contains(whole) && *module != *whole => {
                    [whole, rest].concat()
                }
                _ => break,
            };
        }
        let (module, rest) = self.split(&path);
        (module.to_vec(), rest.to_vec())
    }

    /// The last module on the path, and what is left of it.
    fn split<'a>(&self, path: &'a [String]) -> (&'a [String], &'a [String]) {
        let known = (0..=path.len()).rev();
        let known = known.map(|end| path.split_at(end));
        let mut known = known.filter(|(module, _)| self.modules.contains(*module));
        known.next().unwrap_or((&[], path))
    }
}

/// The files below `folder`, the module `module`, but those of tests.
fn read_files(folder: &FilePath, module: &Path, files: &mut Vec<(Path, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name == "tests" || name == "every_order" {
            continue;
        }
        let mut inside = module.clone();
        if !["mod", "lib", "main"].contains(&name.as_str()) {
            inside.push(name);
        }
        if path.is_dir() {
            read_files(&path, &inside, files);
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push((inside, fs::read_to_string(&path).expect("a file of source")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What depends on what directly below the root, in the crate with these files.
    fn dependencies(files: &[(&str, &str)]) -> Vec<String> {
        let module = |name: &str| {
            name.split('/')
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| (module(name), (*text).to_owned()))
            .collect();
        let found = Source::of(&files).dependencies(&[]);
        let each = found
            .iter()
            .flat_map(|(from, on)| on.iter().map(move |to| format!("{from} {to}")));
        each.collect()
    }

    #[test]
    fn what_is_named_through_the_hub_is_found_where_it_is_defined() {
        let hub = (
            "",
            "mod a; mod b; mod c; pub use self::b::deep::Thing as Other; pub use c::{self as see, One};",
        );
        let rest = [("b/deep", ""), ("c", "")];
        let with = |text| dependencies(&[&[hub, ("a", text)], &rest[..]].concat());
        assert_eq!(with("use crate::Other;"), ["a b"]);
        assert_eq!(with("use super::{see::Two, One};"), ["a c"]);
        assert_eq!(with("use crate::{b::{deep::{Thing}}, c};"), ["a b", "a c"]);
        assert_eq!(
            with("fn f() -> super::Other { vec![crate::One::new()] }"),
            ["a b", "a c"]
        );
        assert_eq!(with("mod inner { use super::super::Other; }"), ["a b"]);
        assert_eq!(
            with("// crate::Other\n fn f() { \"crate::One\"; std::c::One; }"),
            [""; 0]
        );
    }

    #[test]
    fn only_what_is_left_to_tests_does_not_count() {
        let with = |text| dependencies(&[("", "mod a; mod b;"), ("a", text), ("b", "")]);
        assert_eq!(
            with("#[cfg(test)]\nmod tests { use super::super::b::One; }"),
            [""; 0]
        );
        assert_eq!(
            with("#[cfg(test)]\nmod tests;\nuse crate::b::One;"),
            ["a b"]
        );
        assert_eq!(with("#[cfg(not(test))]\nuse crate::b::One;"), ["a b"]);
    }

    #[test]
    fn a_module_that_is_taken_whole_is_found_and_an_enum_is_not() {
        let module = |name: &str| vec![name.to_owned()];
        let globs = |text: &str| {
            let files = [
                (Path::new(), "mod a; mod b;".to_owned()),
                (module("a"), text.to_owned()),
                (module("b"), String::new()),
            ];
            Source::of(&files).globs().len()
        };
        assert_eq!(
            globs("use super::*;") + globs("use crate::b::*;") + globs("use crate::{b::{*}};"),
            3
        );
        assert_eq!(globs("use crate::b::Kind::*; use std::fmt::*;"), 0);
        assert_eq!(globs("#[cfg(test)] mod tests { use super::*; }"), 0);
    }
}
