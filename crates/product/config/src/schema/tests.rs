use super::*;
use crate::reader::{Reader, TableReader};
use crate::section::Presence;
use toml_edit::Document;

#[test]
fn every_field_states_cost_and_hazard_and_ends_its_sentences() {
    for section in SECTIONS {
        for field in section.fields {
            let name = format!("{}.{}", section.path, field.key);
            for label in ["Cost: ", "Hazard: "] {
                assert_eq!(
                    field.about.matches(label).count(),
                    1,
                    "{name} lacks {label}"
                );
            }
            assert!(field.about.trim_end().ends_with('.'), "{name}");
            assert!(
                !field.unit.is_empty() && !field.shape.accepts().is_empty(),
                "{name}"
            );
        }
    }
}

#[test]
fn every_default_is_accepted_by_its_own_field() {
    for section in SECTIONS {
        let mut text = String::new();
        for field in section.fields {
            if let Presence::Default(value) = field.presence {
                text.push_str(&format!("{} = {value}\n", field.key));
            }
        }
        let problems = read_alone(section, &text);
        let wrong: Vec<_> = problems
            .iter()
            .filter(|p| p.wrong != "is missing")
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

fn read_alone(section: &SectionInfo, text: &str) -> Vec<crate::Problem> {
    let document = Document::parse(text).unwrap();
    let mut reader = Reader::new("test", text);
    let table = TableReader::new(&mut reader, document.as_table(), section.path.into(), 1);
    fn read<S: Section>(table: TableReader<'_>) {
        S::read(table);
    }
    let readers: [fn(TableReader<'_>); 20] = [
        read::<Pair>,
        read::<Timing>,
        read::<Transfer>,
        read::<Security>,
        read::<Realtime>,
        read::<Reception>,
        read::<Registration>,
        read::<PlanSettings>,
        read::<ChangeSettings>,
        read::<Network>,
        read::<Node>,
        read::<Reference>,
        read::<Group>,
        read::<Application>,
        read::<SetPoint>,
        read::<FieldIo>,
        read::<Device>,
        read::<Input>,
        read::<Output>,
        read::<StateSecurity>,
    ];
    let position = SECTIONS
        .iter()
        .position(|known| known.path == section.path)
        .unwrap();
    readers[position](table);
    reader.into_problems()
}

#[test]
fn keys_are_unique_within_a_section_and_paths_among_sections() {
    let mut paths = std::collections::BTreeSet::new();
    for section in SECTIONS {
        assert!(paths.insert(section.path));
        let mut keys = std::collections::BTreeSet::new();
        let all = section
            .fields
            .iter()
            .map(|field| field.key)
            .chain(section.parts.iter().copied());
        all.for_each(|key| assert!(keys.insert(key), "{key} twice in {}", section.path));
    }
}
