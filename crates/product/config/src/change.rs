//! What differs between two configurations, and whether a pair can change from one to the other while it
//! runs: applications may come, go and be tuned; everything else takes a restart.

use bumpless_base::NodeId;

use crate::model::{Application, ApplicationKind, Config, Program};
use crate::problem::Problem;

/// An application that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuned {
    /// Its position in the configuration that is in force.
    pub from: usize,
    /// Its position in the next one.
    pub to: usize,
}

/// What a change does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Applications that go, by position in the configuration that is in force.
    pub removed: Vec<usize>,
    /// Applications that stay as they are.
    pub kept: Vec<Tuned>,
    /// Applications that go on with other settings.
    pub tuned: Vec<Tuned>,
    /// Applications that come, by position in the next configuration.
    pub added: Vec<usize>,
}

impl Change {
    /// From `old` to `new`, which was read from `file`.
    ///
    /// # Errors
    /// Everything that cannot change while the pair runs, each with what to do instead.
    pub fn between(old: &Config, new: &Config, file: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::new(file);
        for section in restart(old, new) {
            let right = match section {
                "security" if only_keys(old, new) => {
                    "leave them as they are, or start one node after the other with the new file: sealing with a key \
                     that the other has already (spec/security.md, N-4)"
                }
                _ => "leave it as it is, or stop both nodes and start them with the new file",
            };
            problems.add(
                section.to_owned(),
                "cannot change while the pair runs".into(),
                right,
            );
        }
        if old.nodes.len() != 2 {
            problems.add(
                "node".into(),
                "only a pair of two nodes changes while it runs".into(),
                "stop the nodes of a pool and start them with the new file",
            );
        }
        let mut change = Self::default();
        let position = |config: &Config, name: &str| {
            let mut names = config.applications.iter();
            names.position(|application| application.name == name)
        };
        for (to, application) in new.applications.iter().enumerate() {
            let Some(from) = position(old, &application.name) else {
                added(old, application, to, &mut problems);
                change.added.push(to);
                continue;
            };
            let before = &old.applications[from];
            stays(before, application, to, &mut problems);
            let stays = Tuned { from, to };
            if before == application {
                change.kept.push(stays);
            } else {
                change.tuned.push(stays);
            }
        }
        let gone = |&at: &usize| position(new, &old.applications[at].name).is_none();
        change.removed = (0..old.applications.len()).filter(gone).collect();
        memory(old, new, &change.removed, &mut problems);
        if problems.found.is_empty() {
            Ok(change)
        } else {
            Err(problems.found)
        }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.tuned.is_empty() && self.added.is_empty()
    }
}

struct Problems<'a> {
    file: &'a str,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    const fn new(file: &'a str) -> Self {
        let found = Vec::new();
        Self { file, found }
    }

    fn add(&mut self, field: String, wrong: String, right: &str) {
        self.found.push(Problem {
            file: self.file.to_owned(),
            line: 0,
            field,
            wrong,
            right: right.to_owned(),
        });
    }
}

/// The sections that differ and take a restart: all but the applications and the plan's own.
pub fn restart(old: &Config, new: &Config) -> Vec<&'static str> {
    // Taken apart by name, so that a section added later must be placed here.
    let Config {
        pair,
        timing,
        transfer,
        security,
        realtime,
        reception,
        registration,
        plan: _,
        change: _,
        networks,
        nodes,
        references,
        groups,
        applications: _,
        weaknesses: _,
    } = old;
    // What follows from another protection alone is told there.
    let protection = new.security.overhead();
    let (mut transfer, mut networks) = (transfer.clone(), networks.clone());
    if security.overhead() != protection {
        transfer.payload_size = new.transfer.payload_size;
    }
    for network in &mut networks {
        network.protection = protection;
    }
    let sections = [
        ("pair", *pair != new.pair),
        ("timing", *timing != new.timing),
        ("transfer", transfer != new.transfer),
        ("security", *security != new.security),
        ("realtime", *realtime != new.realtime),
        ("reception", *reception != new.reception),
        ("registration", *registration != new.registration),
        ("network", networks != new.networks),
        ("node", *nodes != new.nodes),
        ("reference", *references != new.references),
        ("group", *groups != new.groups),
    ];
    let differing = sections.into_iter().filter(|&(_, differs)| differs);
    differing.map(|(section, _)| section).collect()
}

/// Whether only other files have the keys.
fn only_keys(old: &Config, new: &Config) -> bool {
    let method = |config: &Config| std::mem::discriminant(&config.security);
    method(old) == method(new)
}

