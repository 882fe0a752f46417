//! What of a node's status (`bumpless.status/1`) and values (`bumpless.values/1`) is shown, and under which name: tables,
//! without anything of OPC UA.

use serde_json::Value;

/// Type of a shown value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// String.
    Text,
    /// Array of String.
    Texts,
    /// Boolean.
    Flag,
    /// UInt64.
    Count,
    /// Double.
    Real,
}

/// A shown value.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// The node has none at present.
    Nothing,
    /// See [`Kind::Text`].
    Text(String),
    /// See [`Kind::Texts`].
    Texts(Vec<String>),
    /// See [`Kind::Flag`].
    Flag(bool),
    /// See [`Kind::Count`].
    Count(u64),
    /// See [`Kind::Real`].
    Real(f64),
}

/// How far a shown value is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// It is what holds.
    Good,
    /// It is what held when this node had the process in hand.
    LastUsable,
    /// It is what the device said before it fell silent.
    Silent,
    /// There has been none yet.
    Awaited,
}

/// One variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Folders that it is in, outermost first.
    pub folders: Vec<String>,
    /// Its name in the last one.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// Its value.
    pub value: Shown,
    /// How far that is to be trusted.
    pub quality: Quality,
}

/// A node makes no more variables than these: of a longer list the rest is not shown, values of inputs and outputs first.
pub const ENTRIES_MAX: usize = 4096;

/// Name, place in the status (JSON pointer), type.
type Table = &'static [(&'static str, &'static str, Kind)];

const NODE: Table = &[
    ("Pair", "/pair", Kind::Text),
    ("Node", "/node", Kind::Text),
    ("Version", "/version", Kind::Text),
    ("Session", "/session", Kind::Text),
    ("UptimeS", "/uptime_s", Kind::Real),
    ("Configuration", "/configuration/fingerprint", Kind::Text),
    ("PlanVerdict", "/plan/verdict", Kind::Text),
    ("Stalls", "/stalls/count", Kind::Count),
    ("LongestStallMs", "/stalls/longest_ms", Kind::Real),
];

const GROUP: Table = &[
    ("Role", "/role", Kind::Text),
    ("Epoch", "/epoch", Kind::Count),
    ("WritesOutputs", "/writes_outputs", Kind::Flag),
    ("Redundancy", "/redundancy", Kind::Text),
    ("Cause", "/cause", Kind::Text),
    ("Synchronized", "/synced", Kind::Flag),
    ("Partner", "/partner", Kind::Text),
    ("PartnerHeard", "/partner_heard", Kind::Flag),
    ("Reference", "/reference", Kind::Text),
    ("LastChangeCause", "/last_change/cause", Kind::Text),
    ("LastChangeAgoS", "/last_change/ago_s", Kind::Real),
];

const APPLICATION: Table = &[
    ("Group", "/group", Kind::Text),
    ("Kind", "/kind", Kind::Text),
    ("PeriodMs", "/period_ms", Kind::Real),
    ("DeadlineMs", "/deadline_ms", Kind::Real),
    ("TransfersSafe", "/transfers_safe", Kind::Count),
    ("DeadlineMisses", "/transfers_failed", Kind::Count),
    ("LastTransferMs", "/last_transfer_ms", Kind::Real),
    ("SlowestTransferMs", "/slowest_transfer_ms", Kind::Real),
    ("ReceivedCycle", "/received_cycle", Kind::Count),
    ("ReceivedAgeMs", "/received_age_ms", Kind::Real),
    ("FieldAnswers", "/field/answers", Kind::Flag),
    ("ProgramStopped", "/program/stopped", Kind::Flag),
    ("ProgramFaults", "/program/faults", Kind::Count),
];

const LINK: Table = &[
    ("Partner", "/partner", Kind::Text),
    ("Up", "/up", Kind::Flag),
    ("PassesFullLength", "/passes_full_length", Kind::Flag),
    ("CarriesStates", "/carries_states", Kind::Flag),
    ("RoundTripUs", "/round_trip_us", Kind::Real),
    ("ReceiveDrops", "/receive_drops", Kind::Count),
    ("SendFailures", "/send_failures", Kind::Count),
];

