//! What a file of source names: its paths that begin inside its crate, whether they stand behind `use` or in an
//! expression, spelt out, and what it re-exports. Tests do not count.

use std::str::FromStr;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Names from the root of a crate down.
pub type Path = Vec<String>;

/// What a module makes of a path: it names it, and behind `use` it has it under a name of its own.
#[derive(Debug)]
pub struct Named {
    /// The module in which the path stands.
    pub module: Path,
    /// From the root of the crate; what is taken without its name has `*` for it.
    pub path: Path,
    /// What it is called in the module from then on.
    pub alias: Option<String>,
}

/// Everything that the file of `module` with this text names.
pub fn named_in(text: &str, module: &[String]) -> Vec<Named> {
    let tokens = TokenStream::from_str(text).expect("a file of source");
    let mut reader = Reader {
        module: module.to_vec(),
        named: Vec::new(),
    };
    reader.read(tokens);
    reader.named
}

struct Reader {
    module: Path,
    named: Vec<Named>,
}

impl Reader {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            at += match rest {
                [TokenTree::Punct(hash), TokenTree::Group(attribute), ..]
                    if hash.as_char() == '#' =>
                {
                    let item = if is_of_tests(attribute.stream()) {
                        item(&rest[2..])
                    } else {
                        0
                    };
                    2 + item
                }
                [
                    TokenTree::Ident(word),
                    TokenTree::Ident(name),
                    TokenTree::Group(body),
                    ..,
                ] if word == "mod" => {
                    self.module.push(name.to_string());
                    self.read(body.stream());
                    self.module.pop();
                    3
                }
                [TokenTree::Ident(word), ..] if word == "use" => {
                    1 + self.tree(&rest[1..], &Path::new(), true)
                }
                [TokenTree::Ident(_), ..] => self.tree(rest, &Path::new(), false).max(1),
                [TokenTree::Group(group), ..] => {
                    self.read(group.stream());
                    1
                }
                // What follows is no first name of a path.
                [
                    TokenTree::Punct(_),
                    TokenTree::Punct(_),
                    TokenTree::Ident(_),
                    ..,
                ] if is_colons(rest) => 3,
                _ => 1,
            };
        }
    }

    /// Takes the paths that begin with `before` and go on here; returns how many tokens they take.
    fn tree(&mut self, tokens: &[TokenTree], before: &[String], is_use: bool) -> usize {
        let (mut path, mut at) = (before.to_vec(), 0);
        loop {
            match &tokens[at..] {
                [TokenTree::Ident(name), ..] => {
                    path.push(name.to_string());
                    at += 1;
                }
                [TokenTree::Punct(star), ..] if is_use && star.as_char() == '*' => {
                    path.push("*".to_owned());
                    at += 1;
                }
                [TokenTree::Group(list), ..] if is_use && list.delimiter() == Delimiter::Brace => {
                    let list: Vec<_> = list.stream().into_iter().collect();
                    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == ',');
                    for one in list.split(is_comma).filter(|one| !one.is_empty()) {
                        self.tree(one, &path, true);
                    }
                    return at + 1;
                }
                _ => break,
            }
            if !is_colons(&tokens[at..]) {
                break;
            }
            at += 2;
        }
        let renamed = match &tokens[at..] {
            [TokenTree::Ident(word), TokenTree::Ident(name), ..] if is_use && word == "as" => {
                Some(name.to_string())
            }
            _ => None,
        };
        self.note(path, renamed, is_use);
        at
    }

    fn note(&mut self, mut path: Path, renamed: Option<String>, is_use: bool) {
        if is_use && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let alias = renamed.or_else(|| path.last().cloned()).filter(|_| is_use);
        let known = path
            .iter()
            .take_while(|name| ["crate", "self", "super"].contains(&name.as_str()));
        let known = known.count();
        if path.len() == known || known == 0 && !is_use {
            return;
        }
        // A path that begins with another name begins in the module, or outside the crate, where nothing is found.
        let mut from = self.module.clone();
        for name in path.drain(..known) {
            match name.as_str() {
                "crate" => from.clear(),
                "super" => drop(from.pop()),
                _ => {}
            }
        }
        from.append(&mut path);
        let module = self.module.clone();
        self.named.push(Named {
            module,
            path: from,
            alias,
        });
    }
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(first), TokenTree::Punct(second), ..] = tokens else {
        return false;
    };
    let joint = first.spacing() == Spacing::Joint;
    joint && first.as_char() == ':' && second.as_char() == ':'
}

/// Whether an attribute, without its `#`, leaves what it stands before to tests.
fn is_of_tests(attribute: TokenStream) -> bool {
    let text = attribute.to_string().replace(' ', "");
    text.starts_with("cfg(") && text.contains("test") && !text.contains("not(test)")
}

/// How many tokens the item takes that begins here.
fn item(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(it) => it.as_char() == ';',
        TokenTree::Group(body) => body.delimiter() == Delimiter::Brace,
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    };
    tokens
        .iter()
        .position(ends)
        .map_or(tokens.len(), |end| end + 1)
}
