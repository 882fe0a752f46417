use super::super::result::tests::{case, result, want};
use super::*;
use bumpless_testing::page::loads;

#[test]
fn a_page_shows_every_case_and_what_nodes_say_cannot_become_markup() {
    let mut broken = case("flapping", &[want(Outcome::Broken), want(Outcome::Held)]);
    broken.said.push(Said {
        node: "left".into(),
        role: "primary".into(),
        writes_outputs: true,
        redundancy: "lost".into(),
        cause: "<script>alert(1)</script>".into(),
        links_down: vec!["A".into()],
        weaknesses: Vec::new(),
    });
    let page = page(&result(vec![case("quiet", &[want(Outcome::Held)]), broken]));
    assert!(page.contains("quiet") && page.contains("flapping"));
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"));
    assert!(page.contains("verdict bad") && page.contains("dot broken"));
    assert_eq!(loads(&page), [""; 0], "it needs nothing else");
}
