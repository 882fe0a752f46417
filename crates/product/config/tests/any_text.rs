//! No text makes the parser panic, and whatever it refuses it explains.

use bumpless_config::{Config, Problem, sample};
use proptest::prelude::*;

/// Texts that stand where a value may.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}").replace("NaN", "nan")),
        "[ -~]{0,12}".prop_map(|text| format!("{text:?}")),
        prop::sample::select(vec![
            "0",
            "1",
            "-1",
            "1.0",
            "true",
            "false",
            "nan",
            "inf",
            "[]",
            "{}",
            "[[]]",
            "[1, 2]",
            "[\"A\"]",
            "[\"A\", \"A\"]",
            "[\"left\"]",
            "\"A\"",
            "\"\"",
            "\"64 MB\"",
            "\"4 GiB\"",
            "{ A = 1 }",
            "{ A = \"192.0.2.7:1\" }",
            "\"[::1]:1\"",
            "1979-05-27",
            "9223372036854775807",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,8}",
    ]
}

fn explained(text: &str, problems: &[Problem]) -> Result<(), TestCaseError> {
    prop_assert!(!problems.is_empty());
    let lines = text.matches('\n').count() + 1;
    for problem in problems {
        prop_assert!((1..=lines).contains(&problem.line), "{problem}");
        prop_assert!(
            !problem.wrong.is_empty() && !problem.right.is_empty(),
            "{problem}"
        );
        prop_assert!(!problem.to_string().contains('\n'), "{problem}");
    }
    prop_assert!(problems.windows(2).all(|pair| pair[0].line <= pair[1].line));
    Ok(())
}

fn examples() -> [String; 3] {
    let table20 = include_str!("../../../../examples/table20.toml").to_owned();
    let two = include_str!("../../../../examples/two-computers.toml").to_owned();
    [sample(), table20, two]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_read_or_explained(text in "\\PC{0,200}") {
        if let Err(problems) = Config::parse(&text, "t") {
            explained(&text, &problems)?;
        }
    }

    #[test]
    fn any_lines_of_toml_are_read_or_explained(
        lines in prop::collection::vec(
            prop_oneof![
                "\\[\\[?(pair|timing|network|node|application|application.field|x)\\]?\\]",
                ("[a-z_]{1,12}", value()).prop_map(|(key, value)| format!("{key} = {value}")),
                "[ -~]{0,20}",
            ],
            0..20,
        ),
    ) {
        let text = lines.join("\n");
        if let Err(problems) = Config::parse(&text, "t") {
            explained(&text, &problems)?;
        }
    }

    #[test]
    fn a_changed_or_removed_field_is_accepted_or_explained(
        example in 0usize..3,
        picks in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(value())), 1..4),
    ) {
        let text = &examples()[example];
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (pick, value) in picks {
            let fields: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].contains(" = ")).collect();
            let at = fields[pick.index(fields.len())];
            let key = lines[at].split(" = ").next().unwrap_or_default().trim_start_matches('#').to_owned();
            lines[at] = value.map_or_else(String::new, |value| format!("{key} = {value}"));
        }
        let changed = lines.join("\n");
        if let Err(problems) = Config::parse(&changed, "t") {
            explained(&changed, &problems)?;
        }
    }

    #[test]
    fn a_cut_file_is_accepted_or_explained(example in 0usize..3, at in any::<prop::sample::Index>()) {
        let text = &examples()[example];
        let cut = at.index(text.len());
        let cut = (0..=cut).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        if let Err(problems) = Config::parse(&text[..cut], "t") {
            explained(&text[..cut], &problems)?;
        }
    }
}

#[test]
fn deep_nesting_and_huge_files_are_refused() {
    for text in [
        "[".repeat(100_000),
        format!("x = {}", "[".repeat(100_000)),
        "a.".repeat(50_000),
    ] {
        assert!(Config::parse(&text, "t").is_err());
    }
    let huge = "#".repeat(bumpless_config::MAX_FILE_LEN + 1);
    assert!(
        Config::parse(&huge, "t").unwrap_err()[0]
            .wrong
            .contains("bytes")
    );
    let many = "[[application]]\nname = \"a\"\n".repeat(10_000);
    assert!(Config::parse(&many, "t").is_err());
}
