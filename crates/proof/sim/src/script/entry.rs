//! One table of a scenario file: its fields, taken one by one, each checked.

use toml_edit::{Item, TableLike};

use super::forms::Number;
use super::scenario::Reader;

/// A table while its fields are taken.
pub(super) struct Entry<'a, 't> {
    pub(super) reader: &'a mut Reader<'t>,
    table: &'a dyn TableLike,
    line: usize,
    /// What was asked for, whether it is there or not.
    taken: Vec<&'static str>,
}

impl<'a, 't> Entry<'a, 't> {
    pub(super) fn new(reader: &'a mut Reader<'t>, table: &'a dyn TableLike, line: usize) -> Self {
        Self {
            reader,
            table,
            line,
            taken: Vec::new(),
        }
    }

    /// The line of `key`, or of the table without it.
    pub(super) fn line_of(&self, key: &str) -> usize {
        self.table
            .get(key)
            .map_or(self.line, |item| self.reader.line(item))
    }

    pub(super) fn wrong(&mut self, key: &str, what: impl Into<String>) {
        let line = self.line_of(key);
        self.reader.wrong(line, what);
    }

    /// Refuses fields for which nobody has asked.
    pub(super) fn nothing_else(&mut self) {
        let known = self.taken.join(", ");
        for (key, item) in self.table.iter() {
            if !self.taken.contains(&key) {
                let line = self.reader.line(item);
                let what = format!("there is no field {key:?} here; there are {known}");
                self.reader.wrong(line, what);
            }
        }
    }

    pub(super) fn item(&mut self, key: &'static str) -> Option<&'a Item> {
        if !self.taken.contains(&key) {
            self.taken.push(key);
        }
        self.table.get(key)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        let text = self.item(key)?.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong(key, format!("{key} must be a text in quotes"));
        }
        text
    }

    pub(super) fn truth(&mut self, key: &'static str) -> bool {
        let Some(item) = self.item(key) else {
            return false;
        };
        item.as_bool().unwrap_or_else(|| {
            self.wrong(key, format!("{key} must be true or false"));
            false
        })
    }

    /// A number in the file's unit, such as `form` permits.
    pub(super) fn number(&mut self, key: &'static str, form: &Number) -> f64 {
        let Number { least, most, .. } = *form;
        let given = self.item(key).map(|item| {
            item.as_float()
                .or_else(|| item.as_integer().map(|number| number as f64))
        });
        let what = match (given, form.otherwise) {
            (None, Some(otherwise)) => return otherwise,
            (None, None) => format!("this kind of fault needs {key}"),
            (Some(Some(number)), _) if !(least..=most).contains(&number) => {
                format!("{key} must be a number from {least} to {most}, not {number}")
            }
            (Some(Some(number)), _) if form.is_whole && number.fract() != 0.0 => {
                format!("{key} must be a whole number, not {number}")
            }
            (Some(Some(number)), _) => return number,
            (Some(None), _) => format!("{key} must be a number from {least} to {most}"),
        };
        self.wrong(key, what);
        form.otherwise.unwrap_or(least)
    }

    /// The position of the thing that `key` names, if it names one.
    pub(super) fn named(&mut self, key: &'static str, names: &[&str]) -> Option<usize> {
        let name = self.text(key)?;
        let at = names.iter().position(|known| *known == name);
        if at.is_none() {
            let known = names.join(", ");
            self.wrong(
                key,
                format!("no {key} is called {name:?}; there are {known}"),
            );
        }
        at
    }

    /// As [`named`](Self::named), of a field that must be there.
    pub(super) fn one_of(&mut self, key: &'static str, names: &[&str]) -> usize {
        if self.item(key).is_none() {
            let known = names.join(", ");
            self.wrong(
                key,
                format!("this kind of fault needs {key}: one of {known}"),
            );
        }
        self.named(key, names).unwrap_or_default()
    }
}
