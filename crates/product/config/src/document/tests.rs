use super::*;
use crate::Config;
use crate::schema::SECTIONS;

/// Compares a generated text with the file kept in the repository; with `BUMPLESS_WRITE=1` in the
/// environment, writes the file instead.
fn kept(path: &str, generated: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path);
    if std::env::var_os("BUMPLESS_WRITE").is_some() {
        std::fs::write(&path, generated).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == generated,
        "{} differs from what the schema says; run `BUMPLESS_WRITE=1 cargo test -p bumpless-config`",
        path.display()
    );
}

#[test]
fn the_kept_sample_is_the_generated_one() {
    kept("examples/quadruple-tank.toml", &sample());
}

#[test]
fn the_kept_reference_is_the_generated_one() {
    kept("spec/configuration.md", &reference());
}

#[test]
fn the_sample_is_valid_and_explains_every_field() {
    let text = sample();
    if let Err(problems) = Config::parse(&text, "sample") {
        panic!("{problems:#?}");
    }
    for section in SECTIONS {
        assert!(text.contains(&section.header()), "{}", section.path);
        for field in section.fields {
            let given = |line: &str| {
                line.trim_start_matches(['#', ' '])
                    .starts_with(&format!("{} =", field.key))
            };
            assert!(text.lines().any(given), "{}.{}", section.path, field.key);
        }
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn uncommenting_a_default_changes_nothing() {
    let config = Config::parse(&sample(), "sample").unwrap();
    let is_default = |line: &str| {
        line.strip_prefix('#')
            .is_some_and(|rest| !rest.starts_with(' ') && !rest.ends_with('='))
    };
    let written: Vec<String> = sample()
        .lines()
        .map(|line| {
            if is_default(line) {
                line[1..].to_owned()
            } else {
                line.to_owned()
            }
        })
        .collect();
    assert!(written.len() > 100 && written != sample().lines().collect::<Vec<_>>());
    let explicit = Config::parse(&written.join("\n"), "sample").unwrap();
    assert_eq!(explicit, config);
    assert_eq!(explicit.fingerprint(), config.fingerprint());
}

#[test]
fn wrapping_keeps_every_word_within_the_width() {
    let text = "one two three four five six seven eight nine ten";
    let mut out = String::new();
    wrap(&mut out, "# ", 14, text);
    assert!(
        out.lines()
            .all(|line| line.starts_with("# ") && line.len() <= 14),
        "{out}"
    );
    let words: Vec<&str> = out.split_whitespace().filter(|word| *word != "#").collect();
    assert_eq!(words.join(" "), text);
}
