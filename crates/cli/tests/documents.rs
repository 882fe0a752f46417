//! What documents say of tests is true: the file that a link names is there, and has that test.

use std::path::Path;

#[test]
fn every_test_that_a_document_names_exists() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = std::fs::read_to_string(docs.join("threat-model.md")).unwrap();
    let mut count = 0;
    let mut missing = Vec::new();
    for link in text.split("[`").skip(1) {
        let (name, rest) = link.split_once("`](").expect("a link to a test");
        let (path, _) = rest.split_once(')').expect("the end of a link");
        let source = std::fs::read_to_string(docs.join(path));
        let has = source.is_ok_and(|source| source.contains(&format!("fn {name}(")));
        if !has {
            missing.push(format!("{name} in {path}"));
        }
        count += 1;
    }
    assert!(missing.is_empty(), "not there: {missing:#?}");
    assert!(count > 30, "the document's links are read: {count}");
}