/// All that is shown of a node with this status and these values.
pub fn entries(status: &Value, values: &Value) -> Vec<Entry> {
    let mut entries = from_table(NODE, &[], status);
    entries.push(Entry {
        folders: Vec::new(),
        name: "Weaknesses".into(),
        kind: Kind::Texts,
        value: value(Kind::Texts, status.get("weaknesses")),
        quality: Quality::Good,
    });
    for group in list(status, "groups") {
        entries.extend(from_table(GROUP, &["Groups", name(group)], group));
    }
    for application in list(status, "applications") {
        let folders = ["Applications", name(application)];
        entries.extend(from_table(APPLICATION, &folders, application));
        entries.push(Entry {
            folders: folders.map(String::from).to_vec(),
            name: "Role".into(),
            kind: Kind::Text,
            value: value(Kind::Text, role_of(application, status)),
            quality: Quality::Good,
        });
    }
    let links = list(status, "links");
    for link in links {
        let folder = link_name(link, links);
        entries.extend(from_table(LINK, &["Links", &folder], link));
    }
    if let Some(counters) = status["counters"].as_object() {
        entries.extend(counters.iter().map(|(name, count)| Entry {
            folders: vec!["Counters".into()],
            name: name.clone(),
            kind: Kind::Count,
            value: value(Kind::Count, Some(count)),
            quality: Quality::Good,
        }));
    }
    for application in list(values, "applications") {
        for (folder, side) in [("Inputs", "inputs"), ("Outputs", "outputs")] {
            let folders = ["Applications", name(application), folder];
            entries.extend(signals(&folders, &application[side]));
        }
    }
    entries.truncate(ENTRIES_MAX);
    entries
}

/// The inputs or the outputs of an application.
fn signals(folders: &[&str], side: &Value) -> Vec<Entry> {
    let entry = |signal: &Value| Entry {
        folders: folders.iter().map(|&it| it.into()).collect(),
        name: name(signal).into(),
        kind: Kind::Real,
        value: value(Kind::Real, signal.get("value")),
        quality: quality(side, signal),
    };
    list(side, "values").iter().map(entry).collect()
}

fn quality(side: &Value, signal: &Value) -> Quality {
    match (side["age_ms"].is_number(), side["fresh"] == true) {
        (false, _) => Quality::Awaited,
        (true, false) => Quality::LastUsable,
        (true, true) if signal["answers"] == false => Quality::Silent,
        (true, true) => Quality::Good,
    }
}

fn list<'a>(status: &'a Value, field: &str) -> &'a [Value] {
    status[field].as_array().map_or(&[], |it| it)
}

fn name(of: &Value) -> &str {
    of["name"].as_str().unwrap_or("?")
}

/// The role of the application's group, which is that of the application.
fn role_of<'a>(application: &Value, status: &'a Value) -> Option<&'a Value> {
    let mut groups = list(status, "groups").iter();
    groups
        .find(|group| group["name"] == application["group"])?
        .get("role")
}

/// A link is called by its network; with its partner only where there are several. So both nodes of a pair have the
/// same nodes (OPC 10000-4, 6.6.2.2).
fn link_name(link: &Value, links: &[Value]) -> String {
    let network = link["network"].as_str().unwrap_or("?");
    match links
        .iter()
        .all(|other| other["partner"] == link["partner"])
    {
        true => network.into(),
        false => format!("{network} {}", link["partner"].as_str().unwrap_or("?")),
    }
}

fn from_table(table: Table, folders: &[&str], of: &Value) -> Vec<Entry> {
    let entry = |&(name, place, kind): &(&str, &str, Kind)| Entry {
        folders: folders.iter().map(|&it| it.into()).collect(),
        name: name.into(),
        kind,
        value: value(kind, of.pointer(place)),
        quality: Quality::Good,
    };
    table.iter().map(entry).collect()
}

