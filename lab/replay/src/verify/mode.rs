//! Modes of a comparison. Modes differ in how much the kernel's events correct the page sets.

/// How much the kernel's events correct the page sets during a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The policy predicts each decision, and then the page sets carry out the kernel's decision. Samples of
    /// `/proc/zoneinfo` reset `count` and `high`.
    #[default]
    Step,
    /// Like `Step`, but samples are only compared and do not reset anything.
    Blind,
    /// The page sets carry out the policy's own decisions. The kernel's decisions are only compared with the
    /// policy's decisions.
    Free,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Step, Self::Blind, Self::Free];

    /// The mode's name in commands and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Blind => "blind",
            Self::Free => "free",
        }
    }

    /// The mode called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_found_by_name() {
        for mode in Mode::ALL {
            assert_eq!(Mode::named(mode.name()), Some(mode));
        }
        assert_eq!(Mode::named("auto"), None);
    }
}
