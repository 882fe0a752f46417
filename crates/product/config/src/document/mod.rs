//! What people read, written from the schema: the sample file and the reference.

mod reference;
mod sample;

pub use reference::reference;
pub use sample::sample;

/// A documentation text taken apart: its paragraphs, and what follows `Cost:` and `Hazard:`.
struct About {
    paragraphs: Vec<String>,
    cost: Option<String>,
    hazard: Option<String>,
}

/// Takes `text` apart. Lines of a paragraph are joined; an empty line, `Cost:` and `Hazard:` end it.
fn about(text: &str) -> About {
    let mut paragraphs: Vec<String> = vec![String::new()];
    for line in text.lines().map(str::trim) {
        let begins = line.is_empty() || line.starts_with("Cost: ") || line.starts_with("Hazard: ");
        if begins {
            paragraphs.push(String::new());
        }
        if let Some(last) = paragraphs.last_mut() {
            if !last.is_empty() && !line.is_empty() {
                last.push(' ');
            }
            last.push_str(line);
        }
    }
    let mut about = About {
        paragraphs: Vec::new(),
        cost: None,
        hazard: None,
    };
    for paragraph in paragraphs
        .into_iter()
        .filter(|paragraph| !paragraph.is_empty())
    {
        if let Some(cost) = paragraph.strip_prefix("Cost: ") {
            about.cost = Some(cost.to_owned());
        } else if let Some(hazard) = paragraph.strip_prefix("Hazard: ") {
            about.hazard = Some(hazard.to_owned());
        } else {
            about.paragraphs.push(paragraph);
        }
    }
    about
}

/// `text` in lines of at most `width` characters, each after `prefix`; longer words stay whole.
fn wrap(out: &mut String, prefix: &str, width: usize, text: &str) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = prefix.chars().count() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && longer > width {
            out.push_str(prefix);
            out.push_str(&line);
            out.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        out.push_str(prefix);
        out.push_str(&line);
        out.push('\n');
    }
}

/// `text` with its first letter a capital.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests;
