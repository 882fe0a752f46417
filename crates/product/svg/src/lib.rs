//! Just enough SVG: shapes that take their colours from the page's style sheet, so that one drawing
//! serves light and dark.

#![forbid(unsafe_code)]

use std::fmt::Write;

/// A drawing in the making.
#[derive(Debug, Default)]
pub struct Svg {
    body: String,
}

/// `text` with what HTML would take for markup made harmless.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

impl Svg {
    /// A rectangle of the style `class`; `tip` is shown while the pointer rests on it.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (w, h): (f64, f64), tip: &str) {
        let (w, h) = (w.max(0.0), h.max(0.0));
        let _ = write!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}""#
        );
        match tip.is_empty() {
            true => self.body.push_str("/>"),
            false => {
                let _ = write!(self.body, "><title>{}</title></rect>", escape(tip));
            }
        }
        self.body.push('\n');
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    /// A line through `points`; nothing if there are fewer than two.
    pub fn polyline(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut text = String::new();
        let mut count = 0;
        for (x, y) in points {
            let _ = write!(text, "{x:.1},{y:.1} ");
            count += 1;
        }
        if count > 1 {
            let _ = writeln!(
                self.body,
                r#"<polyline class="{class}" points="{}"/>"#,
                text.trim_end()
            );
        }
    }

    /// Vertical strokes, one path for all of them: `(x, y from, y to)`.
    pub fn strokes(&mut self, class: &str, strokes: impl IntoIterator<Item = (f64, f64, f64)>) {
        let mut text = String::new();
        for (x, from, to) in strokes {
            let _ = write!(text, "M{x:.1} {from:.1}V{to:.1}");
        }
        if !text.is_empty() {
            let _ = writeln!(self.body, r#"<path class="{class}" d="{text}"/>"#);
        }
    }

    /// A small cross.
    pub fn cross(&mut self, class: &str, (x, y): (f64, f64)) {
        let _ = writeln!(
            self.body,
            r#"<path class="{class}" d="M{:.1} {:.1}l8 8m0 -8l-8 8"/>"#,
            x - 4.0,
            y - 4.0
        );
    }

    /// A text.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        );
    }

    /// The drawing, `width` by `height` units; `label` is what a screen reader says.
    pub fn finish(self, width: f64, height: f64, label: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            escape(label),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_logs_cannot_become_markup() {
        let mut svg = Svg::default();
        svg.text(
            "t",
            (0.0, 0.0),
            Anchor::Start,
            "</text><script>alert(1)</script>",
        );
        svg.rect("r", (0.0, 0.0), (1.0, -1.0), "a \"cause\" & <more>");
        let drawing = svg.finish(1.0, 1.0, "<x>");
        assert!(
            !drawing.contains("<script>") && !drawing.contains("<more>"),
            "{drawing}"
        );
        assert!(!drawing.contains("height=\"-"), "{drawing}");
    }
}
