//! Runs a sweep in other processes or on other computers. Python starts the workers. The workers write the
//! results into a dataset, which is a directory of Parquet files.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use pageset_reproduce::sweep::Sweep;

use crate::columnar::Columnar;

/// Environment variable with the path of a Python that has the package `pageset`. If the Python package
/// starts the command, the package sets the variable.
const PYTHON: &str = "PAGESET_PYTHON";

/// The place where a sweep's runs are made: the value of `--on`, which is passed to the Python module
/// `pageset.engines`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Engine(String);

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_address = |address: &str| {
            address
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        let is_known =
            matches!(text, "processes" | "slurm") || text.strip_prefix("dask://").is_some_and(is_address);
        if is_known {
            return Ok(Self(text.to_owned()));
        }
        Err("write processes, slurm or dask://HOST:PORT".to_owned())
    }
}

impl Engine {
    /// Starts Python, which makes this sweep's runs that the dataset `results` lacks. When Python has ended,
    /// adds this sweep's runs from `results` to `sweep`.
    pub(super) fn finish(
        &self,
        plan: &Path,
        results: &Path,
        jobs: Option<u16>,
        sweep: &mut Sweep,
    ) -> Result<()> {
        // Check that this build can read Parquet, because the workers write Parquet files.
        Columnar::Parquet.check()?;
        let python = env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
        let cannot_start = || format!("cannot start {}; {PYTHON} names another Python", python.display());
        // Use `-P`, so that Python does not mistake a directory `pageset` in the current directory for the
        // package.
        let has_package = Command::new(&python)
            .args(["-P", "-c", "import pageset.engines"])
            .stderr(Stdio::null())
            .status()
            .with_context(cannot_start)?;
        if !has_package.success() {
            bail!(
                "{} does not have the package pageset: pip install pageset, or name another Python in {PYTHON}",
                python.display()
            );
        }
        let mut command = Command::new(&python);
        command.args(["-P", "-m", "pageset.engines", "--on", &self.0, "--into"]).arg(results).arg(plan);
        if let Some(jobs) = jobs {
            command.args(["--jobs", &jobs.to_string()]);
        }
        let status = command.status();
        let status = status.with_context(cannot_start)?;
        if !status.success() {
            bail!(
                "not all runs are finished ({status}); the finished runs stay in {}, and the same command continues the sweep",
                results.display()
            );
        }
        take(results, sweep)
    }
}

/// Reads this sweep's runs from a dataset, and adds these runs to `sweep`.
#[cfg(feature = "arrow")]
fn take(results: &Path, sweep: &mut Sweep) -> Result<()> {
    use pageset_arrow::{dataset::Dataset, rows};
    use pageset_reproduce::sweep::FinishedRun;
    use pageset_study::simulate::RunResult;

    let batch = Dataset::at(results)?.read(sweep.runs().iter().map(|(key, _)| key.as_str()))?;
    let found = rows::read::<RunResult>(&batch)?;
    for ((key, spec), result) in sweep.runs().to_vec().into_iter().zip(found) {
        sweep.insert(FinishedRun::new(key, spec, &result)?);
    }
    Ok(())
}

#[cfg(not(feature = "arrow"))]
fn take(_: &Path, _: &mut Sweep) -> Result<()> {
    Columnar::Parquet.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_one_of_three() {
        for known in ["processes", "slurm", "dask://[::1]:8786", "dask://cluster.example:1"] {
            assert_eq!(known.parse(), Ok(Engine(known.to_owned())));
        }
        for unknown in
            ["", "dask", "dask://", "dask://host", "dask://:1", "dask://host:99999", "spark://host:1"]
        {
            assert!(unknown.parse::<Engine>().unwrap_err().contains("dask://HOST:PORT"), "{unknown}");
        }
    }
}
