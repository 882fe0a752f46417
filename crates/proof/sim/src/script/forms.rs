//! How the value of a field stands in a scenario file: one description reads and writes it.

use std::fmt::Write;

use super::End;
use super::entry::Entry;
use super::places::Names;

/// Longest span in a scenario, milliseconds.
const LONGEST: f64 = 1e10;

/// The form of a field whose value is a `T`.
pub(super) trait Form<T> {
    /// The value of `key`. What is wrong with it is noted, and then any value will do: the scenario is refused.
    fn read(&self, entry: &mut Entry<'_, '_>, names: &Names<'_>, key: &'static str) -> T;

    /// Writes `key = value`, or nothing if that is read as `value`, too.
    fn write(&self, names: &Names<'_>, key: &str, value: T, to: &mut Vec<String>);
}

/// `text` as a basic string of TOML: everything but quotes, backslashes and control characters is itself.
pub(super) fn quoted(text: &str) -> String {
    let mut written = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            c if c.is_ascii_control() => {
                let _ = write!(written, "\\u{:04X}", u32::from(c));
            }
            c => written.push(c),
        }
    }
    written.push('"');
    written
}

/// Written only if it is true.
pub(super) struct Truth;

impl Form<bool> for Truth {
    fn read(&self, entry: &mut Entry<'_, '_>, _: &Names<'_>, key: &'static str) -> bool {
        entry.truth(key)
    }

    fn write(&self, _: &Names<'_>, key: &str, value: bool, to: &mut Vec<String>) {
        to.extend(value.then(|| format!("{key} = true")));
    }
}

/// A number, in the file's unit.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) is_whole: bool,
    /// So many of the value's units are one of the file's.
    scale: f64,
    /// What it is if it is left out.
    pub(super) otherwise: Option<f64>,
}

/// A span in milliseconds; nanoseconds as a value.
pub(super) const SPAN: Number = number(0.0, LONGEST).scaled(1e6);
pub(super) const SHARE: Number = number(0.0, 1.0);

pub(super) const fn number(least: f64, most: f64) -> Number {
    Number {
        least,
        most,
        is_whole: false,
        scale: 1.0,
        otherwise: None,
    }
}

pub(super) const fn whole(least: u64, most: u64) -> Number {
    Number {
        is_whole: true,
        ..number(least as f64, most as f64)
    }
}

impl Number {
    pub(super) const fn scaled(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    pub(super) const fn or(self, otherwise: f64) -> Self {
        Self {
            otherwise: Some(otherwise),
            ..self
        }
    }
}

/// What a [`Number`] in a file becomes.
pub(super) trait Numeric {
    fn of(number: f64) -> Self;
    fn number(self) -> f64;
}

macro_rules! numeric {
    ($($type:ty),*) => {$(
        impl Numeric for $type {
            fn of(number: f64) -> Self {
                number.round() as Self
            }

            fn number(self) -> f64 {
                self as f64
            }
        }
    )*};
}

numeric!(u8, u32, u64, usize, i64);

impl Numeric for f64 {
    fn of(number: f64) -> Self {
        number
    }

    fn number(self) -> f64 {
        self
    }
}

impl<T: Numeric> Form<T> for Number {
    fn read(&self, entry: &mut Entry<'_, '_>, _: &Names<'_>, key: &'static str) -> T {
        T::of(entry.number(key, self) * self.scale)
    }

    fn write(&self, _: &Names<'_>, key: &str, value: T, to: &mut Vec<String>) {
        let number = value.number() / self.scale;
        if self.otherwise != Some(number) {
            to.push(format!("{key} = {number}"));
        }
    }
}

/// The name of one of those things of the configuration.
pub(super) struct Name(pub(super) for<'a> fn(&'a Names<'_>) -> &'a [&'a str]);

impl Form<Option<usize>> for Name {
    fn read(
        &self,
        entry: &mut Entry<'_, '_>,
        names: &Names<'_>,
        key: &'static str,
    ) -> Option<usize> {
        entry.named(key, (self.0)(names))
    }

    fn write(&self, names: &Names<'_>, key: &str, at: Option<usize>, to: &mut Vec<String>) {
        to.extend(at.map(|at| format!("{key} = {}", quoted((self.0)(names)[at]))));
    }
}

impl Form<usize> for Name {
    fn read(&self, entry: &mut Entry<'_, '_>, names: &Names<'_>, key: &'static str) -> usize {
        entry.one_of(key, (self.0)(names))
    }

    fn write(&self, names: &Names<'_>, key: &str, at: usize, to: &mut Vec<String>) {
        self.write(names, key, Some(at), to);
    }
}

/// The name of a node or a witness.
pub(super) struct EndName;

const END: Name = Name(|names| &names.ends);

impl Form<Option<End>> for EndName {
    fn read(&self, entry: &mut Entry<'_, '_>, names: &Names<'_>, key: &'static str) -> Option<End> {
        let at: Option<usize> = END.read(entry, names, key);
        at.map(|at| names.end(at))
    }

    fn write(&self, names: &Names<'_>, key: &str, end: Option<End>, to: &mut Vec<String>) {
        END.write(names, key, end.map(|end| names.at(end)), to);
    }
}

impl Form<End> for EndName {
    fn read(&self, entry: &mut Entry<'_, '_>, names: &Names<'_>, key: &'static str) -> End {
        names.end(END.read(entry, names, key))
    }

    fn write(&self, names: &Names<'_>, key: &str, end: End, to: &mut Vec<String>) {
        self.write(names, key, Some(end), to);
    }
}

/// A word for a value.
pub(super) struct Word<T: 'static> {
    pub(super) words: &'static [(&'static str, T)],
    /// What it is if it is left out.
    pub(super) otherwise: Option<T>,
}

impl<T: Copy + PartialEq> Form<T> for Word<T> {
    fn read(&self, entry: &mut Entry<'_, '_>, _: &Names<'_>, key: &'static str) -> T {
        match self.otherwise {
            Some(otherwise) if entry.item(key).is_none() => otherwise,
            _ => {
                let words: Vec<_> = self.words.iter().map(|(word, _)| *word).collect();
                self.words[entry.one_of(key, &words)].1
            }
        }
    }

    fn write(&self, _: &Names<'_>, key: &str, value: T, to: &mut Vec<String>) {
        let word = self.words.iter().find(|(_, it)| *it == value);
        if let Some((word, _)) = word.filter(|_| self.otherwise != Some(value)) {
            to.push(format!("{key} = \"{word}\""));
        }
    }
}
