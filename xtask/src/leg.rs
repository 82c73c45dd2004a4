//! Defines legs. A leg is a part of a gate that has a name, and passes or fails.

use crate::run::{Context, Result};

type Work = Box<dyn Fn(&Context) -> Result + Send + Sync>;

/// A part of a gate that has a name and passes or fails.
pub(crate) struct Leg {
    pub(crate) name: String,
    pub(crate) work: Work,
}

pub(crate) fn leg(name: impl Into<String>, work: impl Fn(&Context) -> Result + Send + Sync + 'static) -> Leg {
    Leg { name: name.into(), work: Box::new(work) }
}

/// A leg that is one command.
pub(crate) fn command(name: impl Into<String>, line: impl Into<String>) -> Leg {
    let line = line.into();
    leg(name, move |context| context.run(&line))
}

/// A part of the night.
pub(crate) struct NightLeg {
    pub(crate) name: &'static str,
    /// How long the leg takes on two cores, roughly.
    pub(crate) minutes: u32,
    pub(crate) is_for_root: bool,
    pub(crate) work: fn(&Context) -> Result,
}
