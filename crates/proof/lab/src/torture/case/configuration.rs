//! The backup comes back with one value changed, then with the right file.

use super::{Done, words};
use crate::demo::configuration::NODES;
use crate::torture::configuration::Wrong;
use crate::torture::judge::{Fault, Limits, TWO_PERIODS_NS};
use crate::torture::result::Want;
use crate::torture::stage::{Finding, MS, Stage};
use crate::torture::{TortureError, now_ns};

/// How long the backup is away.
const AWAY_MS: u64 = 300;
/// How long the wrong one is there: longer than any wait of a starting node.
const WRONG_MS: u64 = 2_500;
/// How long the right one has to be a synchronised backup.
const RETURN_NS: u64 = 3_000 * MS;

/// Does it.
pub fn run(stage: &mut Stage<'_>, wrong: Wrong) -> Done {
    let scene = stage.open()?;
    let (primary, backup) = (scene.primary, 1 - scene.primary);
    let epoch = scene.epoch;
    let file = stage.pair.path("wrong.toml");
    let right = std::fs::read_to_string(stage.pair.config());
    right
        .and_then(|text| std::fs::write(&file, wrong.spoil(&text)))
        .map_err(|error| TortureError::system(file.display().to_string(), error))?;
    let from_ns = stage.pair.kill_node(backup);
    stage.waiter.ms(AWAY_MS)?;
    let wrong_ns = now_ns();
    stage.pair.start_node(backup, &file)?;
    stage.waiter.ms(WRONG_MS)?;
    let right_ns = now_ns();
    stage.pair.stop_node(backup);
    stage.waiter.ms(50)?;
    let config = stage.pair.config();
    stage.pair.start_node(backup, &config)?;
    let fault = Fault {
        from_ns,
        to_ns: now_ns(),
    };
    let limits = Limits {
        heal_ns: RETURN_NS,
        ..Limits::gap(TWO_PERIODS_NS)
    };
    let mut finding = stage.close(scene, fault, &limits)?;
    let wants = [
        wrote_nothing(&finding, backup, (wrong_ns, right_ns)),
        stayed(&finding, primary, epoch),
        said_why(&finding, backup, (wrong_ns, right_ns)),
    ];
    finding.trial.wants.extend(wants);
    Ok((finding, fault))
}

fn wrote_nothing(finding: &Finding, backup: usize, (from_ns, to_ns): (u64, u64)) -> Want {
    let run = &finding.evidence.run;
    let its = |write: &&crate::runlog::Write| {
        write.writer == backup as u64 && (from_ns..to_ns).contains(&write.time_ns)
    };
    let (count, accepted) = run
        .writes
        .iter()
        .filter(its)
        .fold((0, 0), |(all, accepted), write| {
            (all + 1, accepted + u32::from(write.accepted))
        });
    Want::strict(
        "newcomer-writes-nothing",
        "the node with the wrong file writes nothing",
        count == 0,
        format!("{count} writes, {accepted} of them accepted"),
    )
}

fn stayed(finding: &Finding, primary: usize, epoch: u64) -> Want {
    let changes = finding
        .evidence
        .events
        .iter()
        .filter(|event| event.node == primary && event.text("event") == "role");
    let changes: Vec<_> = changes.map(|event| event.text("to")).collect();
    let later = finding
        .evidence
        .run
        .writes
        .iter()
        .filter(|write| write.epoch > epoch)
        .count();
    Want::strict(
        "primary-stays",
        "the primary keeps its role and its epoch",
        changes.is_empty() && later == 0,
        match changes.is_empty() {
            true => format!("stayed; {later} writes in a later epoch"),
            false => format!(
                "became {}; {later} writes in a later epoch",
                changes.join(", ")
            ),
        },
    )
}

fn said_why(finding: &Finding, backup: usize, (from_ns, to_ns): (u64, u64)) -> Want {
    let name = NODES[backup];
    let heard = finding.heard.iter().filter(|heard| heard.said.node == name);
    let of_status = heard
        .filter(|heard| (from_ns..to_ns).contains(&heard.at_ns))
        .any(|heard| {
            let mut texts = heard.said.weaknesses.iter().chain([&heard.said.cause]);
            texts.any(|text| text.contains("configuration"))
        });
    let of_log = finding.evidence.events.iter().any(|event| {
        event.node == backup
            && (from_ns..to_ns).contains(&event.time_ns)
            && (event.text("event") == "configuration_differs"
                || event.text("cause").contains("configuration"))
    });
    let said = words(finding, from_ns, to_ns);
    let said: Vec<_> = said
        .iter()
        .filter(|(_, text)| text.contains("configuration"))
        .collect();
    Want::strict(
        "newcomer-says-why",
        "the newcomer says in status and log that its configuration differs",
        of_status && of_log,
        match said.first() {
            Some((_, text)) => format!("status {of_status}, log {of_log}: {text}"),
            None => "nothing".into(),
        },
    )
}
