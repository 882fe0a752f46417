//! Names are unique, and what refers to one finds it.

use std::collections::BTreeMap;
use std::iter;

use bumpless_base::MAX_LINKS;

use crate::file::{ApplicationEntry, File};
use crate::model::{MAX_APPLICATIONS, MAX_GROUPS, MAX_NODES, MAX_REFERENCES};
use crate::reader::{Place, Reader};
use crate::schema::{FieldIo, Reference, ReferenceWord};
use crate::security::Security;
use crate::suggest::nearest;

/// Names of one kind of section and their positions.
pub(crate) struct Index {
    what: &'static str,
    positions: BTreeMap<String, usize>,
    /// Some name could not be read: a name that is not found may be that one.
    incomplete: bool,
}

impl Index {
    /// The position of `name`; reported where there is none, as a problem of `key` at `place`.
    pub(crate) fn find(
        &self,
        reader: &mut Reader,
        place: &Place,
        (key, line): (&str, usize),
        name: &str,
    ) -> Option<usize> {
        let found = self.positions.get(name).copied();
        if found.is_none() && !self.incomplete {
            let known: Vec<&str> = self.positions.keys().map(String::as_str).collect();
            let right = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean {near:?}?"),
                None if known.is_empty() => format!("define a {} of that name", self.what),
                None => format!("name one of {}", known.join(", ")),
            };
            let wrong = format!("{name:?} is not a {} of this file", self.what);
            reader.wrong_on(line, format!("{}.{key}", place.path), wrong, right);
        }
        found
    }
}

/// The names in `list`, each reported that stands there again, and a list of wrong length.
fn index<'f>(
    reader: &mut Reader,
    what: &'static str,
    (min, max): (usize, usize),
    list: impl Iterator<Item = (&'f Place, Option<&'f String>)>,
) -> Index {
    let mut index = Index {
        what,
        positions: BTreeMap::new(),
        incomplete: reader.incomplete,
    };
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = 0;
    for (i, (place, name)) in list.enumerate() {
        count += 1;
        if i == max {
            let right = format!("a file has at most {max}; remove the rest");
            reader.wrong(place, "", format!("is {what} number {}", i + 1), right);
        }
        let Some(name) = name else {
            index.incomplete = true;
            continue;
        };
        match lines.get(name) {
            Some(line) => {
                let wrong = format!("{name:?} is already the name of the {what} on line {line}");
                reader.wrong(place, "name", wrong, "give each a name of its own");
            }
            None => {
                lines.insert(name.clone(), place.line_of("name"));
                index.positions.insert(name.clone(), i);
            }
        }
    }
    if count < min && !reader.incomplete {
        let wrong = format!("the file has {count} of them");
        let right = format!("write [[{what}]] at least {min} times");
        reader.wrong_on(1, what.to_owned(), wrong, right);
    }
    index
}

pub(crate) fn networks(reader: &mut Reader, file: &File) -> Index {
    let list = file.networks.iter().map(|s| (&s.place, s.name.as_ref()));
    index(reader, "network", (1, MAX_LINKS), list)
}

/// What stands in the place of the pair in the certificate of a witness, a key server and a field device (N-40, N-88, M-30).
const NOT_OF_A_PAIR: [(&str, &str); 3] = [
    ("witness", "witness"),
    ("keys", "key server"),
    ("field", "field device"),
];

/// The pair's own name.
pub(crate) fn pair(reader: &mut Reader, file: &File) {
    let given = &file.pair;
    let Some(name) = &given.name else { return };
    let taken = NOT_OF_A_PAIR.iter();
    let mut taken = taken.filter(|(word, _)| name.eq_ignore_ascii_case(word));
    if let Some((_, whose)) = taken.next() {
        let wrong = format!(
            "{name:?} would make certificates of this pair's nodes pass for those of a {whose}"
        );
        reader.wrong(&given.place, "name", wrong, "give the pair another name");
    }
}

/// Names that stand in certificates, if messages or connections to devices are protected by some (N-40): those have a letter,
/// digit or _ at both ends.
pub(crate) fn in_certificates(reader: &mut Reader, file: &File, security: Option<&Security>) {
    let fields = file.applications.iter().filter_map(|it| it.field.as_ref());
    let of_fields = |field: &FieldIo| matches!(field.certificates, Some(Some(_)));
    if !matches!(security, Some(Security::Certificates(_))) && !fields.into_iter().any(of_fields) {
        return;
    }
    let pair = (&file.pair.place, &file.pair.name);
    let nodes = file.nodes.iter().map(|node| (&node.place, &node.name));
    let is_witness = |it: &&Reference| it.kind == Some(ReferenceWord::Witness);
    let witnesses = file.references.iter().filter(is_witness);
    let witnesses = witnesses.map(|witness| (&witness.place, &witness.name));
    for (place, name) in iter::once(pair).chain(nodes).chain(witnesses) {
        let Some(name) = name else { continue };
        if name.starts_with('-') || name.ends_with('-') {
            let wrong =
                format!("{name:?} cannot stand in a certificate, and certificates are in use");
            let right = "give a name with a letter, digit or _ at both ends";
            reader.wrong(place, "name", wrong, right);
        }
    }
}

pub(crate) fn nodes(reader: &mut Reader, file: &File) -> Index {
    let list = file.nodes.iter().map(|s| (&s.place, s.name.as_ref()));
    index(reader, "node", (2, MAX_NODES), list)
}

pub(crate) fn references(reader: &mut Reader, file: &File) -> Index {
    let list = file.references.iter().map(|s| (&s.place, s.name.as_ref()));
    index(reader, "reference", (0, MAX_REFERENCES), list)
}

pub(crate) fn groups(reader: &mut Reader, file: &File) -> Index {
    let list = file.groups.iter().map(|s| (&s.place, s.name.as_ref()));
    index(reader, "group", (1, MAX_GROUPS), list)
}

/// Most devices of one program.
const MAX_DEVICES: usize = 64;

pub(crate) fn devices(reader: &mut Reader, entry: &ApplicationEntry) -> Index {
    let list = entry.devices.iter().map(|s| (&s.place, s.name.as_ref()));
    index(reader, "device", (0, MAX_DEVICES), list)
}

pub(crate) fn applications(reader: &mut Reader, file: &File) {
    let list = file
        .applications
        .iter()
        .map(|s| (&s.fields.place, s.fields.name.as_ref()));
    index(reader, "application", (1, MAX_APPLICATIONS), list);
}
