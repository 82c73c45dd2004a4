//! The plan of a sweep: the runs, and the questions that their results answer.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use pageset_trace::read_description;
use serde::Deserialize;

use super::goals::Goals;

/// Largest number of runs in one plan. Chosen: a file of rows should have at most a million lines.
const RUNS_MAX: usize = 1_000_000;
/// Limit of the memory for all runs of a plan, in bytes: 512 MiB, enough for a million runs with short names
/// and a few parameters.
const BYTES_MAX: usize = 512 << 20;
/// Number of bytes of memory that a run takes in addition to its names and parameters. `PARAMETER_BYTES` is
/// the number of bytes of a parameter in addition to the parameter's name. Both numbers are guesses.
const RUN_BYTES: usize = 256;
const PARAMETER_BYTES: usize = 64;

/// A plan file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The sweep's title.
    pub title: String,
    /// The sets of runs in the plan.
    #[serde(rename = "grid")]
    pub grids: Vec<Grid>,
    /// The questions that the results answer. For each question, the sweep draws a figure.
    #[serde(default, rename = "question")]
    pub questions: Vec<Question>,
    /// The runs of a quick run (`pageset reproduce --quick`), if the plan is a built-in study.
    #[serde(default)]
    pub quick: Vec<Grid>,
    /// The goals of the study, if the plan is a built-in study.
    #[serde(default)]
    pub goals: Option<Goals>,
}

/// A set of runs: every combination of the listed values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Names of machines, or paths of machine files.
    pub machine: Several<String>,
    /// Names of workloads.
    pub workload: Several<String>,
    /// Names of policies.
    pub policy: Several<String>,
    /// Numbers of CPUs that run the workload. Default: all CPUs of the machine.
    #[serde(default)]
    pub cpus: Several<u32>,
    /// Values of `batch` in pages, in place of the `batch` that the policy's rule would give.
    #[serde(default)]
    pub batch: Several<u32>,
    /// Values of `high` in pages, in place of the `high` that the policy's rule would give.
    #[serde(default)]
    pub high: Several<u32>,
    /// The policy that decides the kernel version of everything except the allocator. Default: the run's own
    /// policy.
    #[serde(default)]
    pub kernel_of: Option<String>,
    /// Seeds of the random numbers. Default: 1.
    #[serde(default)]
    pub seed: Several<u64>,
    /// Lengths of the measured virtual time, in milliseconds.
    #[serde(default)]
    pub duration_ms: Several<u64>,
    /// Lengths of the virtual time before measuring begins, in milliseconds.
    #[serde(default)]
    pub warmup_ms: Several<u64>,
    /// Values of the workload's parameters.
    #[serde(default)]
    pub set: BTreeMap<String, Several<u64>>,
}

/// One value or a list of values. If the plan leaves a key out, the list of its values is empty.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Several<T> {
    /// A key with a single value.
    One(T),
    /// A key with a list of values.
    Many(Vec<T>),
}

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> Several<T> {
    /// Returns the values as a list.
    pub fn values(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }

    /// Returns the values as options, or a single `None` if the list is empty.
    pub fn or_default(&self) -> Vec<Option<&T>> {
        match self.values() {
            [] => vec![None],
            values => values.iter().map(Some).collect(),
        }
    }
}

/// A question, and the figure that answers it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question, as the figure's title.
    pub title: String,
    /// Name of the figure's file, without ending.
    pub file: FileName,
    /// The key of runs on the x axis.
    pub x: String,
    /// Names of the results on the y axis.
    pub y: Several<String>,
    /// Name of a key of runs. The figure has one panel for each value of this key of runs.
    #[serde(default)]
    pub panel: Option<String>,
    /// Name of a key of runs. The figure has one series for each value of this key of runs.
    #[serde(default)]
    pub series: Option<String>,
    /// The axes of the figure that have a logarithmic scale.
    #[serde(default)]
    pub log: Vec<LogAxis>,
    /// Keys and values that a run in the figure must have. The figure leaves out runs that lack one of the
    /// keys and values.
    #[serde(default)]
    pub only: BTreeMap<String, toml::Value>,
}

