use super::*;

fn after_a_role(cold: bool, holding: Holding) -> Newest {
    let mut newest = Newest::default();
    newest.doubt();
    newest.make(Epoch(2));
    newest.end_role(1, ReferenceSet::EMPTY, cold);
    newest.hold(holding);
    newest
}

/// what comes late, from before that role, is not the newest state either.
#[test]
fn a_role_in_doubt_in_which_nothing_was_made_ends_in_doubt() {
    let all = Holding::until(Some(Instant::FAR_FUTURE));
    let some = Holding {
        fresh_until: None,
        usable_until: None,
        ..all
    };
    for (cold, holding, in_doubt) in [
        (true, some, true),
        (true, all, false),
        (false, some, false),
        (false, all, false),
    ] {
        let mut newest = after_a_role(cold, holding);
        assert_eq!(newest.old, in_doubt, "{cold} {holding:?}");
        newest.hold(all);
        assert_eq!(newest.old, in_doubt);
        // Only the first word after a role is about that role.
        newest.hold(some);
        assert_eq!(newest.old, in_doubt);
        newest.make(Epoch(4));
        assert!(!newest.old);
    }
}
