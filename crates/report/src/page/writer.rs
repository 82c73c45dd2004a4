//! Writes HTML. Names of elements and attributes are ours; all text passes through [`escaped`], so no caller can forget it.

use crate::is_hidden;

/// HTML that is being written.
#[derive(Debug, Default)]
pub(super) struct Html(String);

/// Names and values of an element's attributes.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// An element with what stands inside.
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

    /// An element with nothing but text inside.
    pub(super) fn words(&mut self, name: &'static str, attributes: Attributes<'_>, text: &str) {
        self.element(name, attributes, |html| html.text(text));
    }

    /// The beginning of an element; all there is of those that have no end.
    pub(super) fn begin(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.0 += &format!("<{name}");
        for (key, value) in attributes {
            self.0 += &format!(" {key}=\"");
            escaped(value, &mut self.0);
            self.0.push('"');
        }
        self.0.push('>');
    }

    /// Text.
    pub(super) fn text(&mut self, text: &str) {
        escaped(text, &mut self.0);
    }

    /// Style, script or drawing, as it is: nothing of it may come from outside unescaped.
    pub(super) fn as_it_is(&mut self, code: &str) {
        self.0 += code;
    }

    /// All of it.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Text as it can be shown. Characters that turn the direction of what follows, or that nobody sees, become U+FFFD.
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
