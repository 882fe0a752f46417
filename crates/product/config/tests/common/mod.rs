//! Helpers of the tests that change the sample and look at what is reported.

use bumpless_config::{Config, Problem, sample};

/// What is wrong with `text`; nothing if it is accepted.
pub fn problems(text: &str) -> Vec<Problem> {
    Config::parse(text, "test.toml").err().unwrap_or_default()
}

/// The sample with `from` replaced, and the number of the first line that changed.
pub fn changed(from: &str, to: &str) -> (String, usize) {
    let text = sample();
    let at = text
        .find(from)
        .unwrap_or_else(|| panic!("the sample lacks {from}"));
    let line = text[..at].matches('\n').count() + 1;
    (text.replacen(from, to, 1), line)
}

/// Asserts that the change gives exactly one problem, on its line and with these words.
#[track_caller]
pub fn one(from: &str, to: &str, field: &str, wrong: &str, right: &str) {
    let (text, line) = changed(from, to);
    let found = problems(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    let problem = &found[0];
    assert_eq!(
        (problem.line, problem.field.as_str()),
        (line, field),
        "{problem}"
    );
    assert!(problem.wrong.contains(wrong), "{problem}");
    assert!(problem.right.contains(right), "{problem}");
}
