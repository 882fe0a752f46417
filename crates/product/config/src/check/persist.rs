//! States that are kept on disk: where, and how often.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use bumpless_base::Duration;

use super::draft::Draft;
use super::timing::ms;
use super::{groups, hot_restart};
use crate::file::File;
use crate::reader::Reader;
use crate::schema::{self, PersistWord};

/// Between two writes of a state, unless the file says otherwise.
const USUAL: Duration = Duration::from_millis(100);

/// Once in how long the state is written to disk, if it is.
pub(crate) fn of_application(
    reader: &mut Reader,
    fields: &schema::Application,
) -> Option<Option<Duration>> {
    let (persist, every) = (fields.persist?, fields.persist_every?);
    match (persist, every) {
        (PersistWord::File, every) => Some(Some(every.unwrap_or(USUAL))),
        (PersistWord::None, None) => Some(None),
        (PersistWord::None, Some(_)) => {
            let wrong = "stands here although the state is not kept on disk";
            let right = "add persist = \"file\", or leave it out";
            reader.wrong(&fields.place, "persist_every_ms", wrong, right);
            None
        }
    }
}

/// Every node that keeps states has a folder of its own for them, and states in it are young enough to be used.
pub(crate) fn check(reader: &mut Reader, file: &File, drafts: &[Draft], groups: &[groups::Draft]) {
    drafts.iter().for_each(|draft| in_time(reader, file, draft));
    folders_given(reader, file, drafts, groups);
    folders_differ(reader, file);
}

fn in_time(reader: &mut Reader, file: &File, draft: &Draft) {
    let (Some(Some(every)), Some(group)) = (draft.persist, draft.group) else {
        return;
    };
    let given = file.groups.get(group).and_then(|group| group.hot_restart);
    let (Some(given), Some(expiry)) = (given, draft.expiry) else {
        return;
    };
    let usable = given.unwrap_or(hot_restart::usual(expiry));
    if every >= usable {
        let wrong = format!(
            "{} ms is not shorter than the {} ms after which nobody may go on from a state",
            ms(every),
            ms(usable)
        );
        let right = "write more often, or raise hot_restart_ms if the process permits";
        reader.wrong(&draft.place, "persist_every_ms", wrong, right);
    }
}

fn folders_given(reader: &mut Reader, file: &File, drafts: &[Draft], groups: &[groups::Draft]) {
    for (at, given) in file.nodes.iter().enumerate() {
        if given.state_dir != Some(None) {
            continue;
        }
        let runs = |draft: &&Draft| {
            let group = draft.group.and_then(|group| groups.get(group));
            let candidates = group.and_then(|group| group.candidates.as_ref());
            candidates.is_some_and(|all| all.contains(&super::node(at)))
        };
        let persists = |draft: &&Draft| matches!(draft.persist, Some(Some(_)));
        let Some(draft) = drafts.iter().filter(runs).find(persists) else {
            continue;
        };
        let name = draft.name.as_deref().unwrap_or("?");
        let wrong = format!("is missing, and application {name:?} keeps its state on disk");
        let right = "give the path of a folder on a disk of this node's own";
        reader.wrong(&given.place, "state_dir", wrong, right);
    }
}

fn folders_differ(reader: &mut Reader, file: &File) {
    let mut seen: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for given in &file.nodes {
        let Some(Some(text)) = &given.state_dir else {
            continue;
        };
        let line = given.place.line_of("state_dir");
        match seen.get(&plain(text)) {
            Some(other) => {
                let wrong = format!("{text:?} is also the state_dir on line {other}");
                let right =
                    "give each node a folder of its own: one disk must not take both states along";
                reader.wrong(&given.place, "state_dir", wrong, right);
            }
            None => {
                seen.insert(plain(text), line);
            }
        }
    }
}

/// `path` without what does not matter in it: repeated and trailing slashes, and `.`.
fn plain(path: &str) -> PathBuf {
    let parts = Path::new(path).components();
    parts.filter(|part| *part != Component::CurDir).collect()
}
