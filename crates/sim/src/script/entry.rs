//! One table of a scenario file: its fields, taken one by one, each checked.

use toml_edit::{Item, TableLike};

use super::scenario::Reader;

const MS: f64 = 1e6;
/// Longest span in a scenario, milliseconds.
const LONGEST: f64 = 1e10;

/// A table while its fields are taken.
pub(super) struct Entry<'a> {
    table: &'a dyn TableLike,
    line: usize,
}

impl<'a> Entry<'a> {
    pub(super) fn new(table: &'a dyn TableLike, line: usize) -> Self {
        Self { table, line }
    }

    /// The line of `key`, or of the table without it.
    pub(super) fn line_of(&self, reader: &Reader<'_>, key: &str) -> usize {
        self.table
            .get(key)
            .map_or(self.line, |item| reader.line(item))
    }

    pub(super) fn wrong(&self, reader: &mut Reader<'_>, key: &str, what: String) {
        let line = self.line_of(reader, key);
        reader.wrong(line, what);
    }

    /// Refuses fields that are not among `known`.
    pub(super) fn only(&self, reader: &mut Reader<'_>, known: &[&str]) {
        for (key, item) in self.table.iter() {
            if !known.contains(&key) {
                let line = reader.line(item);
                let what = format!(
                    "there is no field {key:?} here; there are {}",
                    known.join(", ")
                );
                reader.wrong(line, what);
            }
        }
    }

    pub(super) fn item(&self, key: &str) -> Option<&'a Item> {
        self.table.get(key)
    }

    pub(super) fn text(&self, reader: &mut Reader<'_>, key: &str) -> Option<String> {
        let item = self.item(key)?;
        let text = item.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong(reader, key, format!("{key} must be a text in quotes"));
        }
        text
    }

    pub(super) fn truth(&self, reader: &mut Reader<'_>, key: &str) -> bool {
        let Some(item) = self.item(key) else {
            return false;
        };
        item.as_bool().unwrap_or_else(|| {
            self.wrong(reader, key, format!("{key} must be true or false"));
            false
        })
    }

    /// A number from `least` to `most`, if the field is there.
    pub(super) fn number(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        least: f64,
        most: f64,
    ) -> Option<f64> {
        let item = self.item(key)?;
        let number = item
            .as_float()
            .or_else(|| item.as_integer().map(|number| number as f64));
        let fits = number.filter(|number| (least..=most).contains(number));
        if fits.is_none() {
            let given = number.map_or(String::new(), |number| format!(", not {number}"));
            let what = format!("{key} must be a number from {least} to {most}{given}");
            self.wrong(reader, key, what);
        }
        fits
    }

    /// As [`number`](Self::number), of a field that must be there.
    pub(super) fn needed(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        least: f64,
        most: f64,
    ) -> Option<f64> {
        if self.item(key).is_none() {
            self.wrong(reader, key, format!("this kind of fault needs {key}"));
        }
        self.number(reader, key, least, most)
    }

    /// A whole number from `least` to `most`, of a field that must be there.
    pub(super) fn whole(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        least: u64,
        most: u64,
    ) -> Option<u64> {
        let number = self.needed(reader, key, least as f64, most as f64)?;
        if number.fract() != 0.0 {
            self.wrong(
                reader,
                key,
                format!("{key} must be a whole number, not {number}"),
            );
            return None;
        }
        Some(number as u64)
    }

    /// As [`share`](Self::share), of a field that may be left out.
    pub(super) fn share_or(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        otherwise: f64,
    ) -> Option<f64> {
        match self.item(key) {
            Some(_) => self.share(reader, key),
            None => Some(otherwise),
        }
    }

    pub(super) fn share(&self, reader: &mut Reader<'_>, key: &str) -> Option<f64> {
        self.needed(reader, key, 0.0, 1.0)
    }

    /// A span in milliseconds, in nanoseconds.
    pub(super) fn span(&self, reader: &mut Reader<'_>, key: &str) -> Option<u64> {
        self.needed(reader, key, 0.0, LONGEST)
            .map(|ms| (ms * MS).round() as u64)
    }

    /// The position of the thing that `key` names.
    pub(super) fn named(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        names: &[&str],
        needed: bool,
    ) -> Option<usize> {
        if self.item(key).is_none() {
            if needed {
                let what = format!(
                    "this kind of fault needs {key}: one of {}",
                    names.join(", ")
                );
                self.wrong(reader, key, what);
            }
            return None;
        }
        let name = self.text(reader, key)?;
        let at = names.iter().position(|known| *known == name);
        if at.is_none() {
            let what = format!(
                "no {key} is called {name:?}; there are {}",
                names.join(", ")
            );
            self.wrong(reader, key, what);
        }
        at
    }
}
