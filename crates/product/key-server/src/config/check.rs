//! Checks across fields, and the result of them all.

use bumpless_base::Duration;
use bumpless_config::reading::Reader;
use bumpless_keys::KEYS;
use bumpless_secure::group::Terms;

use super::schema::{File, GroupEntry};
use super::{Config, Group};

/// Most groups of a server.
const GROUPS_MAX: usize = 64;

/// Checks `file`; `None` where anything is wrong, now or before.
pub fn resolve(reader: &mut Reader, file: File) -> Option<Config> {
    let groups = groups(reader, &file.groups, file.name.as_deref());
    if let (Some(name), Some(Some(follow))) = (&file.name, &file.follow)
        && follow
            .iter()
            .any(|other| other.name.eq_ignore_ascii_case(name))
    {
        let right = "name other servers, or leave follow out";
        reader.wrong(&file.server, "follow", "names this server itself", right);
    }
    if file.groups.is_empty() || file.groups.len() > GROUPS_MAX {
        let wrong = format!("there are {} groups", file.groups.len());
        let right = format!("write a [[group]] for each pair, 1 to {GROUPS_MAX}");
        reader.wrong_on(file.server.line, "group".into(), wrong, right);
    }
    if !reader.is_clean() {
        return None;
    }
    let name = file.name?;
    Some(Config {
        certificates: file.certificates?.into(),
        listen: file.listen?,
        state: file.state?.unwrap_or(format!("{name}.{KEYS}.state")).into(),
        socket: file.socket?.map(Into::into),
        follow: file.follow?.unwrap_or_default(),
        groups,
        name,
    })
}

fn groups(reader: &mut Reader, entries: &[GroupEntry], own: Option<&str>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let own = own.map(|own| format!("{own}.{KEYS}").to_ascii_lowercase());
    for entry in entries {
        let (Some(name), Some(members)) = (&entry.name, &entry.members) else {
            continue;
        };
        if groups
            .iter()
            .any(|known| known.name.eq_ignore_ascii_case(name))
        {
            let wrong = format!("names the group {name:?} again");
            reader.wrong(
                &entry.place,
                "name",
                wrong,
                "give each group a name of its own",
            );
        }
        if own.as_ref().is_some_and(|own| members.contains(own)) {
            let right = "leave it out: this server has the keys";
            reader.wrong(&entry.place, "members", "names this server itself", right);
        }
        let (Some(lifetime), Some(future)) = (entry.lifetime_s, entry.in_advance) else {
            continue;
        };
        groups.push(Group {
            name: name.clone(),
            members: members.clone(),
            terms: Terms {
                lifetime: Duration::from_secs(lifetime),
                future: usize::try_from(future).unwrap_or(1),
            },
        });
    }
    groups
}
