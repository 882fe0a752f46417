//! What a linker says is missing.

use std::collections::BTreeSet;

/// Symbols that a linker says nobody defines.
pub(super) fn references(said: &str) -> Vec<String> {
    let names: BTreeSet<&str> = said
        .lines()
        .filter_map(|line| {
            let (_, rest) = line
                .split_once("undefined reference to ")
                .or_else(|| line.split_once("undefined symbol: "))?;
            Some(rest.trim_matches(|c: char| "`'\"".contains(c) || c.is_whitespace()))
        })
        .collect();
    names
        .into_iter()
        .map(|name| {
            format!(
                "the symbol {name} is missing: the program uses it, and no file of the folder defines it; add the file \
                 that the editor generates for it"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::references;

    #[test]
    fn missing_symbols_are_named_once_each() {
        let said = "a.o: in function `f':\nx.c:(.text+0x1): undefined reference to `OSCAT_X'\n\
                    x.c:(.text+0x9): undefined reference to `OSCAT_X'\nld.lld: error: undefined symbol: other\n";
        let named = references(said);
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(named[0].contains("OSCAT_X") && named[1].contains("other"));
    }
}
