//! The elementary types of IEC 61131-3.

/// Elementary types whose values mean the same in every process, with the bytes that they have.
const TYPES: [(&str, u32); 25] = [
    ("BOOL", 1),
    ("SINT", 1),
    ("INT", 2),
    ("DINT", 4),
    ("LINT", 8),
    ("USINT", 1),
    ("UINT", 2),
    ("UDINT", 4),
    ("ULINT", 8),
    ("BYTE", 1),
    ("WORD", 2),
    ("DWORD", 4),
    ("LWORD", 8),
    ("REAL", 4),
    ("LREAL", 8),
    ("TIME", 16),
    ("DATE", 16),
    ("TOD", 16),
    ("DT", 16),
    ("TIME_OF_DAY", 16),
    ("DATE_AND_TIME", 16),
    ("LTIME", 8),
    ("LDATE", 8),
    ("LTOD", 8),
    ("LDT", 8),
];

/// Bytes of a value of an elementary type.
pub(super) fn size(of: &str) -> Option<u32> {
    let found = TYPES.iter().find(|(name, _)| *name == of);
    found.map(|(_, size)| *size)
}

/// What is characters: one value, whose length the project's headers say.
const TEXT: &str = "STRING";

/// What a value consists of: numbers, or texts, one or an array of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value<'a> {
    /// The type of each.
    pub of: &'a str,
    /// How many there are.
    pub count: u32,
    /// Bytes of each; `None` of texts.
    pub each: Option<u32>,
}

impl Value<'_> {
    /// Whether all of it can have this many bytes. A text has one that tells its length, and at least one character.
    pub fn has(&self, len: u32) -> bool {
        match self.each {
            Some(each) => each.checked_mul(self.count) == Some(len),
            None => len.is_multiple_of(self.count) && len / self.count > 1,
        }
    }
}

/// What the type `of` is, as `INT`, `STRING` or `INT[2][10]`; `None`: a structure, or a type that is not known.
pub(super) fn value(of: &str) -> Option<Value<'_>> {
    let at = of.find('[').unwrap_or(of.len());
    let (element, lengths) = of.split_at(at);
    let each = size(element);
    (each.is_some() || element == TEXT).then_some(())?;
    Some(Value {
        of: element,
        count: count(lengths)?,
        each,
    })
}

/// How many elements `[2][10]` has; 1 if it says nothing.
fn count(mut lengths: &str) -> Option<u32> {
    let mut count = 1u32;
    while let Some(rest) = lengths.strip_prefix('[') {
        let (number, rest) = rest.split_once(']')?;
        let number: u32 = number.parse().ok().filter(|number| *number > 0)?;
        count = count.checked_mul(number)?;
        lengths = rest;
    }
    lengths.is_empty().then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_texts_and_arrays_of_them_are_values_and_nothing_else_is() {
        for (of, expected) in [
            ("INT", Some(("INT", 1, Some(2)))),
            ("STRING", Some(("STRING", 1, None))),
            ("LREAL[2][10]", Some(("LREAL", 20, Some(8)))),
            ("STRING[3]", Some(("STRING", 3, None))),
            ("TON", None),
            ("TON[3]", None),
            ("INT[0]", None),
            ("INT[3", None),
            ("INT[]", None),
            ("INT[3]x", None),
            ("INT[-3]", None),
            ("INT[65536][65536]", None),
            ("", None),
        ] {
            let found = value(of).map(|it| (it.of, it.count, it.each));
            assert_eq!(found, expected, "{of}");
        }
    }

    #[test]
    fn a_value_has_the_length_of_its_type_and_a_text_at_least_one_character() {
        for (of, len, has) in [
            ("INT", 2, true),
            ("INT", 4, false),
            ("INT[3]", 6, true),
            ("INT[3]", 2, false),
            ("STRING", 127, true),
            ("STRING", 1, false),
            ("STRING[3]", 381, true),
            ("STRING[3]", 127, false),
            ("STRING[3]", 3, false),
            ("LREAL[600000000]", 505_032_704, false),
        ] {
            assert_eq!(value(of).unwrap().has(len), has, "{of} of {len} bytes");
        }
    }
}