/// A text that can be part of a file name on every system: letters, digits, - and _.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct FileName(String);

/// A text that cannot be part of a file name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no part of a file's name: use letters, digits, - and _")]
pub struct NotAFileName(String);

impl TryFrom<String> for FileName {
    type Error = NotAFileName;

    fn try_from(text: String) -> Result<Self, NotAFileName> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if text.is_empty() || !text.chars().all(is_part) { Err(NotAFileName(text)) } else { Ok(Self(text)) }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An axis that may be logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogAxis {
    /// The horizontal axis.
    X,
    /// The vertical axis.
    Y,
}

impl Plan {
    /// Reads a plan file. Does not check the names of machines, workloads and policies;
    /// [`Sweep`](super::Sweep) checks these names.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text = read_description(path)?;
        Self::parse(&text).with_context(|| format!("{name}: this is not a plan of a sweep"))
    }

    /// Returns the number of combinations in all grids. A combination in two grids counts twice.
    pub fn runs(&self) -> usize {
        self.grids.iter().fold(0, |sum, grid| sum.saturating_add(grid.runs()))
    }

    /// Reads the plan in a text.
    ///
    /// # Errors
    ///
    /// Fails if the text is no plan, if the plan has no runs or too many runs, if a grid or a question has a
    /// mistake, or if two questions have the same file.
    pub fn parse(text: &str) -> Result<Self> {
        let plan: Self = toml::from_str(text)?;
        if plan.grids.is_empty() {
            bail!("there is no [[grid]]; write at least one, with machine, workload and policy");
        }
        for (index, grid) in plan.grids.iter().chain(&plan.quick).enumerate() {
            grid.check().map_err(|problem| anyhow::anyhow!("grid {}: {problem}", index + 1))?;
        }
        let runs = plan.runs();
        if runs > RUNS_MAX {
            bail!("the grids have {runs} runs; use at most {RUNS_MAX}");
        }
        let bytes = plan.grids.iter().fold(0_usize, |sum, grid| sum.saturating_add(grid.bytes()));
        if bytes > BYTES_MAX {
            let mib = bytes >> 20;
            bail!(
                "the grids' {runs} runs take {mib} MiB with their names and parameters; use fewer, or shorter names"
            );
        }
        for (index, question) in plan.questions.iter().enumerate() {
            if let Some(other) = plan.questions[..index].iter().find(|other| other.file == question.file) {
                bail!("question `{}`: file: question `{}` has the same", question.title, other.title);
            }
            question
                .check()
                .map_err(|problem| anyhow::anyhow!("question `{}`: {problem}", question.title))?;
        }
        Ok(plan)
    }
}

/// A mistake in the plan: the key with the mistake, and a description of the mistake.
#[derive(Debug)]
struct Problem(&'static str, &'static str);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}

impl Grid {
    fn check(&self) -> Result<(), Problem> {
        for (key, values) in
            [("machine", &self.machine), ("workload", &self.workload), ("policy", &self.policy)]
        {
            if values.values().is_empty() {
                return Err(Problem(key, "the list is empty; name at least one value"));
            }
        }
        if self.set.values().any(|values| values.values().is_empty()) {
            return Err(Problem("set", "a parameter has an empty list; give it a value or leave it out"));
        }
        Ok(())
    }

    /// Returns the number of combinations in this grid.
    fn runs(&self) -> usize {
        let own = [
            self.machine.values().len(),
            self.workload.values().len(),
            self.policy.values().len(),
            self.cpus.values().len(),
            self.batch.values().len(),
            self.high.values().len(),
            self.seed.values().len(),
            self.duration_ms.values().len(),
            self.warmup_ms.values().len(),
        ];
        let all = own.into_iter().chain(self.set.values().map(|values| values.values().len()));
        all.fold(1, |product, count| product.saturating_mul(count.max(1)))
    }
}

