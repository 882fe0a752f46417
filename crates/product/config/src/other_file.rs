//! What the product's other files share: their sections read, and a sample of them printed.

use std::sync::OnceLock;

use toml_edit::{Item, Table, TableLike};

use crate::file::entries;
use crate::reader::{Reader, TableReader};
use crate::section::{Presence, SectionInfo};

/// Reads the section `info`, which may stand once. An absent section reads as empty; anything but a table is reported to `reader`.
pub fn once<'a>(
    reader: &'a mut Reader,
    root: &'a dyn TableLike,
    info: &SectionInfo,
) -> TableReader<'a> {
    let item = root.get(info.path);
    let span = item.and_then(Item::span);
    let line = item.map_or(1, |_| reader.lines.of(span));
    let Some(table) = item.and_then(|item| item.as_table_like()) else {
        if item.is_some() {
            let right = format!(
                "write [{}] once in the file, with its fields below",
                info.path
            );
            reader.wrong_on(line, info.path.to_owned(), "is no table", right);
            // Its fields are not missing as well.
            reader.incomplete = true;
        }
        return TableReader::new(reader, empty(), info.path.to_owned(), line);
    };
    TableReader::new(reader, table, info.path.to_owned(), line)
}

fn empty() -> &'static dyn TableLike {
    static EMPTY: OnceLock<Table> = OnceLock::new();
    EMPTY.get_or_init(Table::new)
}

/// The sections `info` of a file, each read by `read`.
pub fn many<T>(
    reader: &mut Reader,
    root: &dyn TableLike,
    info: &SectionInfo,
    read: impl Fn(TableReader<'_>) -> T,
) -> Vec<T> {
    let tables = entries(reader, root, "", info);
    let mut all = Vec::with_capacity(tables.len());
    for (table, path, line) in tables {
        all.push(read(TableReader::new(reader, table, path, line)));
    }
    all
}

/// For a section the fields that a sample gives, once for each time that it stands there.
pub type Examples = &'static [&'static [(&'static str, &'static str)]];

/// A file in which every field is explained: `intro`, then each section with what `given` has for it.
pub fn sample(intro: &str, sections: &[&SectionInfo], given: impl Fn(&str) -> Examples) -> String {
    let mut out = intro.to_owned();
    for section in sections {
        for (i, fields) in given(section.path).iter().enumerate() {
            let about = (i == 0).then_some(section.about);
            out.push('\n');
            about.into_iter().for_each(|about| comment(&mut out, about));
            out.push_str(&section.header());
            out.push('\n');
            for field in section.fields {
                let value = fields.iter().find(|(key, _)| *key == field.key);
                if i == 0 {
                    comment(&mut out, field.about);
                }
                match (value, &field.presence) {
                    (Some((key, value)), _) => out.push_str(&format!("{key} = {value}\n")),
                    (None, Presence::Default(value)) if i == 0 => {
                        out.push_str(&format!("#{} = {value}\n", field.key));
                    }
                    (None, Presence::Computed(words)) if i == 0 => {
                        out.push_str(&format!("#{}: {words}\n", field.key));
                    }
                    _ => {}
                }
            }
        }
    }
    out
}

/// `text` in lines that are comments.
fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + word.len() > 98 {
            out.push_str(&line);
            out.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}
