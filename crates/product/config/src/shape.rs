//! What the value of a field must look like, and its conversion to the type used inside.

use bumpless_base::Processors;
use toml_edit::{Item, Value};

use crate::lines::Lines;

/// Says what a field accepts, after the word "give".
pub trait Describe: Sync {
    /// What is accepted, in words.
    fn accepts(&self) -> String;
}

/// Reads a field's value.
pub trait Shape: Describe {
    /// The type used inside.
    type Out;
    /// The value.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn read(&self, item: &Item, lines: &Lines) -> Result<Self::Out, Vec<Fault>>;
}

/// One thing that is wrong with a value.
pub struct Fault {
    /// The line, where it differs from the field's.
    pub line: Option<usize>,
    /// Path of the element below the field, such as `[2]` or `.A`; empty for the whole.
    pub element: String,
    /// What is wrong.
    pub wrong: String,
    /// What would be right, where it differs from what the shape accepts.
    pub right: Option<String>,
}

/// One thing that is wrong with a value as a whole.
///
/// # Errors
/// Always: that one.
pub fn fault<T>(wrong: impl Into<String>) -> Result<T, Vec<Fault>> {
    let fault = Fault {
        line: None,
        element: String::new(),
        wrong: wrong.into(),
        right: None,
    };
    Err(vec![fault])
}

/// `item` in a message.
pub fn show(item: &Item) -> String {
    match item {
        Item::Value(Value::String(text)) => format!("is the text {}", quote(text.value())),
        Item::Value(Value::Integer(number)) => format!("is {}", number.value()),
        Item::Value(Value::Float(number)) => format!("is {:?}", number.value()),
        Item::Value(Value::Boolean(flag)) => format!("is {}", flag.value()),
        Item::Value(Value::Datetime(_)) => "is a date".into(),
        Item::Value(Value::Array(_)) => "is a list".into(),
        Item::ArrayOfTables(_) => "is a list of tables".into(),
        Item::Value(Value::InlineTable(_)) | Item::Table(_) => "is a table".into(),
        Item::None => "is nothing".into(),
    }
}

/// `text` in quotes, shortened, with what cannot be printed escaped.
pub fn quote(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("{shown:?}")
}

/// The name of something: letters, digits, `-` and `_`, so that it can stand in a file's name.
pub struct Name;

impl Name {
    pub(super) fn check(text: &str) -> Result<String, String> {
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text.is_empty() || text.len() > 32 || !text.chars().all(fine) {
            return Err(format!("is the text {}", quote(text)));
        }
        Ok(text.to_owned())
    }
}

impl Describe for Name {
    fn accepts(&self) -> String {
        "a name of 1 to 32 letters, digits, - and _, in quotes".into()
    }
}

impl Shape for Name {
    type Out = String;
    fn read(&self, item: &Item, _: &Lines) -> Result<String, Vec<Fault>> {
        match item.as_str().map(Self::check) {
            Some(Ok(name)) => Ok(name),
            Some(Err(wrong)) => fault(wrong),
            None => fault(show(item)),
        }
    }
}

/// A name that refers to something, with its line.
#[derive(Clone, Debug)]
pub struct Mention {
    pub name: String,
    pub line: usize,
}

/// A list of names, each once.
pub struct Names;

impl Describe for Names {
    fn accepts(&self) -> String {
        "a list of names, each once, such as [\"A\", \"B\"]".into()
    }
}

impl Shape for Names {
    type Out = Vec<Mention>;
    fn read(&self, item: &Item, lines: &Lines) -> Result<Vec<Mention>, Vec<Fault>> {
        let Some(list) = item.as_array() else {
            return fault(show(item));
        };
        let (mut names, mut faults): (Vec<Mention>, Vec<Fault>) = (Vec::new(), Vec::new());
        for (i, value) in list.iter().enumerate() {
            let line = lines.of(value.span());
            let name = match value.as_str().map(Name::check) {
                Some(Ok(name)) if names.iter().any(|known| known.name == name) => {
                    Err(format!("names {name:?} again"))
                }
                Some(checked) => checked,
                None => Err(show(&Item::Value(value.clone()))),
            };
            match name {
                Ok(name) => names.push(Mention { name, line }),
                Err(wrong) => faults.push(Fault {
                    line: Some(line),
                    element: format!("[{}]", i + 1),
                    wrong,
                    right: Some(Name.accepts() + ", once"),
                }),
            }
        }
        if faults.is_empty() {
            Ok(names)
        } else {
            Err(faults)
        }
    }
}

