use super::*;
use crate::evaluate::{Limits, evaluate};
use crate::runlog::{Run, synthetic};
use bumpless_testing::page::loads;

fn page(run: &Run) -> String {
    let limits = Limits::default();
    let about = About {
        version: "0.0.0".into(),
        kernel: "Linux".into(),
        processors: 2,
    };
    render(run, &evaluate(run, &limits), &limits, &about)
}

#[test]
fn the_page_needs_nothing_else_and_stays_small() {
    let page = page(&synthetic::run());
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert_eq!(loads(&page), [""; 0]);
    assert!(page.contains("All ") && page.contains("promises held"));
    for plot in [
        "Levels of the controlled tanks",
        "pump voltages",
        "roles of both",
        "transfer times",
    ] {
        assert!(page.contains(plot), "{plot}");
    }
    if let Ok(path) = std::env::var("BUMPLESS_SYNTHETIC_REPORT") {
        std::fs::write(path, page).unwrap();
    }
}

#[test]
fn a_broken_promise_is_in_the_headline() {
    let mut run = synthetic::run();
    run.plant_lines_lost = None;
    let page = page(&run);
    assert!(page.contains("1 of ") && page.contains("✗ broken"));
}

#[test]
fn a_run_that_ended_before_it_began_still_gives_a_page() {
    assert!(page(&Run::default()).contains("broken"));
}