/// Those who go are still there when those who come have everything they need.
fn memory(old: &Config, new: &Config, removed: &[usize], problems: &mut Problems<'_>) {
    let mut both = new.clone();
    let leavers = removed.iter().map(|&at| old.applications[at].clone());
    both.applications.extend(leavers);
    let needed = (0..both.nodes.len()).map(|node| both.state_memory(NodeId(node as u8)));
    let needed = needed.max().unwrap_or_default();
    if needed > new.buffers_max() && problems.found.is_empty() {
        problems.add(
            "transfer.memory_max".into(),
            format!(
                "while it changes, applications that go and applications that come take {needed} bytes of \
                 state buffers together; at most {} are allowed",
                new.buffers_max()
            ),
            "let those that go end with one change, and let the others come with the next",
        );
    }
}

fn added(old: &Config, application: &Application, to: usize, problems: &mut Problems<'_>) {
    let mut taken = old.applications.iter();
    if let Some(before) = taken.find(|before| before.channel == application.channel) {
        problems.add(
            format!("application[{}].channel", to + 1),
            format!(
                "{} is the channel of '{}' until the change, and packets of it may still be under way",
                application.channel, before.name
            ),
            "give the application that comes a channel that was not used since the nodes started",
        );
    }
}

/// What an application that stays must keep: where its states go and what they look like.
fn stays(before: &Application, after: &Application, to: usize, problems: &mut Problems<'_>) {
    // Taken apart by name, so that a field added later must be placed here.
    let Application {
        name,
        group,
        channel,
        period: _,
        deadline: _,
        expiry: _,
        hot_restart: _,
        begins_anew: _,
        persist,
        commit: _,
        distribution,
        unsent,
        networks,
        retransmissions: _,
        accepted_loss_per_year: _,
        state_max: _,
        kind,
        field: _,
        security,
    } = before;
    let fields = [
        ("group", *group != after.group),
        ("channel", *channel != after.channel),
        ("distribution", *distribution != after.distribution),
        ("unsent", *unsent != after.unsent),
        ("networks", *networks != after.networks),
        ("size", own_size(before) != own_size(after)),
        ("security", *security != after.security),
        (
            differing(kind, &after.kind).unwrap_or("kind"),
            differing(kind, &after.kind).is_some(),
        ),
        // How often may change; the buffers that it takes are there from the start or not at all.
        ("persist", persist.is_some() != after.persist.is_some()),
    ];
    for (field, _) in fields.iter().filter(|(_, differs)| *differs) {
        problems.add(
            format!("application[{}].{field}", to + 1),
            format!("cannot change while '{name}' runs"),
            "leave it as it is, or give the changed application another name and a channel that was not \
             used since the nodes started: it then begins anew, and the old one ends",
        );
    }
}

/// Most bytes of its state, without what seals it.
fn own_size(application: &Application) -> u32 {
    let overhead = application.security.overhead();
    application.state_max.saturating_sub(overhead)
}

/// The field for whose sake an application of one kind does not go on from a state of the other; `None`: it does, or it turns out
/// when the next version of a program is started whether it does.
fn differing(before: &ApplicationKind, after: &ApplicationKind) -> Option<&'static str> {
    use ApplicationKind::{Program, QuadrupleTank, Synthetic};
    match (before, after) {
        (Program(before), Program(after)) => differing_program(before, after),
        // A synthetic one's size is that of its state, which is compared for itself.
        (QuadrupleTank(_), QuadrupleTank(_)) | (Synthetic(_), Synthetic(_)) => None,
        _ => Some("kind"),
    }
}

fn differing_program(before: &Program, after: &Program) -> Option<&'static str> {
    let inputs = |program: &Program| -> Vec<_> {
        let inputs = program.inputs.iter();
        inputs.map(|input| input.name.clone()).collect()
    };
    let outputs = |program: &Program| -> Vec<_> {
        let outputs = program.outputs.iter();
        outputs.map(|output| output.name.clone()).collect()
    };
    if before.host.name() != after.host.name() {
        return Some("kind");
    }
    if inputs(before) != inputs(after) {
        return Some("input");
    }
    if outputs(before) != outputs(after) {
        return Some("output");
    }
    None
}

/// Whether another file runs, or the same one with other words.
fn is_another_version(before: &Program, after: &Program) -> bool {
    (&before.host, before.sha256) != (&after.host, after.sha256)
}

/// Where `after` runs another version of the program of `before`.
pub fn changes_program(before: &Application, after: &Application) -> bool {
    match (&before.kind, &after.kind) {
        (ApplicationKind::Program(before), ApplicationKind::Program(after)) => {
            is_another_version(before, after)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
