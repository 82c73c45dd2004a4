//! Writes HTML. Names of elements and attributes are fixed. [`escaped`] handles all text except the text that
//! a caller passes to `as_it_is`.

use crate::is_hidden;

/// HTML that is being written.
#[derive(Debug, Default)]
pub(super) struct Html(String);

/// The attributes of an element: names and values.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// Writes an element with contents.
    pub(super) fn element(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Self),
    ) {
        self.begin(name, attributes);
        inside(self);
        self.0 += &format!("</{name}>");
    }

    /// Writes an element that contains only text.
    pub(super) fn words(&mut self, name: &'static str, attributes: Attributes<'_>, text: &str) {
        self.element(name, attributes, |html| html.text(text));
    }

    /// Writes the beginning of an element. An element that has no end in HTML, such as `meta`, consists only
    /// of its beginning.
    pub(super) fn begin(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.0 += &format!("<{name}");
        for (key, value) in attributes {
            self.0 += &format!(" {key}=\"");
            escaped(value, &mut self.0);
            self.0.push('"');
        }
        self.0.push('>');
    }

    /// Writes text, escaped.
    pub(super) fn text(&mut self, text: &str) {
        escaped(text, &mut self.0);
    }

    /// Writes code unchanged, such as a style, a script or a drawing. The caller must not pass unescaped text
    /// from outside.
    pub(super) fn as_it_is(&mut self, code: &str) {
        self.0 += code;
    }

    /// The finished text.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Escapes text. A character that reverses the direction of text, or that cannot be seen, becomes U+FFFD.
fn escaped(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            hidden if is_hidden(hidden) => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_values_are_escaped() {
        let mut html = Html::default();
        html.element("p", &[("title", "\"><b x='")], |html| html.text("<i>\u{202e}&\u{0}\n"));
        assert_eq!(
            html.finish(),
            "<p title=\"&quot;&gt;&lt;b x=&#39;\">&lt;i&gt;\u{fffd}&amp;\u{fffd}\n</p>"
        );
    }
}
