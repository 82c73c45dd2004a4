//! Finds the layout of a recording's machine: in the recording, in a file, or by a guess from the events.

use std::path::Path;

use anyhow::{Result, bail};
use pageset_replay::guess_layout;
use pageset_replay::recorded::NO_LAYOUT;
use pageset_trace::{Layout, LayoutOptions, TraceReader as _};
use serde::Serialize;

use crate::hint;
use crate::options::{MachineArgs, SourceArgs};
use crate::source::{self, Source};

/// Where the layout of a machine comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LayoutOrigin {
    /// The layout is in the recording.
    Recorded,
    /// The layout is in a file that the user named.
    Given,
    /// The layout is guessed from the events.
    Guessed,
    /// The layout is in a copy of `/proc/zoneinfo` that is read in place of a trace.
    Copied,
}

/// A summary of a machine's layout, for results.
#[derive(Debug, Serialize)]
pub(crate) struct LayoutSummary {
    origin: LayoutOrigin,
    kernel: String,
    architecture: String,
    pub(crate) cpus: u32,
    nodes: usize,
    /// The size of all frames that the allocator manages, in bytes.
    managed_bytes: u64,
    zones: Vec<ZoneSummary>,
    /// Assumptions about facts that the source of the layout lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ZoneSummary {
    node: u16,
    name: &'static str,
    managed_pages: u64,
}

impl LayoutSummary {
    pub(crate) fn new(machine: &Layout, origin: LayoutOrigin) -> Self {
        let zone = |zone: &pageset_trace::ZoneDescription| ZoneSummary {
            node: zone.node,
            name: zone.kind.name(),
            managed_pages: zone.managed,
        };
        let pages = machine.zones.iter().fold(0_u64, |sum, zone| sum.saturating_add(zone.managed));
        Self {
            origin,
            kernel: machine.kernel.clone(),
            architecture: machine.architecture.clone(),
            cpus: machine.cpus,
            nodes: machine.nodes.len(),
            managed_bytes: pages.saturating_mul(u64::from(machine.page_size)),
            zones: machine.zones.iter().map(zone).collect(),
            assumed: machine.assumed.clone(),
        }
    }

    pub(crate) fn zone_names(&self) -> Vec<String> {
        self.zones.iter().map(|zone| format!("{} {}", zone.node, zone.name)).collect()
    }

    /// Returns the summary as one line.
    pub(crate) fn line(&self) -> String {
        let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let gibibytes = self.managed_bytes as f64 / f64::from(1 << 30);
        let mut parts = vec![
            plural(self.cpus as usize, "CPU"),
            plural(self.nodes, "node"),
            format!("{gibibytes:.1} GiB in {}", plural(self.zones.len(), "zone")),
        ];
        if !self.kernel.is_empty() {
            parts.push(format!("recorded on Linux {}", self.kernel));
        }
        match self.origin {
            LayoutOrigin::Recorded | LayoutOrigin::Copied => {}
            LayoutOrigin::Given => parts.push("from --layout".to_owned()),
            LayoutOrigin::Guessed => parts.push("made up from the events".to_owned()),
        }
        parts.join(", ")
    }
}

/// Returns the machine to replay `source` on. If the recording does not describe its machine, reads all
/// events once to guess a layout. The function refuses to guess the layout of a recording from a pipe,
/// because a pipe can be read only once.
pub(crate) fn find(
    source: &Source,
    args: &SourceArgs,
    given: &MachineArgs,
) -> Result<(Layout, LayoutOrigin)> {
    let recorded = source.info().machine.as_ref();
    if let Some(path) = &given.layout {
        let options = given.facts.options();
        let options = match recorded {
            Some(machine) => options.recorded_on(machine),
            None => options,
        };
        return Ok((load(path, &options)?, LayoutOrigin::Given));
    }
    if let Some(machine) = recorded {
        let size = given.facts.page_size.filter(|size| *size != machine.page_size);
        if size.is_some() || given.facts.node_cpus.is_some() {
            bail!(
                "{}: the recording describes its machine, with pages of {} bytes: leave out --page-size and --node-cpus",
                source::title(source.info()),
                machine.page_size
            );
        }
        return Ok((machine.clone(), LayoutOrigin::Recorded));
    }
    if given.facts.node_cpus.is_some() {
        bail!(
            "{}: --node-cpus needs a copy of /proc/zoneinfo: give a copy with --layout",
            source::title(source.info())
        );
    }
    let path = args.recording.as_deref();
    if path.is_some_and(|path| !path.is_file()) {
        bail!(
            "{}: {NO_LAYOUT}, and a pipe cannot be read twice to guess the layout; \
             give a layout, or save the recording to a file first",
            source.argument
        );
    }
    let machine = guess_layout(&mut Source::open(args)?, given.facts.page_size).map_err(hint::of_trace)?;
    Ok((machine, LayoutOrigin::Guessed))
}

/// Reads a layout file.
pub(crate) fn load(path: &Path, options: &LayoutOptions) -> Result<Layout> {
    let text = Layout::text(path).map_err(|error| hint::of_layout(&error, ""))?;
    options.parse(path, &text).map_err(|error| hint::of_layout(&error, &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_to_simulate_is_told_apart() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/epyc-2.toml"));
        let error = load(path, &LayoutOptions::new()).unwrap_err().to_string();
        assert!(error.contains("epyc-2.toml: this is a machine to simulate"), "{error}");
    }

    #[test]
    fn a_machine_fits_on_a_line() {
        let args = SourceArgs { recording: None, opening: crate::options::OpeningArgs::default() };
        let source = Source::open(&args).unwrap();
        let (machine, origin) = find(&source, &args, &MachineArgs::default()).unwrap();
        assert_eq!(
            LayoutSummary::new(&machine, origin).line(),
            "2 CPUs, 1 node, 16.8 GiB in 3 zones, recorded on Linux 6.18.44"
        );
    }
}
