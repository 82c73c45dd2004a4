//! The goals of a plan: what one policy has to reach beside others.

use serde::Deserialize;

use crate::metric::Metric;

/// Goals of one policy beside others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goals {
    /// The policy that has the goals.
    pub(crate) policy: String,
    /// The policies that it is compared with.
    pub(crate) beside: Vec<String>,
    /// The one of these whose figures are 100 %, and beside which a missed goal is told.
    pub(crate) base: String,
    /// The goals.
    #[serde(rename = "goal")]
    pub(crate) goals: Vec<Goal>,
    /// Figures of the tables that have all policies.
    #[serde(rename = "column")]
    pub(crate) columns: Vec<GoalColumn>,
}

/// One figure, and the goal for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goal {
    /// Name of the figure, and the goal in words.
    pub(crate) axis: String,
    pub(crate) words: String,
    pub(crate) metric: Metric,
    /// The figure of the policies beside. Default: the same.
    pub(crate) beside_metric: Option<Metric>,
    /// The part of their figure that may be reached. Without it, at least their figure has to be reached, as far as
    /// the seeds tell.
    pub(crate) at_most: Option<f64>,
    /// Is added to both figures before the division, since either may be 0.
    #[serde(default)]
    pub(crate) plus: f64,
}

/// A column of means.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoalColumn {
    /// Name in JSON.
    pub(crate) key: String,
    /// Default: the key.
    pub(crate) heading: Option<String>,
    #[serde(default)]
    pub(crate) unit: String,
    #[serde(default)]
    pub(crate) decimals: u8,
    pub(crate) metric: Metric,
}
