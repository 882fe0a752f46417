//! A configuration file.

use crate::input::Input;
use bumpless_config::{Config, Problem, sample};

/// Reads `bytes` as a configuration file. If the first byte is 0, the others are edits of a good
/// file, line by line; otherwise all of them are the file's text.
///
/// # Panics
/// If a refusal names no problem, or a problem lacks its line, cause or remedy; if the same text is
/// judged differently when it is read again.
pub fn run(bytes: &[u8]) {
    let text = match bytes.split_first() {
        Some((0, edits)) => edited(&mut Input::new(edits)),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    match Config::parse(&text, "t") {
        Ok(config) => check_accepted(&text, &config),
        Err(problems) => check_explained(&text, &problems),
    }
}

fn good_file(number: usize) -> String {
    match number {
        0 => sample(),
        1 => include_str!("../../../examples/quadruple-tank.toml").to_owned(),
        2 => include_str!("../../../examples/table20.toml").to_owned(),
        _ => include_str!("../../../examples/two-computers.toml").to_owned(),
    }
}

/// A good file with lines changed, as `input` says.
fn edited(input: &mut Input<'_>) -> String {
    let text = good_file(input.below(4));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..32 {
        if input.is_empty() || lines.is_empty() {
            break;
        }
        let operation = input.below(6);
        let at = usize::from(input.u16()) % lines.len();
        match operation {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => lines.insert(at, words(input)),
            // Takes an optional field into use.
            3 => lines[at] = lines[at].trim_start_matches(['#', ' ']).to_owned(),
            4 => lines.truncate(at),
            _ => {
                let key = lines[at].split('=').next().unwrap_or_default();
                lines[at] = format!("{key}= {}", words(input));
            }
        }
    }
    lines.join("\n")
}

fn words(input: &mut Input<'_>) -> String {
    let len = input.below(40);
    String::from_utf8_lossy(input.take(len)).into_owned()
}

fn check_accepted(text: &str, config: &Config) {
    let Ok(again) = Config::parse(text, "t") else {
        panic!("accepted, then refused: {text}");
    };
    assert_eq!(format!("{config:?}"), format!("{again:?}"));
    for node in &config.nodes {
        let id = config
            .node(&node.name)
            .expect("a node is found by its name");
        assert!(!config.partners(id).contains(&id), "{text}");
    }
}

fn check_explained(text: &str, problems: &[Problem]) {
    assert!(!problems.is_empty(), "refused without a problem: {text}");
    let lines = text.matches('\n').count() + 1;
    for problem in problems {
        assert!((1..=lines).contains(&problem.line), "{problem}");
        assert!(
            !problem.wrong.is_empty() && !problem.right.is_empty(),
            "{problem}"
        );
        assert!(!problem.to_string().contains('\n'), "{problem}");
    }
    assert!(problems.windows(2).all(|pair| pair[0].line <= pair[1].line));
    let Err(again) = Config::parse(text, "t") else {
        panic!("refused, then accepted: {text}");
    };
    assert_eq!(problems, again);
}