/// `true` or `false`.
pub struct Flag;

impl Describe for Flag {
    fn accepts(&self) -> String {
        "true or false".into()
    }
}

impl Shape for Flag {
    type Out = bool;
    fn read(&self, item: &Item, _: &Lines) -> Result<bool, Vec<Fault>> {
        item.as_bool().map_or_else(|| fault(show(item)), Ok)
    }
}

/// One of a few words.
pub struct Choice<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Sync> Describe for Choice<T> {
    fn accepts(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|(word, _)| format!("{word:?}")).collect();
        words.join(" or ")
    }
}

impl<T: Copy + Sync> Shape for Choice<T> {
    type Out = T;
    fn read(&self, item: &Item, _: &Lines) -> Result<T, Vec<Fault>> {
        let given = item.as_str();
        match self.0.iter().find(|(word, _)| Some(*word) == given) {
            Some(&(_, value)) => Ok(value),
            None => fault(show(item)),
        }
    }
}

/// A text that the check of the section reads further.
pub struct Text {
    /// What it is.
    pub what: &'static str,
    /// Most bytes of it.
    pub max: usize,
}

impl Describe for Text {
    fn accepts(&self) -> String {
        format!("{} of 1 to {} bytes, in quotes", self.what, self.max)
    }
}

impl Shape for Text {
    type Out = String;
    fn read(&self, item: &Item, _: &Lines) -> Result<String, Vec<Fault>> {
        match item.as_str() {
            Some(text) if (1..=self.max).contains(&text.len()) && !text.contains('\0') => {
                Ok(text.to_owned())
            }
            _ => fault(show(item)),
        }
    }
}

/// Processors, as Linux writes sets of them.
pub(crate) struct ProcessorList {
    /// Whether there may be none.
    pub(crate) may_be_none: bool,
}

impl Describe for ProcessorList {
    fn accepts(&self) -> String {
        let none = if self.may_be_none {
            ", or \"none\""
        } else {
            ""
        };
        let last = Processors::END - 1;
        format!(
            "numbers of processors from 0 to {last} in quotes, such as \"0\" or \"0,2-3\"{none}"
        )
    }
}

impl Shape for ProcessorList {
    type Out = Processors;
    fn read(&self, item: &Item, _: &Lines) -> Result<Processors, Vec<Fault>> {
        let processors = match item.as_str() {
            Some("none") if self.may_be_none => Some(Processors::NONE),
            text => text
                .and_then(Processors::read_list)
                .filter(|it| !it.is_empty()),
        };
        processors.map_or_else(|| fault(show(item)), Ok)
    }
}

/// A list of texts.
pub(crate) struct Texts;

/// Most words of a command.
const TEXTS_MAX: usize = 64;
const WORD: Text = Text {
    what: "a text",
    max: 4096,
};

impl Describe for Texts {
    fn accepts(&self) -> String {
        format!("a list of at most {TEXTS_MAX} texts, such as [\"python3\", \"-u\"]")
    }
}

impl Shape for Texts {
    type Out = Vec<String>;
    fn read(&self, item: &Item, lines: &Lines) -> Result<Vec<String>, Vec<Fault>> {
        let Some(list) = item.as_array() else {
            return fault(show(item));
        };
        if list.len() > TEXTS_MAX {
            return fault(format!("is a list of {}", list.len()));
        }
        let (mut texts, mut faults) = (Vec::new(), Vec::new());
        for (i, value) in list.iter().enumerate() {
            match WORD.read(&Item::Value(value.clone()), lines) {
                Ok(text) => texts.push(text),
                Err(_) => faults.push(Fault {
                    line: Some(lines.of(value.span())),
                    element: format!("[{}]", i + 1),
                    wrong: show(&Item::Value(value.clone())),
                    right: Some(WORD.accepts()),
                }),
            }
        }
        if faults.is_empty() {
            Ok(texts)
        } else {
            Err(faults)
        }
    }
}
