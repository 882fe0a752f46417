//! The text of a NodeId (OPC 10000-6, 5.3.1.10).

/// Whether `text` is one.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("is {text:?}: {why}"));
    let rest = match text.strip_prefix("ns=") {
        None => text,
        Some(rest) => match rest.split_once(';') {
            Some((namespace, rest)) if is_number::<u16>(namespace) => rest,
            Some(_) => return refused("a namespace is a number from 0 to 65535"),
            None => return refused("an identifier is missing after the namespace"),
        },
    };
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
        _ => refused("an identifier begins with i=, s=, g= or b="),
    }
}

/// The same for all texts of one NodeId: without the namespace 0, zeros before numbers, and capitals in a GUID.
pub(crate) fn plain(text: &str) -> String {
    let number = |digits: &str| digits.trim_start_matches('0').to_owned();
    let (namespace, rest) = match text.strip_prefix("ns=").and_then(|it| it.split_once(';')) {
        Some((namespace, rest)) => (number(namespace), rest),
        None => (String::new(), text),
    };
    let rest = match rest.split_once('=') {
        Some(("i", digits)) => format!("i={}", number(digits)),
        Some(("g", guid)) => format!("g={}", guid.to_ascii_lowercase()),
        _ => rest.to_owned(),
    };
    format!("ns={namespace};{rest}")
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
            ("b=====", "Base64"),
        ] {
            let wrong = check(bad).unwrap_err();
            assert!(wrong.contains(why), "{bad}: {wrong}");
        }
    }
}
