//! The text of a NodeId (OPC 10000-6, 5.1.12).

/// The namespace of OPC UA itself, whose number is 0 in every server.
const OPC_UA: &str = "http://opcfoundation.org/UA/";

/// Whether `text` is one.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("is {text:?}: {why}"));
    let (namespace, rest) = match split(text) {
        Ok(parts) => parts,
        Err(why) => return refused(why),
    };
    if let Err(why) = namespace.check() {
        return refused(why);
    }
    let Some((kind, identifier)) = rest.split_once('=') else {
        return refused("an identifier begins with i=, s=, g= or b=");
    };
    match kind {
        "i" if is_number::<u32>(identifier) => Ok(()),
        "i" => refused("a numeric identifier is from 0 to 4294967295"),
        "s" if !identifier.is_empty() => Ok(()),
        "s" => refused("the identifier is empty"),
        "g" if is_guid(identifier) => Ok(()),
        "g" => refused("a GUID has 8-4-4-4-12 hexadecimal digits"),
        "b" if is_base64(identifier) => Ok(()),
        "b" => refused("an opaque identifier is in Base64"),
        "svr" => refused("svr= names another server than the device's"),
        _ => refused("an identifier begins with i=, s=, g= or b="),
    }
}

/// How a text says which namespace it means.
enum Namespace<'a> {
    /// Not at all: number 0.
    None,
    Number(&'a str),
    Uri(&'a str),
}

impl Namespace<'_> {
    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Number(number) if !is_number::<u16>(number) => {
                Err("a namespace is a number from 0 to 65535")
            }
            Self::Uri("") => Err("the URI of the namespace is empty"),
            Self::Uri(OPC_UA) => Err("the namespace of OPC UA itself is left out, as in i=2259"),
            Self::Uri(uri) if uri.contains(|it: char| it.is_control() || it == ' ') => {
                Err("a URI has no spaces")
            }
            Self::Uri(uri) if !is_escaped(uri) => {
                Err("in a URI, ; is written %3B and % is written %25")
            }
            _ => Ok(()),
        }
    }
}

/// The namespace of a text, and what is left of it.
fn split(text: &str) -> Result<(Namespace<'_>, &str), &'static str> {
    let missing = "an identifier is missing after the namespace";
    let parts = |rest: &'static str| text.strip_prefix(rest).map(|it| it.split_once(';'));
    match (parts("ns="), parts("nsu=")) {
        (Some(Some((number, rest))), _) => Ok((Namespace::Number(number), rest)),
        (_, Some(Some((uri, rest)))) => Ok((Namespace::Uri(uri), rest)),
        (Some(None), _) | (_, Some(None)) => Err(missing),
        (None, None) => Ok((Namespace::None, text)),
    }
}

/// The same for all texts of one NodeId: without the namespace 0, zeros before numbers, and capitals in a GUID or an
/// escape. Whether a namespace's number is that of a URI, the server alone knows.
pub(crate) fn plain(text: &str) -> String {
    let number = |digits: &str| digits.trim_start_matches('0').to_owned();
    let (namespace, rest) = match split(text) {
        Ok((Namespace::Number(namespace), rest)) => (format!("ns={}", number(namespace)), rest),
        Ok((Namespace::Uri(uri), rest)) => (format!("nsu={}", uri.replace("%3b", "%3B")), rest),
        Ok((Namespace::None, rest)) => ("ns=".to_owned(), rest),
        Err(_) => ("ns=".to_owned(), text),
    };
    let rest = match rest.split_once('=') {
        Some(("i", digits)) => format!("i={}", number(digits)),
        Some(("g", guid)) => format!("g={}", guid.to_ascii_lowercase()),
        _ => rest.to_owned(),
    };
    format!("{namespace};{rest}")
}

/// Whether each percent sign begins one of the two escapes.
fn is_escaped(uri: &str) -> bool {
    let mut after = uri.split('%').skip(1);
    after.all(|it| it.starts_with("25") || it.starts_with("3B") || it.starts_with("3b"))
}

/// Digits alone, as many as the number holds.
fn is_number<N: std::str::FromStr>(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<N>().is_ok()
}

fn is_guid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    let lengths: Vec<_> = groups.iter().map(|group| group.len()).collect();
    let hexadecimal = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(hexadecimal)
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let padding = text.len() - digits.len();
    !digits.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && digits.bytes().all(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_node_id_are_told_to_be_the_same_and_others_are_not() {
        for (one, other) in [
            ("i=7", "ns=0;i=007"),
            ("ns=02;s=A", "ns=2;s=A"),
            ("nsu=urn:a%3bb;i=07", "nsu=urn:a%3Bb;i=7"),
            (
                "g=09087E75-8e5e-499b-954f-f2a9603db28a",
                "g=09087e75-8E5E-499b-954f-f2a9603db28a",
            ),
        ] {
            assert_eq!(plain(one), plain(other));
        }
        for (one, other) in [
            ("i=7", "i=70"),
            ("ns=2;s=A", "ns=2;s=a"),
            ("i=7", "s=7"),
            ("s=07", "s=7"),
            ("nsu=urn:a;s=7", "nsu=urn:A;s=7"),
            ("nsu=urn:a;s=7", "s=7"),
        ] {
            assert_ne!(plain(one), plain(other));
        }
    }

    #[test]
    fn node_ids_of_the_standard_are_taken_and_others_say_why_not() {
        for good in [
            "i=2259",
            "ns=2;s=Boiler.Level",
            "ns=2;s=a;b=c",
            "ns=0;i=4294967295",
            "ns=1;g=09087e75-8e5e-499b-954f-f2a9603db28a",
            "ns=1;b=M/RbKBsRVkePCePcx24oRA==",
            "nsu=http://example.org/UA/boiler;s=a;b=c%",
            "nsu=urn:100%25:a%3Bb%3b;i=1012",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", "begins with"),
            ("Boiler", "begins with"),
            ("ns=2", "is missing"),
            ("ns=65536;i=1", "from 0 to 65535"),
            ("ns=+1;i=1", "from 0 to 65535"),
            ("ns=2;x=1", "begins with"),
            ("ns=2;i=4294967296", "numeric"),
            ("ns=2;i=", "numeric"),
            ("i=-1", "numeric"),
            ("ns=2;s=", "empty"),
            ("g=09087e75", "GUID"),
            ("b=M", "Base64"),
            ("nsu=urn:a", "is missing"),
            ("nsu=;i=1", "URI of the namespace is empty"),
            ("nsu=urn:a b;i=1", "no spaces"),
            ("nsu=urn:100%;i=1", "%25"),
            ("nsu=urn:a%20b;i=1", "%25"),
            ("nsu=urn:a;x=1", "begins with"),
            ("nsu=urn:a;i=x", "numeric"),
            ("nsu=http://opcfoundation.org/UA/;i=2259", "left out"),
            ("svr=1;nsu=urn:a;i=1", "another server"),
            ("b=====", "Base64"),
        ] {
            let wrong = check(bad).unwrap_err();
            assert!(wrong.contains(why), "{bad}: {wrong}");
        }
    }
}
