//! The goals of a plan for one policy, compared with other policies.

use serde::Deserialize;

use crate::metric::Metric;

/// Goals of one policy, compared with other policies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goals {
    /// The policy that has the goals.
    pub(crate) policy: String,
    /// The policies that `policy` is compared with.
    pub(crate) beside: Vec<String>,
    /// The base policy, which is one of `beside`. The base policy's figures count as 100 %. The report lists
    /// the goals that `policy` misses in comparison with the base policy.
    pub(crate) base: String,
    /// The goals of `policy`.
    #[serde(rename = "goal")]
    pub(crate) goals: Vec<Goal>,
    /// The columns of the tables that compare all policies.
    #[serde(rename = "column")]
    pub(crate) columns: Vec<GoalColumn>,
}

/// A goal for one figure of the policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goal {
    /// The name of the figure that has the goal. `words` describes the goal.
    pub(crate) axis: String,
    pub(crate) words: String,
    pub(crate) metric: Metric,
    /// The metric of the policies in `beside`. Default: `metric`.
    pub(crate) beside_metric: Option<Metric>,
    /// Largest ratio of the policy's figure to the other policy's figure that meets the goal. Without
    /// `at_most`, the policy misses the goal only if every seed gives a lower figure than every seed of the
    /// other policy.
    pub(crate) at_most: Option<f64>,
    /// A constant that is added to the figures of both policies before the ratio is computed, because a
    /// figure may be 0.
    #[serde(default)]
    pub(crate) plus: f64,
}

/// A column of the tables that compare all policies: the mean of a metric over all seeds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoalColumn {
    /// The column's name in JSON.
    pub(crate) key: String,
    /// Heading of the column. Default: the key.
    pub(crate) heading: Option<String>,
    #[serde(default)]
    pub(crate) unit: String,
    #[serde(default)]
    pub(crate) decimals: u8,
    pub(crate) metric: Metric,
}