impl Grid {
    /// Returns an upper limit of the memory that the grid's runs take.
    fn bytes(&self) -> usize {
        let longest = |names: &Several<String>| names.values().iter().map(String::len).max().unwrap_or(0);
        let names = longest(&self.machine) + longest(&self.workload) + longest(&self.policy);
        let kernel = self.kernel_of.as_ref().map_or(0, String::len);
        let parameters: usize = self.set.keys().map(|key| key.len() + PARAMETER_BYTES).sum();
        self.runs().saturating_mul(RUN_BYTES + names + kernel + parameters)
    }
}

impl Question {
    fn check(&self) -> Result<(), Problem> {
        if self.y.values().is_empty() {
            return Err(Problem("y", "the list is empty; name at least one result"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        title = "t"
        [[grid]]
        machine = "epyc-2"
        workload = ["page_fault1", "malloc1"]
        policy = ["linux-6.6", "linux-6.7"]
        cpus = [1, 2]
        set = { think_ns = [0, 100, 1000] }
        [[question]]
        title = "Q"
        file = "q"
        x = "cpus"
        y = "score_per_s"
        log = ["x"]
    "#;

    #[track_caller]
    fn refused(from: &str, to: &str, message: &str) {
        assert!(PLAN.contains(from), "{from}");
        let error = format!("{:#}", Plan::parse(&PLAN.replace(from, to)).unwrap_err());
        assert!(error.contains(message), "{error}");
    }

    #[test]
    fn one_value_is_a_list_of_one() {
        let plan = Plan::parse(PLAN).unwrap();
        assert_eq!(plan.grids[0].machine.values(), ["epyc-2"]);
        assert_eq!(plan.grids[0].runs(), 2 * 2 * 2 * 3);
        assert_eq!(plan.grids[0].seed.or_default(), [None]);
        assert_eq!(plan.questions[0].log, [LogAxis::X]);
    }

    #[test]
    fn the_example_in_the_sources_is_a_plan() {
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/batch-sizes.toml"));
        let plan = Plan::parse(text).unwrap();
        assert_eq!((plan.grids[0].runs(), plan.questions.len()), (36, 2));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        refused("title = \"t\"", "titel = \"t\"", "unknown field `titel`");
        refused("machine = \"epyc-2\"", "", "missing field `machine`");
        refused("[\"linux-6.6\", \"linux-6.7\"]", "[]", "grid 1: policy: the list is empty");
        refused("[0, 100, 1000]", "[]", "grid 1: set: a parameter has an empty list");
        refused("cpus = [1, 2]", "cpus = [\"all\"]", "line 7");
        refused("file = \"q\"", "file = \"../q\"", "`../q` is no part of a file's name: use letters");
        refused("y = \"score_per_s\"", "y = []", "question `Q`: y: the list is empty");
        let again = "y = \"score_per_s\"\n[[question]]\ntitle = \"R\"\nfile = \"q\"\nx = \"cpus\"\ny = \"score_per_s\"";
        refused("y = \"score_per_s\"", again, "question `R`: file: question `Q` has the same");
        let many = format!("cpus = {:?}", (1..100_000).collect::<Vec<u32>>());
        refused("cpus = [1, 2]", &many, "runs; use at most 1000000");
        let thousand = format!("{:?}", (0..1000).collect::<Vec<u32>>());
        let keys = ["cpus", "batch", "high", "seed", "duration_ms", "warmup_ms"];
        let huge = keys.map(|key| format!("{key} = {thousand}")).join("\n");
        refused("cpus = [1, 2]", &huge, "the grids have 12000000000000000000 runs");
        let long = format!("\"{}\"", "x".repeat(1 << 20));
        let many = format!("batch = {thousand}\nmachine = {long}");
        refused("machine = \"epyc-2\"", &many, "24000 runs take 24");
    }
}
