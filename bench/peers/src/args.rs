//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::child::Order;
use crate::effort::Effort;

/// Runs the same page-allocation work on pageset and on its peers.
#[derive(Debug, Parser)]
#[command(name = "pageset-peers", version)]
pub(crate) struct Args {
    /// Short windows, fewer rounds, no rows of 1 M pages: at most a minute.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only rows whose name begins with this; may be given several times.
    #[arg(long, value_name = "ROW")]
    pub(crate) only: Vec<String>,
    /// Only this allocator; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) allocator: Vec<String>,
    /// Writes the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Prints the tables of the README instead of the full ones.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// How often a measurement is repeated. Measurements with much preparation are repeated half or a third
    /// as often.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Internal: job and target of a child.
    #[arg(long, num_args = 2, value_names = ["JOB", "TARGET"], hide = true)]
    child: Option<Vec<String>>,
    /// Internal: the round of a child.
    #[arg(long, default_value_t = 0, hide = true)]
    seed: u64,
}

impl Args {
    /// How long each measurement takes.
    pub(crate) fn effort(&self) -> Effort {
        let effort = if self.quick { Effort::QUICK } else { Effort::FULL };
        Effort { seed: self.seed, ..effort }
    }

    /// How often each measurement is repeated.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 2 } else { 5 })
    }

    /// Whether the command line asks for this row.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| row.starts_with(name.as_str()))
    }

    /// The one measurement that a child has to make; `None` in the parent.
    pub(crate) fn child_order(&self) -> anyhow::Result<Option<Order>> {
        let Some([job, target]) = self.child.as_deref() else { return Ok(None) };
        Order::new(job, target, self.effort()).map(Some)
    }
}
