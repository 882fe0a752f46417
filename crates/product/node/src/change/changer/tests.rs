use bumpless_base::{Duration, NodeId, Role};
use bumpless_transfer::ChannelPlace;

use super::*;
use crate::build::build_cores;
use crate::wiring::Wiring;

const TABLE20: &str = include_str!("../../../../../../examples/table20.toml");

/// A node that has agreed on a change of two applications, which change together.
struct Agreed {
    changer: Changer,
    board: ChangeBoard,
    parts: Parts,
    now: Instant,
}

impl Agreed {
    fn new(together: bool) -> Self {
        let config = Config::parse(TABLE20, "table20").unwrap();
        let wiring = Wiring::new(&config, NodeId(0));
        let parts = Parts::new(&config, &wiring);
        let now = Instant::ZERO + Duration::from_secs(1);
        let (cores, _) = build_cores(&config, &wiring, 1, now).unwrap();
        let factories = (cores.sender.factory(), cores.receiver.factory());
        let mut next = config.clone();
        next.change.together = together;
        for application in &mut next.applications[..2] {
            application.expiry = application.expiry * 2;
        }
        let admission = Admission::of(&config).unwrap();
        let mut changer = Changer::new((&config, admission), parts.clone(), factories);
        changer.apply((next, "", ""), now).unwrap();
        let board = ChangeBoard::default();
        let mut agreed = Self {
            changer,
            board,
            parts,
            now,
        };
        assert_eq!(agreed.steps(), ["keep", "prepare"]);
        agreed.board.set_due();
        agreed
    }

    fn set_role(&self, role: Role) {
        self.parts
            .shared(ChannelPlace(0))
            .gate
            .set_role(role, Instant::ZERO);
    }

    fn poll(&mut self) -> Option<Step> {
        self.changer.poll(&self.board, self.now)
    }

    /// Takes all steps that there are, and says which.
    fn steps(&mut self) -> Vec<String> {
        let mut steps = Vec::new();
        while let Some(step) = self.poll() {
            steps.push(self.take(step, Ok(())));
        }
        steps.retain(|step| !step.is_empty());
        steps
    }

    /// Takes a step, of which `tuned` comes if it has applications change.
    fn take(&mut self, step: Step, tuned: Result<(), String>) -> String {
        match step {
            Step::Keep(_) => {
                self.changer.kept(Ok(()));
                "keep".into()
            }
            Step::MakeLast => {
                self.changer.made(Ok(()), self.now);
                "make last".into()
            }
            Step::Order(order) => {
                let name = match order {
                    ChangeOrder::Prepare { .. } => "prepare",
                    ChangeOrder::Switch { .. } => "switch",
                    _ => "",
                };
                let result = Ok(());
                self.changer
                    .answered(ChangeAnswer { order, result }, self.now);
                name.into()
            }
            Step::Tune(..) => {
                self.changer.tuned(tuned, self.now);
                "one alone".into()
            }
            Step::TuneTogether { all, last } => {
                self.changer.tuned(tuned, self.now);
                format!(
                    "{} together{}",
                    all.len(),
                    if last { " at last" } else { "" }
                )
            }
            Step::Tell(_) | Step::Forget | Step::Free(_) => String::new(),
            Step::Stop(_) | Step::Start(_) => unreachable!("nobody comes or goes"),
        }
    }
}

#[test]
fn a_backup_changes_before_it_says_so_and_a_primary_after_its_partner() {
    let mut backup = Agreed::new(true);
    backup.set_role(Role::Backup);
    assert_eq!(backup.steps(), ["make last", "2 together", "switch"]);
    backup.board.set_followed();
    assert_eq!(backup.steps(), [""; 0], "both have changed already");
    assert_eq!(backup.changer.doing(), None);

    let mut primary = Agreed::new(true);
    primary.set_role(Role::Primary);
    assert_eq!(primary.steps(), ["make last", "switch"]);
    primary.board.set_followed();
    assert_eq!(primary.steps(), ["2 together at last"]);
    assert_eq!(primary.changer.doing(), None);
}

#[test]
fn without_being_asked_to_change_together_each_does_alone() {
    let mut node = Agreed::new(false);
    assert_eq!(node.steps(), ["make last", "switch"]);
    node.board.set_followed();
    assert_eq!(node.steps(), ["one alone", "one alone"]);
}

#[test]
fn a_backup_that_cannot_tries_again_and_then_the_change_goes_on() {
    let mut backup = Agreed::new(true);
    backup.set_role(Role::Backup);
    let step = backup.poll().unwrap();
    assert_eq!(backup.take(step, Ok(())), "make last");
    for attempt in 0..5 {
        let step = backup.poll().unwrap();
        assert_eq!(backup.take(step, Err("why".into())), "2 together");
        if attempt < 4 {
            assert!(backup.poll().is_none(), "not at once");
            assert_eq!(backup.changer.doing(), Some("being made"));
            backup.now = backup.changer.wakes_at();
        }
    }
    assert_eq!(backup.steps(), ["switch"]);
    backup.board.set_followed();
    assert_eq!(backup.steps(), ["2 together at last"]);
}

#[test]
fn who_becomes_primary_while_it_waits_changes_when_its_partner_has() {
    let mut node = Agreed::new(true);
    node.set_role(Role::Backup);
    let step = node.poll().unwrap();
    assert_eq!(node.take(step, Ok(())), "make last");
    let step = node.poll().unwrap();
    let moved = Err("the role of this node changed".into());
    assert_eq!(node.take(step, moved), "2 together");
    node.set_role(Role::Primary);
    node.now = node.changer.wakes_at();
    assert_eq!(node.steps(), ["switch"]);
    node.board.set_followed();
    assert_eq!(node.steps(), ["2 together at last"]);
}