/// What the status says there; nothing if it is null, absent, or of another type.
fn value(kind: Kind, said: Option<&Value>) -> Shown {
    let shown = said.and_then(|said| match kind {
        Kind::Text => said.as_str().map(|it| Shown::Text(it.into())),
        Kind::Texts => said.as_array().map(|texts| {
            let texts = texts.iter().filter_map(Value::as_str).map(String::from);
            Shown::Texts(texts.collect())
        }),
        Kind::Flag => said.as_bool().map(Shown::Flag),
        Kind::Count => said.as_u64().map(Shown::Count),
        Kind::Real => said.as_f64().map(Shown::Real),
    });
    shown.unwrap_or(Shown::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn find<'a>(entries: &'a [Entry], path: &str) -> &'a Shown {
        let found = entries.iter().find(|entry| {
            let mut parts = entry.folders.clone();
            parts.push(entry.name.clone());
            parts.join("/") == path
        });
        &found.unwrap_or_else(|| panic!("no {path}")).value
    }

    fn status(partner: &str) -> Value {
        json!({
            "pair": "p", "weaknesses": ["one", "two"], "uptime_s": 1,
            "groups": [{"name": "tank", "role": "backup", "epoch": 3, "synced": true}],
            "applications": [{"name": "levels", "group": "tank", "received_cycle": null, "transfers_failed": 2}],
            "links": [{"partner": partner, "network": "A", "up": true}, {"partner": partner, "network": "B", "up": false}],
            "counters": {"cycles_executed": 7},
        })
    }

    fn values(fresh: bool, answers: bool) -> Value {
        let level = json!({"name": "level", "value": 1.5, "answers": answers});
        let pump = json!({"name": "pump", "value": null});
        json!({"applications": [{
            "name": "levels",
            "inputs": {"age_ms": 3.0, "fresh": fresh, "values": [level]},
            "outputs": {"age_ms": null, "fresh": false, "values": [pump]},
        }]})
    }

    #[test]
    fn a_value_is_as_good_as_what_the_node_says_of_it() {
        let told = |fresh, answers| {
            let entries = entries(&status("right"), &values(fresh, answers));
            let is_input = |entry: &&Entry| entry.folders.ends_with(&["Inputs".into()]);
            let level = entries.iter().find(is_input).unwrap().clone();
            assert_eq!(level.folders, ["Applications", "levels", "Inputs"]);
            assert_eq!((&*level.name, level.value), ("level", Shown::Real(1.5)));
            level.quality
        };
        assert_eq!(told(true, true), Quality::Good);
        assert_eq!(told(true, false), Quality::Silent);
        assert_eq!(told(false, true), Quality::LastUsable);
        assert_eq!(told(false, false), Quality::LastUsable);
        let entries = entries(&status("right"), &values(true, true));
        let pump = entries.last().unwrap();
        assert_eq!((&*pump.name, &pump.value), ("pump", &Shown::Nothing));
        assert_eq!(pump.quality, Quality::Awaited);
    }

    #[test]
    fn what_the_status_says_is_shown_with_its_type() {
        let entries = entries(&status("right"), &Value::Null);
        assert_eq!(find(&entries, "Groups/tank/Epoch"), &Shown::Count(3));
        assert_eq!(
            find(&entries, "Applications/levels/Role"),
            &Shown::Text("backup".into())
        );
        assert_eq!(
            find(&entries, "Applications/levels/DeadlineMisses"),
            &Shown::Count(2)
        );
        assert_eq!(
            find(&entries, "Applications/levels/ReceivedCycle"),
            &Shown::Nothing
        );
        assert_eq!(find(&entries, "Links/B/Up"), &Shown::Flag(false));
        assert_eq!(find(&entries, "Counters/cycles_executed"), &Shown::Count(7));
        assert_eq!(find(&entries, "UptimeS"), &Shown::Real(1.0));
        let both = Shown::Texts(vec!["one".into(), "two".into()]);
        assert_eq!(find(&entries, "Weaknesses"), &both);
    }

    #[test]
    fn both_nodes_of_a_pair_have_the_same_variables() {
        let paths = |partner| {
            let entries = entries(&status(partner), &values(true, true));
            let paths = entries.into_iter().map(|it| (it.folders, it.name));
            paths.collect::<BTreeSet<_>>()
        };
        assert_eq!(paths("left"), paths("right"));
        let mut of_a_pool = status("left");
        of_a_pool["links"][1] = json!({"partner": "right", "network": "A"});
        let names = entries(&of_a_pool, &Value::Null);
        assert_eq!(
            find(&names, "Links/A right/Partner"),
            &Shown::Text("right".into())
        );
    }

    #[test]
    fn a_status_of_another_shape_shows_nothing_and_breaks_nothing() {
        for odd in [
            json!(null),
            json!([1]),
            json!({"groups": 3, "links": [null, 4], "applications": [[]], "counters": []}),
            json!({"weaknesses": [1, "x"], "pair": 4}),
        ] {
            let values = entries(&odd, &odd);
            assert_eq!(find(&values, "Pair"), &Shown::Nothing);
        }
        let many: Vec<_> = (0..10_000)
            .map(|n| json!({"name": n.to_string()}))
            .collect();
        assert_eq!(
            entries(&json!({"groups": many}), &values(true, true)).len(),
            ENTRIES_MAX
        );
    }
}
