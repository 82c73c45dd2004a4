//! The goals of a plan: how good one policy must be, compared with other policies.

use serde::Deserialize;

use crate::metric::Metric;

/// Goals of one policy, compared with other policies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goals {
    /// The policy that has the goals.
    pub(crate) policy: String,
    /// The policies that the goals compare their policy with.
    pub(crate) beside: Vec<String>,
    /// The policy in `beside` that counts as the base. The figures of the base policy count as 100 %. The
    /// notes list the goals that are missed in comparison with the base policy.
    pub(crate) base: String,
    /// The goals.
    #[serde(rename = "goal")]
    pub(crate) goals: Vec<Goal>,
    /// The columns of the tables that compare all policies.
    #[serde(rename = "column")]
    pub(crate) columns: Vec<GoalColumn>,
}

/// The goal that one figure of the policy should reach.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goal {
    /// The name of the figure, and a description of the goal in words.
    pub(crate) axis: String,
    pub(crate) words: String,
    pub(crate) metric: Metric,
    /// The metric of the goal for the policies in `beside`. Default: `metric`.
    pub(crate) beside_metric: Option<Metric>,
    /// The goal is met if the figure, divided by the compared policy's figure, is at most this value. Without
    /// `at_most`, the goal is to be as good as the compared policy: it is missed only if the seeds show that
    /// the figure is lower.
    pub(crate) at_most: Option<f64>,
    /// A constant added to both figures before they are divided, because a figure may be 0.
    #[serde(default)]
    pub(crate) plus: f64,
}

/// A column of the tables that compare all policies: the mean of a metric over all seeds.
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
