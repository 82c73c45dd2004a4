//! The origin of a number: published, measured, simulated or fitted.

use std::fmt;

use serde::Serialize;

/// The origin of a number. Every table and plot that mixes origins shows which is which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Printed in a source that is named.
    Published,
    /// Observed on a real machine.
    Measured,
    /// Computed by running the code on a modelled machine.
    Simulated,
    /// Used to choose a parameter, so agreement means nothing.
    Fitted,
}

impl Origin {
    /// The word used in tables and legends.
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
