//! The formats of written results.

use std::fmt;
use std::str::FromStr;

use crate::export::{Csv, Exporter, Json, Markdown, Text};

/// The format of a written result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Plain ASCII text of at most 80 columns, for terminals and e-mail.
    #[default]
    Table,
    /// One JSON object, with numbers as numbers.
    Json,
    /// CSV: a header line, and one line per row. Every row has the provenance.
    Csv,
    /// A Markdown table.
    Markdown,
}

impl Format {
    /// All formats, in the order of the help texts.
    pub const ALL: [Self; 4] = [Self::Table, Self::Json, Self::Csv, Self::Markdown];

    /// The name of the format on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
        }
    }

    /// The exporter of this format.
    #[must_use]
    pub fn exporter(self) -> &'static dyn Exporter {
        match self {
            Self::Table => &Text::PLAIN,
            Self::Json => &Json,
            Self::Csv => &Csv,
            Self::Markdown => &Markdown,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for the name of a format that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat {
    /// The requested name.
    pub given: String,
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Format::ALL.map(Format::name).join(", ");
        write!(f, "unknown format `{}`; choose one of: {names}", self.given)
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat { given: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
    }

    #[test]
    fn the_error_lists_the_choices() {
        let error = "xml".parse::<Format>().unwrap_err();
        assert_eq!(error.to_string(), "unknown format `xml`; choose one of: table, json, csv, markdown");
    }
}
