//! Whether a page stands alone: a report must be readable years later and without a network.

/// What only loads, or makes the page another one.
const TAGS: &[&str] = &["base", "embed", "frame", "iframe", "link", "object"];
/// What makes any other tag load something.
const ATTRIBUTES: &[&str] = &["background", "imagesrcset", "poster", "src", "srcset"];
/// What makes a style or a script load something, anywhere in the page.
const WORDS: &[&str] = &[
    "@import",
    "eventsource",
    "fetch(",
    "http-equiv",
    "image-set(",
    "import(",
    "sendbeacon",
    "url(",
    "websocket",
    "xmlhttprequest",
];

/// What in `page` makes a browser load something else; more is refused than need be.
pub fn loads(page: &str) -> Vec<String> {
    let page = page.to_ascii_lowercase();
    let words = WORDS.iter().filter(|word| page.contains(**word));
    let mut found: Vec<String> = words.map(|word| (*word).into()).collect();
    let tags = page.split('<').skip(1);
    let tags = tags.map(|rest| rest.split_once('>').map_or(rest, |(tag, _)| tag));
    found.extend(
        tags.filter(|tag| tag_loads(tag))
            .map(|tag| format!("<{tag}>")),
    );
    found
}

fn tag_loads(tag: &str) -> bool {
    let separates = |c: char| c.is_whitespace() || "\"'/".contains(c);
    let name = tag.split(separates).next().unwrap_or("");
    let attribute = |at| tag[..at].trim_end().rsplit(separates).next().unwrap_or("");
    let mut attributes = tag.match_indices('=').map(|(at, _)| attribute(at));
    TAGS.contains(&name)
        || attributes.any(|attribute| {
            ATTRIBUTES.contains(&attribute) || name != "a" && attribute.ends_with("href")
        })
}

#[cfg(test)]
mod tests {
    use super::loads;

    #[test]
    fn each_way_to_load_something_is_seen() {
        for part in [
            "<link href=more.css rel=stylesheet>",
            "<LINK\nREL='preload' HREF='/font'>",
            "<script src=\"https://example.org/x.js\"></script>",
            "<script type=module SRC = x.js></script>",
            "<img alt=''src='x.png'>",
            "<img/src=x.png>",
            "<img srcset=\"x.png 2x\">",
            "<source srcset=x.webp>",
            "<video poster=x.png></video>",
            "<audio src=x.ogg>",
            "<body background=x.png>",
            "<iframe srcdoc='<p>'></iframe>",
            "<iframe></iframe>",
            "<frame src=x>",
            "<object data=x.svg></object>",
            "<embed type=x>",
            "<base href=/>",
            "<meta http-equiv=refresh content='0;/x'>",
            "<image href='x.png'/>",
            "<use xlink:href=\"x.svg#a\"/>",
            "<style>@import 'x.css';</style>",
            "<p style='background: URL(x.png)'>",
            "<style>p { background: image-set('x.png' 1x) }</style>",
            "<script>fetch('/x')</script>",
            "<script>import('/x.js')</script>",
            "<script>new XMLHttpRequest()</script>",
            "<script>new WebSocket('ws:x')</script>",
            "<script>new EventSource('x')</script>",
            "<script>navigator.sendBeacon('x')</script>",
        ] {
            let page = format!("<!doctype html><p>before</p>{part}<p>after</p>");
            assert_ne!(loads(&page), [""; 0], "{part}");
        }
    }

    #[test]
    fn a_page_that_only_names_and_links_loads_nothing() {
        let page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
            content=\"width=device-width\"><p class=\"background src\">bench --peer src=x &lt;link&gt;</p>\
            <a href=\"#one-writer\">one writer</a><a href='https://example.org'>more</a>\
            <svg xmlns=\"http://www.w3.org/2000/svg\"><g class='link'/></svg>";
        assert_eq!(loads(page), [""; 0]);
    }
}
