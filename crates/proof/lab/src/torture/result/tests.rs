use super::*;

/// A promise that came to this.
pub fn want(outcome: Outcome) -> Want {
    Want {
        id: "gap".into(),
        promised: "outputs go on".into(),
        seen: "12.0 ms".into(),
        outcome,
    }
}

/// A case with a trial for each of `wants`.
pub fn case(id: &str, wants: &[Want]) -> CaseResult {
    let trial = |(at, want): (usize, &Want)| Trial {
        number: at as u32 + 1,
        what: String::new(),
        primary: "left".into(),
        fault_ms: 10.0,
        gap_ms: Some(12.0),
        stalled_ms: 0.0,
        healed_ms: Some(300.0),
        writes: Count {
            accepted: 50,
            ..Count::default()
        },
        initial_starts: 0,
        planned_cold_starts: 0,
        takeovers: 0,
        wants: vec![want.clone()],
        said: Vec::new(),
        said_more: 0,
        events: vec!["0.1 ms left role".into()],
    };
    CaseResult {
        id: id.into(),
        title: format!("title of {id}"),
        promised: "more".into(),
        trials: wants.iter().enumerate().map(trial).collect(),
        said: Vec::new(),
        started_anew: 0,
        error: None,
    }
}

/// A result of `cases`.
pub fn result(cases: Vec<CaseResult>) -> TortureResult {
    TortureResult {
        schema: SCHEMA.into(),
        version: "0".into(),
        kernel: "Linux".into(),
        processors: 2,
        seed: 1,
        repetitions: 2,
        quick: false,
        interrupted: false,
        seconds: 1.0,
        held: cases.iter().all(CaseResult::held),
        stalls: (0, 0.0),
        frames: Tally::default(),
        cases,
        soak: None,
    }
}

#[test]
fn a_broken_promise_breaks_its_trial_and_a_case_without_trials_is_none() {
    let mut mixed = case("x", &[want(Outcome::Held)]);
    mixed.trials[0].wants.push(want(Outcome::Explained));
    assert_eq!(mixed.trials[0].outcome(), Outcome::Explained);
    assert!(mixed.held());
    mixed.trials[0].wants.push(want(Outcome::Broken));
    assert!(!mixed.held() && mixed.count(Outcome::Broken) == 1);
    assert!(!case("empty", &[]).held());
    let mut ended = case("ended", &[want(Outcome::Held)]);
    ended.error = Some("the plant ended".into());
    assert!(!ended.held());
}

#[test]
fn a_cold_start_by_plan_is_no_reset_and_a_second_one_is() {
    let mut trial = case("power-cut", &[want(Outcome::Held)]).trials.remove(0);
    (trial.planned_cold_starts, trial.initial_starts) = (1, 1);
    assert_eq!(trial.resets(), 0);
    trial.writes.resets = 2;
    assert_eq!(trial.resets(), 1);
}

#[test]
fn what_is_kept_can_be_shown_again() {
    let mut result = result(vec![case("quiet", &[want(Outcome::Held)])]);
    result.cases[0].trials[0].said.push((0.3, 0));
    let again: TortureResult = serde_json::from_str(&crate::torture::to_json(&result)).unwrap();
    assert_eq!(again, result);
}
