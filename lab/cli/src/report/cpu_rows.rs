//! Orders the rows of charts that have a row for each CPU: CPUs with the same node and last-level cache are
//! neighbours.

use pageset_replay::report_data::ReportData;
use pageset_report::page::Group;

/// The rows of a chart with a row for each CPU, from top to bottom.
pub(super) struct CpuRows {
    /// The CPU of each row.
    pub(super) cpus: Vec<u32>,
    /// The groups of rows: each has the CPUs with the same node and last-level cache.
    pub(super) groups: Vec<Group>,
}

impl CpuRows {
    pub(super) fn new(report_data: &ReportData) -> Self {
        let mut named = None;
        let groups = report_data.neighbours.iter().map(|group| {
            // The first group of a node is named after the node. Further groups of the node have no name.
            let is_first = named.replace(group.node) != Some(group.node);
            let name = match group.node {
                _ if !is_first => String::new(),
                Some(node) => format!("node {node}"),
                None => "unknown".to_owned(),
            };
            Group { name, rows: group.cpus.len() }
        });
        let groups = groups.collect();
        let cpus = report_data.neighbours.iter().flat_map(|group| group.cpus.iter().copied());
        Self { groups, cpus: cpus.collect() }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.cpus.iter().map(u32::to_string).collect()
    }

    /// Returns the values of all CPUs, in the order of the rows. `of` returns the values of one CPU.
    pub(super) fn cells(&self, of: impl Fn(usize) -> Vec<u64>) -> Vec<Vec<u64>> {
        self.cpus.iter().map(|cpu| of(*cpu as usize)).collect()
    }
}
