//! The model beside what the text says: a test for each statement, with the text's figure in `paper`.

use std::sync::OnceLock;

use bumpless_impact::paper::{self, Claim, Part};

/// Each is made once for all tests.
fn parts() -> &'static [Part] {
    static PARTS: OnceLock<Vec<Part>> = OnceLock::new();
    PARTS.get_or_init(paper::all)
}

fn claim(name: &str) -> &'static Claim {
    let found = parts()
        .iter()
        .flat_map(|part| &part.claims)
        .find(|it| it.name == name);
    found.unwrap_or_else(|| panic!("no statement is called {name}"))
}

fn agrees(names: &[&str]) {
    for claim in names.iter().map(|name| claim(name)) {
        assert!(
            claim.agrees,
            "{}: the text: {}; the model: {}",
            claim.name, claim.text, claim.model
        );
    }
}

#[test]
fn equal_priorities_are_late_to_about_500_percent_and_handle_nearly_all() {
    agrees(&["equal-lateness", "equal-packets"]);
}

#[test]
fn a_task_of_higher_priority_is_late_by_about_8_percent_above_50000_only() {
    agrees(&["first-lateness", "first-packets"]);
}

#[test]
fn burst_with_600_in_20_ms_receives_30000_a_second_without_lateness() {
    agrees(&["burst", "burst-raised"]);
}

#[test]
fn hysteresis_works_until_interrupts_alone_drown_the_driver() {
    agrees(&["hysteresis-works", "hysteresis-drowns"]);
}

/// With the underestimation that section 5.3.1 names; without, the model says otherwise (below).
#[test]
fn budget_goes_on_at_0_76_after_a_drop_and_is_late_at_high_loads() {
    agrees(&["budget-slope", "budget-late"]);
}

#[test]
fn queue_is_in_time_with_100_and_500_and_late_with_750() {
    agrees(&[
        "queue-lateness",
        "queue-packets",
        "queue-small",
        "queue-best",
    ]);
}

#[test]
fn slack_is_never_late_and_hands_on_as_much_as_queue_at_every_rate() {
    agrees(&["slack-fixed", "slack-varying"]);
}

#[test]
fn a_packet_costs_each_task_what_chapter_4_measured() {
    agrees(&[
        "esp32-slopes",
        "esp32-above",
        "esp32-closed",
        "photon-slope",
        "photon-halves",
    ]);
}

#[test]
fn interrupt_moderation_does_what_figures_4_7_to_4_9_show() {
    agrees(&[
        "timer-relaxes",
        "counter-linear",
        "causes-balance",
        "bursts-gain",
    ]);
}

#[test]
fn a_driver_with_flows_takes_and_saves_what_figures_5_16_and_5_18_show() {
    agrees(&[
        "path-costs",
        "flows-unharmed",
        "flows-cut",
        "flood-hurts",
        "polling-drops",
    ]);
}

/// What the model says otherwise is named here, so that a change of it is noticed, and says why.
#[test]
fn what_the_model_says_otherwise_is_known_and_has_its_reason() {
    let others = parts()
        .iter()
        .flat_map(|part| &part.claims)
        .filter(|it| !it.agrees);
    let names: Vec<&str> = others.clone().map(|it| it.name).collect();
    assert_eq!(
        names,
        ["lateness-linear", "budget-slope-exact", "flood-borne"],
        "{others:#?}",
        others = others.clone().collect::<Vec<_>>()
    );
    for claim in others {
        assert!(!claim.reason.is_empty(), "{}", claim.name);
    }
}

#[test]
fn every_picture_has_its_own_name_and_the_page_shows_all() {
    // The figure that is measured is made for each page.
    let measured = [paper::core_latencies()];
    let page = bumpless_impact::report::page("0", parts())
        + &bumpless_impact::report::page("0", &measured);
    let mut names: Vec<&str> = Vec::new();
    let all = parts().iter().chain(&measured);
    for picture in all.flat_map(|part| &part.pictures) {
        assert!(!names.contains(&picture.file.as_str()), "{}", picture.file);
        names.push(&picture.file);
        assert!(page.contains(&picture.svg), "{}", picture.file);
        let none = ["NaN", "inf"]
            .into_iter()
            .find(|it| picture.svg.contains(it));
        assert_eq!(none, None, "a number that is none in {}", picture.file);
    }
    for figure in [
        "4-4", "4-5", "4-7", "4-8", "4-9", "5-8", "5-9", "5-10", "5-16", "5-17", "5-18",
    ] {
        assert!(
            names.iter().any(|name| name.starts_with(figure)),
            "{figure}"
        );
    }
    let loaded = ["src=", "@import", "url("]
        .into_iter()
        .find(|it| page.contains(it));
    assert_eq!(loaded, None);
}
