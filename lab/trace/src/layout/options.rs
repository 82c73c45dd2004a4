//! Reads a layout from a machine description, or from a copy of `/proc/zoneinfo`. Options give the facts that
//! a copy of `/proc/zoneinfo` lacks.

use std::path::Path;

use super::{Layout, Node, build, size_name, zoneinfo};
use crate::{error::TraceError, other_files};

/// Facts about a machine that the machine's file lacks. By default, the options give no fact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutOptions {
    pub(super) page_size: Option<u32>,
    pub(super) node_cpus: Option<Vec<Node>>,
    /// The page size and the nodes of the recorded machine.
    pub(super) recorded: Option<(u32, Vec<Node>)>,
}

impl LayoutOptions {
    /// Makes options without any facts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bytes of a page, which `/proc/zoneinfo` does not contain.
    #[must_use]
    pub const fn page_size(mut self, bytes: u32) -> Self {
        self.page_size = Some(bytes);
        self
    }

    /// Sets the CPUs of each node, which `/proc/zoneinfo` does not contain. An example is `0=0-3,1=4-7`.
    ///
    /// # Errors
    /// An error if `list` does not have this form.
    pub fn node_cpus(mut self, list: &str) -> Result<Self, String> {
        let wrong = || format!("not a list as 0=0-3,1=4-7: {:?}", list.chars().take(40).collect::<String>());
        let mut nodes: Vec<Node> = Vec::new();
        for part in list.split(',') {
            // Parses `0=0-3,8-11,1=4-7`. A range without a node number belongs to the same node as the range
            // before it.
            let cpus = match part.split_once('=') {
                Some((id, cpus)) => {
                    let id = id.trim().parse().map_err(|_| wrong())?;
                    if nodes.iter().any(|node| node.id == id) {
                        return Err(format!("node {id} is listed twice"));
                    }
                    nodes.push(Node { id, cpus: Vec::new(), distances: Vec::new() });
                    cpus
                }
                None => part,
            };
            nodes.last_mut().ok_or_else(wrong)?.cpus.extend(build::cpulist(cpus)?);
        }
        self.node_cpus = Some(nodes);
        Ok(self)
    }

    /// Sets the recorded machine. If a copy of `/proc/zoneinfo` does not show nodes or page size, these facts
    /// come from the recorded machine.
    #[must_use]
    pub fn recorded_on(mut self, machine: &Layout) -> Self {
        self.recorded = Some((machine.page_size, machine.nodes.clone()));
        self
    }

    /// Reads a description in TOML, or in JSON if the file's name ends in `.json`, or a copy of
    /// `/proc/zoneinfo`. A fact that a copy lacks comes from these options, or is assumed and then listed in
    /// [`Layout::assumed`].
    ///
    /// # Errors
    /// An error if the file cannot be read, is too large, has an unknown or a missing field, or contradicts
    /// these options. Also returns an error if [`Layout::check`] fails, or if a copy of `/proc/zoneinfo`
    /// needs an option that was not given.
    pub fn load(&self, path: &Path) -> Result<Layout, TraceError> {
        self.parse(path, &Layout::text(path)?)
    }

    /// Does the same as [`load`](Self::load), for the text of the file at `path`.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load), except errors of the system.
    pub fn parse(&self, path: &Path, text: &str) -> Result<Layout, TraceError> {
        let mut machine = self.parse_alone(path, text)?;
        if let Some((recorded, _)) = self.recorded.as_ref().filter(|(size, _)| *size != machine.page_size) {
            machine.assumed.push(format!(
                "frames of the recording have {}, and frames of the layout {}: only frame numbers are compared",
                size_name(*recorded),
                size_name(machine.page_size)
            ));
        }
        Ok(machine)
    }

    fn parse_alone(&self, path: &Path, text: &str) -> Result<Layout, TraceError> {
        if zoneinfo::is_zoneinfo(text) {
            return self.read_zoneinfo(path, text);
        }
        if let Some(other) = other_files::what_is(text.as_bytes()) {
            return Err(other.as_layout(path));
        }
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let machine = Layout::of_text(text, is_json)
            .map_err(|problem| TraceError::file(path, problem, "correct the machine description"))?;
        let contradicted = match (self.page_size, &self.node_cpus) {
            (Some(size), _) if size != machine.page_size => {
                Some(format!("page_size is {}, not {size}", machine.page_size))
            }
            (_, Some(_)) => {
                Some("the description contains the nodes, so --node-cpus cannot be used".to_owned())
            }
            _ => None,
        };
        match contradicted {
            None => Ok(machine),
            Some(problem) => Err(TraceError::file(
                path,
                problem,
                "correct the machine description or leave the option out",
            )),
        }
    }
}

impl LayoutOptions {
    /// Reads the machine from a copy of `/proc/zoneinfo`. `path` is used only in messages.
    pub(crate) fn read_zoneinfo(&self, path: &Path, text: &str) -> Result<Layout, TraceError> {
        zoneinfo::read(path, text, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> Result<Vec<(u16, Vec<u32>)>, String> {
        let options = LayoutOptions::new().node_cpus(list)?;
        Ok(options.node_cpus.into_iter().flatten().map(|node| (node.id, node.cpus)).collect())
    }

    #[test]
    fn nodes_and_their_cpus_are_a_list() {
        assert_eq!(cpus("0=0-2,1=3").unwrap(), [(0, vec![0, 1, 2]), (1, vec![3])]);
        assert_eq!(cpus("0=0,4-5,8=1").unwrap(), [(0, vec![0, 4, 5]), (8, vec![1])]);
        assert_eq!(cpus("0=0,1=").unwrap(), [(0, vec![0]), (1, vec![])]);
        for wrong in ["", "0-3", "0=a", "x=1", "0=1,0=2", "0=3-1", "0=0-99999", "70000=1"] {
            assert!(cpus(wrong).is_err(), "{wrong}");
        }
    }
}
