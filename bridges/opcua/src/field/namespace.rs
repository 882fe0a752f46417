//! Where a node is: its namespace by the number that it has in every session, or by its URI, whose number each session
//! must ask for (OPC 10000-6, 5.1.12; OPC 10000-5, 6.3.1).

use std::str::FromStr;

use opcua::types::{DataValue, NodeId, Variant};

/// So many of a server's URIs are told to people.
const TOLD_MAX: usize = 32;

/// The node of a value, as the configuration names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// In the namespace whose number is in it, if there is no URI.
    node: NodeId,
    uri: Option<String>,
}

impl Place {
    /// What `text` names; `None`: nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let (uri, rest) = match text.strip_prefix("nsu=") {
            Some(rest) => rest.split_once(';')?,
            None => {
                let node = NodeId::from_str(text).ok()?;
                return Some(Self { node, uri: None });
            }
        };
        let uri = Some(unescaped(uri)?).filter(|uri| !uri.is_empty())?;
        // Another namespace beside the URI would be one too many.
        let node = NodeId::from_str(rest).ok()?;
        (!rest.starts_with("ns")).then_some(Self {
            node,
            uri: Some(uri),
        })
    }

    /// Whether the server must be asked for its namespaces.
    pub fn needs_server(&self) -> bool {
        self.uri.is_some()
    }

    /// The node in a session with a server that has `namespaces`.
    fn resolve(&self, namespaces: &[String]) -> Option<NodeId> {
        let Some(uri) = &self.uri else {
            return Some(self.node.clone());
        };
        let at = namespaces.iter().position(|it| it == uri)?;
        Some(NodeId {
            namespace: u16::try_from(at).ok()?,
            identifier: self.node.identifier.clone(),
        })
    }
}

fn unescaped(uri: &str) -> Option<String> {
    let mut parts = uri.split('%');
    let mut all = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        all.push(match code {
            "25" => '%',
            "3B" | "3b" => ';',
            _ => return None,
        });
        all += rest;
    }
    Some(all)
}

/// The server's URIs, by number, as it has answered.
pub fn of_server(array: &DataValue) -> Option<Vec<String>> {
    let Some(Variant::Array(array)) = &array.value else {
        return None;
    };
    let uri = |it: &Variant| match it {
        Variant::String(uri) => Some(uri.as_ref().to_owned()),
        _ => None,
    };
    array.values.iter().map(uri).collect()
}

/// All nodes in a session with a server that has `namespaces`, each place with what the configuration calls it.
///
/// # Errors
/// Which are in none of its namespaces, which these are, and what to do.
pub fn resolve<'a>(
    places: impl Iterator<Item = (&'a str, &'a Place)>,
    namespaces: &[String],
) -> Result<Vec<NodeId>, String> {
    let mut unknown = Vec::new();
    let mut nodes = Vec::new();
    for (name, place) in places {
        match place.resolve(namespaces) {
            Some(node) => nodes.push(node),
            None => unknown.push(format!("{name:?}")),
        }
    }
    if unknown.is_empty() {
        return Ok(nodes);
    }
    let has = namespaces.iter().take(TOLD_MAX).map(|it| format!("{it:?}"));
    let has = has.collect::<Vec<_>>().join(", ");
    let more = match namespaces.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let unknown = unknown.join(", ");
    Err(format!(
        "it has no namespace of the point {unknown}, but {has}{more}; correct the URI, or set the server up with it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespaces(uris: &[&str]) -> Vec<String> {
        uris.iter().map(|it| (*it).to_owned()).collect()
    }

    fn node(text: &str, uris: &[&str]) -> Result<NodeId, String> {
        let place = Place::parse(text).unwrap();
        let nodes = resolve([(text, &place)].into_iter(), &namespaces(uris));
        nodes.map(|mut nodes| nodes.remove(0))
    }

    #[test]
    fn a_uri_is_the_number_that_it_has_in_the_session() {
        let text = "nsu=urn:furnace;s=a;b=c";
        for (uris, number) in [
            (&["ua", "urn:server", "urn:furnace"][..], 2),
            (&["ua", "urn:server", "urn:other", "urn:furnace"], 3),
        ] {
            assert_eq!(node(text, uris), Ok(NodeId::new(number, "a;b=c")));
        }
        assert_eq!(node("ns=2;s=a", &["ua"]), Ok(NodeId::new(2, "a")));
        assert_eq!(node("i=7", &[]), Ok(NodeId::new(0, 7_u32)));
        let escaped = node("nsu=urn:100%25%3ba%3Bb;i=7", &["ua", "urn:100%;a;b"]);
        assert_eq!(escaped, Ok(NodeId::new(1, 7_u32)));
    }

    #[test]
    fn a_uri_that_the_server_does_not_have_is_told_with_those_that_it_has() {
        let told = node("nsu=urn:furnace;s=a", &["ua", "urn:Furnace"]).unwrap_err();
        for part in [
            "\"nsu=urn:furnace;s=a\"",
            "\"ua\", \"urn:Furnace\"",
            "correct",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let many: Vec<_> = (0..1000).map(|at| format!("urn:{at}")).collect();
        let place = Place::parse("nsu=urn:x;i=1").unwrap();
        let told = resolve([("x", &place)].into_iter(), &many).unwrap_err();
        assert!(told.contains("\"urn:31\" and 968 more"), "{told}");
    }

    #[test]
    fn what_names_no_node_is_refused() {
        for text in [
            "",
            "x",
            "nsu=urn:a",
            "nsu=;i=1",
            "nsu=urn:a;",
            "nsu=urn:a;x",
            "nsu=urn:a;ns=2;i=1",
            "nsu=urn:a%20b;i=1",
            "nsu=urn:a%;i=1",
            "nsu=urn:a%ü;i=1",
            "svr=1;nsu=urn:a;i=1",
        ] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }

    #[test]
    fn namespaces_are_those_of_the_answer_or_none() {
        let of = |value: Variant| of_server(&DataValue::new_now(value));
        let array = Variant::from(vec!["ua".to_owned(), "urn:a".to_owned()]);
        assert_eq!(of(array), Some(namespaces(&["ua", "urn:a"])));
        assert_eq!(of(Variant::from(vec![1_u32])), None);
        assert_eq!(of(Variant::from("ua")), None);
        assert_eq!(of_server(&DataValue::null()), None);
    }
}
