//! The origin of a number: published, measured, simulated or fitted.

use std::fmt;

use serde::Serialize;

/// The origin of a number. Every table and plot with numbers of several origins names these origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The number is printed in a source that the result names.
    Published,
    /// The number was observed on a real machine.
    Measured,
    /// The number was computed by running the code on a modelled machine.
    Simulated,
    /// The number was used to choose a parameter, so its agreement shows nothing.
    Fitted,
}

impl Origin {
    /// The name of the origin in tables and legends.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Measured => "measured",
            Self::Simulated => "simulated",
            Self::Fitted => "fitted",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_same_words() {
        for origin in [Origin::Published, Origin::Measured, Origin::Simulated, Origin::Fitted] {
            assert_eq!(serde_json::to_string(&origin).unwrap(), format!("\"{origin}\""));
        }
    }
}
