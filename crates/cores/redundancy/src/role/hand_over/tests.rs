use super::*;
use crate::id::GroupId;
use crate::role::agreement::Agreement;
use crate::role::state::{Simplex, Tenure};
use crate::setup::GroupSetup;
use alloc::vec;
use bumpless_base::{Candidate, NodeId, PeerId};
use bumpless_wire::NO_REFERENCE;

fn surroundings(timing: &Timing, now: Instant) -> Surroundings<'_> {
    Surroundings {
        timing,
        now,
        reachable: true,
        unreachable_since: Instant::ZERO,
        session: 7,
        duplicate_partner: false,
        duplicate_self: false,
        conflict: None,
        late: false,
    }
}

fn entry(role: Role, flags: GroupFlags) -> GroupEntry {
    GroupEntry {
        group: 0,
        role,
        epoch: Epoch(2),
        flags,
        reference: NO_REFERENCE,
        reference_version: 0,
        used: Epoch(0),
        token: 3,
    }
}

/// Candidate 1, which has promised the role to its partner.
fn promised(until: Instant) -> RoleMachine {
    let agreement = Agreement::new(vec![], Instant::ZERO);
    let setup = GroupSetup {
        id: GroupId(0),
        candidates: [NodeId(0), NodeId(1)],
        references: vec![],
        without_reference: true,
        hot_restart: Duration::from_secs(5),
        stop_when_old: false,
    };
    let mut machine = RoleMachine::new(
        &setup,
        PeerId(0),
        Candidate(1),
        agreement,
        (&Timing::default(), Instant::ZERO),
    );
    machine.lasting.promised_until = until;
    machine
}

#[test]
fn a_promise_is_void_only_when_its_beneficiary_says_that_it_hands_over() {
    let timing = Timing::default();
    let (now, until) = (Instant::from_nanos(1_000), Instant::from_nanos(9_000));
    for role in [Role::Starting, Role::Backup, Role::Primary, Role::Stopped] {
        for bits in 0..=u8::MAX {
            let flags = [1, 2, 4, 8, 16, 32, 64].into_iter();
            let named = [
                GroupFlags::SYNCED,
                GroupFlags::GRANTING,
                GroupFlags::SWITCHOVER_REQUEST,
                GroupFlags::HANDING_OVER,
                GroupFlags::ELIGIBLE,
                GroupFlags::SIMPLEX,
                GroupFlags::DUPLICATE,
            ];
            let flags = flags
                .zip(named)
                .fold(GroupFlags::EMPTY, |set, (bit, flag)| {
                    set.with(flag, bits & bit != 0)
                });
            let (mut machine, mut out) = (promised(until), Outbox::new(8));
            machine.hear_hand_over(&entry(role, flags), &surroundings(&timing, now), &mut out);
            let void = role == Role::Backup && flags.contains(GroupFlags::HANDING_OVER);
            assert_eq!(
                machine.lasting.promised_until != until,
                void,
                "{role:?} {flags:?}"
            );
        }
    }
}

/// Candidate 0 of no reference point, primary since `now`: it may write without asking anybody.
fn primary(s: &Surroundings<'_>) -> RoleMachine {
    let mut machine = promised(Instant::ZERO);
    machine.terms.index = Candidate(1);
    machine.state = RoleState::Primary(Tenure {
        cold: false,
        incarnation: s.session,
        lapse: None,
        simplex: Simplex::at_beginning(s.now),
        draining: None,
    });
    machine
}

#[test]
fn a_switchover_is_abandoned_when_no_epoch_is_left_to_offer() {
    let timing = Timing::default();
    let now = Instant::from_nanos(1);
    let s = surroundings(&timing, now);
    let ready = GroupFlags::SYNCED.with(GroupFlags::GRANTING, true);
    for (epoch, aborted) in [(u32::MAX - 3, false), (u32::MAX - 1, true)] {
        let (mut machine, mut out) = (primary(&s), Outbox::new(8));
        (machine.lasting.stamped, machine.lasting.observed) = (Epoch(epoch | 1), Epoch(epoch | 1));
        machine.counterpart.entry = Some(entry(Role::Backup, ready));
        machine.command_switchover(&s, &mut out).unwrap();
        machine.hand_over_ready(&s, &mut out);
        assert_eq!(machine.role() == Role::Primary, aborted, "{epoch}");
        assert_eq!(machine.offered().is_none(), aborted);
    }
}

#[test]
fn another_session_is_promised_nothing_before_the_earlier_promise_ends() {
    let timing = Timing::default();
    let (now, until) = (Instant::from_nanos(1_000), Instant::from_nanos(9_000));
    let (mut machine, mut out) = (promised(until), Outbox::new(8));
    machine.state.set_granting(true);
    machine.forget_partner(&surroundings(&timing, now), &mut out);
    let mut grants = |now, duplicate_partner| {
        let s = Surroundings {
            duplicate_partner,
            ..surroundings(&timing, now)
        };
        let entry = machine.promise_and_say(Some(now), &s);
        entry.flags.contains(GroupFlags::GRANTING)
    };
    assert!(!grants(now, false));
    assert!(!grants(until, true), "nor to one of two");
    assert!(grants(until, false));
}

#[test]
fn only_a_later_primary_makes_it_history_that_this_node_was_ahead() {
    for (epoch, role, history) in [
        (5, Role::Primary, true),
        (3, Role::Primary, false),
        (5, Role::Backup, false),
    ] {
        let mut machine = promised(Instant::ZERO);
        machine.lasting.stamped = Epoch(4);
        machine.lasting.left_ahead = true;
        let heard = entry(role, GroupFlags::EMPTY);
        machine.counterpart.entry = Some(GroupEntry {
            used: Epoch(epoch),
            ..heard
        });
        machine.fall_behind();
        assert_eq!(!machine.says_simplex(), history, "{epoch} {role:?}");
    }
}

#[test]
fn a_hand_over_to_a_backup_that_becomes_unfit_is_given_up_for_that() {
    let timing = Timing::default();
    let s = surroundings(&timing, Instant::from_nanos(1));
    let ready = GroupFlags::SYNCED.with(GroupFlags::GRANTING, true);
    let unfit = GroupFlags::UNFIT.with(GroupFlags::GRANTING, true);
    for (flags, cause) in [
        (unfit, SwitchoverRefused::BackupUnfit),
        (GroupFlags::EMPTY, SwitchoverRefused::BackupNotSynced),
    ] {
        let (mut machine, mut out) = (primary(&s), Outbox::new(8));
        machine.counterpart.entry = Some(entry(Role::Backup, ready));
        machine.command_switchover(&s, &mut out).unwrap();
        machine.counterpart.entry = Some(entry(Role::Backup, flags));
        machine.check_hand_over(&s, &mut out);
        let events = core::iter::from_fn(|| out.events.pop());
        let aborted = Event::HandOverAborted {
            group: GroupId(0),
            cause,
        };
        assert_eq!(events.last(), Some(aborted));
        assert_eq!(machine.role(), Role::Primary);
        assert_eq!(machine.command_switchover(&s, &mut out), Err(cause));
    }
}
