//! How long files and functions are.

use std::path::{Path, PathBuf};

/// Most lines of a file, and of a function from its first line to its last.
pub const FILE_MAX: usize = 400;
const FUNCTION_MAX: usize = 60;

/// Adds all files of Rust in `folder`.
pub fn files_in(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => files_in(&path, files),
            Some(ending) if ending == "rs" => files.push(path),
            _ => {}
        }
    }
}

/// Functions that are longer than may be, and how long. As the formatter writes them: one ends with the first brace that stands as
/// far from the margin as its beginning.
pub fn long_functions(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let all = (0..lines.len()).filter_map(move |first| {
        let (margin, name) = begins(lines[first])?;
        let last = lines[first..].iter().position(|line| {
            let is_end = line.strip_prefix(margin) == Some("}");
            is_end || line.trim_end().ends_with(";") && *line == lines[first]
        });
        Some((name, last? + 1))
    });
    all.filter(|(_, lines)| *lines > FUNCTION_MAX)
}

/// Where a function that begins in this line stands, and its name.
fn begins(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start();
    let (before, rest) = text.split_once("fn ")?;
    let words = before.split_whitespace();
    let is_head = |word: &str| {
        word.starts_with("pub") || ["const", "unsafe", "async", "extern", "in"].contains(&word)
    };
    let is_function = words
        .clone()
        .all(|word| is_head(word) || word.ends_with(')'));
    let name = rest.split(['(', '<']).next()?;
    is_function.then(|| (&line[..line.len() - text.len()], name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_as_long_as_from_its_first_line_to_its_last() {
        let body = |lines: usize| "    x();\n".repeat(lines);
        let text = format!(
            "pub(super) const fn short() {{\n{}}}\nfn declared();\nimpl A {{\n    fn long<T>(\n        it: T,\n    ) {{\n{}    }}\n}}\n",
            body(58),
            body(58)
        );
        let found: Vec<_> = long_functions(&text).collect();
        assert_eq!(found, [("long", 62)]);
        assert_eq!(begins("    let f: fn (u8) = g;"), None);
    }
}
