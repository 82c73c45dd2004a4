//! Replay: a recording's allocations and frees, driven through the core.
//!
//! Files: `steps` (from events to what is to be done), `build` (the recording's machine as an allocator), `resident`
//! (memory that was in use before), `run` (one policy's run), `frame_map` (whose frame is which), `ticks` (when a CPU
//! does its periodic work), `outcome` (the row), `guess` (a machine for recordings that describe none), `lock` (the lock of a world with one thread).

mod build;
mod frame_map;
mod guess;
mod lock;
mod outcome;
mod resident;
mod run;
mod steps;
mod ticks;

pub use guess::guess_layout;
pub use outcome::Outcome;
use run::Run;
use steps::Stepper;
use ticks::Ticks;

use pageset_core::Policy;
use pageset_trace::{Layout, LostEvents, TraceError, TraceReader};

/// What to replay under.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The policies, in the order of the rows; the first is what the others are compared with.
    pub policies: Vec<Policy>,
    /// The machine to replay on, instead of the recording's own.
    pub machine: Option<Layout>,
    /// Share that machine's memory between so many CPUs: the recorded ones, and others that stay idle. Each CPU's share
    /// of the watermark, and so the limit of its page sets, gets smaller.
    pub cpus: Option<u32>,
}

/// A finished replay.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The machine that was replayed on.
    pub machine: Layout,
    /// Events read.
    pub events: u64,
    /// What the recording lacks.
    pub lost: LostEvents,
    /// Events that could not be replayed, by reason; the same under every policy.
    pub unreplayed: Unreplayed,
    /// Seconds between the ticks of all CPUs, where the recording has none of its own.
    pub tick_interval_s: Option<u32>,
    /// One row per policy, in the order asked for.
    pub outcomes: Vec<Outcome>,
}

/// Events of the recording that were not replayed, by reason. The counts are the same under every policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Unreplayed {
    /// Allocations that failed in the recording already.
    pub failed_in_recording: u64,
    /// Events about frames outside the machine's zones.
    pub foreign_frames: u64,
    /// Events with an order, CPU or node that cannot be.
    pub impossible: u64,
    /// Allocations of frames that the recording shows as in use: a free was lost.
    pub allocated_twice: u64,
}

/// Why a replay could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording is damaged or unreadable.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The recording does not say what machine it comes from, and none was given.
    #[error("{0}")]
    NoMachine(String),
    /// CPUs that did something cannot be left out.
    #[error("the machine has {there} CPUs: share its memory between at least so many, not {asked}")]
    TooFewCpus {
        /// CPUs asked for.
        asked: u32,
        /// CPUs of the machine.
        there: u32,
    },
    /// The machine cannot be built.
    #[error("the machine description does not describe a machine that can be built: {0}")]
    Layout(String),
}

/// Replays a recording under each policy. The recording is read in blocks, after a look whether it has ticks of its own.
/// `progress` is told the events read so far, after each block.
///
/// Page sets start empty, and memory that was in use before the recording began is in use here too; see
/// [`Outcome::unmatched_frees`].
///
/// # Errors
/// If the recording is damaged, or no machine is known that could be built.
pub fn replay(
    reader: &mut dyn TraceReader,
    options: &ReplayOptions,
    mut progress: impl FnMut(u64),
) -> Result<Replay, ReplayError> {
    let info = reader.info();
    let machine = options.machine.clone().or_else(|| info.machine.clone()).ok_or_else(|| {
        let path = info.path.display();
        ReplayError::NoMachine(format!(
            "{path}: the recording does not describe its machine: pass --layout FILE"
        ))
    })?;
    let machine = match options.cpus {
        Some(cpus) => with_cpus(machine, cpus)?,
        None => machine,
    };
    let before = if options.machine.is_some() { None } else { info.before.clone() };
    let mut runs = options
        .policies
        .iter()
        .map(|policy| Run::new(&machine, before.as_ref(), policy))
        .collect::<Result<Vec<_>, _>>()?;
    let mut stepper = Stepper::new(&machine, Ticks::find(reader, &machine)?);
    let (mut events, mut steps, mut read) = (Vec::new(), Vec::new(), 0);
    while reader.read_block(&mut events)? > 0 {
        stepper.steps(&events, &mut steps);
        runs.iter_mut().for_each(|run| run.apply(&steps));
        read += events.len() as u64;
        progress(read);
    }
    let lost = reader.lost();
    let outcomes =
        runs.iter_mut().map(|run| Outcome { lost_events: lost.missing(), ..run.finish() }).collect();
    let allocated_twice = runs.first().map_or(0, |run| run.allocated_twice);
    let unreplayed = Unreplayed { allocated_twice, ..stepper.unreplayed };
    let tick_interval_s = stepper.ticks.interval_s();
    Ok(Replay { machine, events: read, lost, unreplayed, tick_interval_s, outcomes })
}

/// The machine with idle CPUs added, node by node in turn.
fn with_cpus(mut machine: Layout, cpus: u32) -> Result<Layout, ReplayError> {
    if cpus < machine.cpus {
        return Err(ReplayError::TooFewCpus { asked: cpus, there: machine.cpus });
    }
    let nodes = machine.nodes.len().max(1);
    for (index, cpu) in (machine.cpus..cpus).enumerate() {
        if let Some(node) = machine.nodes.get_mut(index % nodes) {
            node.cpus.push(cpu);
        }
    }
    machine.cpus = cpus;
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use pageset_core::ZoneKind;
    use pageset_trace::{Node, Snapshot, Sysctls, ZoneDescription};

    use super::*;

    fn zone(kind: ZoneKind, start_pfn: u64, managed: u64) -> ZoneDescription {
        ZoneDescription {
            node: 0,
            kind,
            start_pfn,
            spanned: managed + 100,
            present: managed,
            managed,
            free: managed / 2,
            min: 100,
            low: 125,
            high: 150,
            boost: 0,
            protection: Vec::new(),
            pagesets: Vec::new(),
        }
    }

    /// Two CPUs, 16 MiB and 124 MiB.
    pub(super) fn small_layout() -> Layout {
        Layout {
            kernel: "6.12".into(),
            architecture: "x86_64".into(),
            page_size: 4096,
            cpus: 2,
            sysctls: Sysctls::default(),
            nodes: vec![Node { id: 0, cpus: vec![0, 1], distances: vec![10] }],
            caches: Vec::new(),
            zones: vec![zone(ZoneKind::Dma, 0, 3996), zone(ZoneKind::Dma32, 4096, 31_900)],
        }
    }

    #[test]
    fn idle_cpus_shrink_the_share_of_the_others() {
        let machine = with_cpus(small_layout(), 5).unwrap();
        machine.check().unwrap();
        assert_eq!((machine.cpus, machine.nodes[0].cpus.len()), (5, 5));
        assert!(with_cpus(machine, 4).unwrap_err().to_string().contains("at least"));
    }

    /// Free lists for that machine.
    pub(super) fn small_snapshot() -> Snapshot {
        let buddyinfo = "Node 0, zone      DMA      1      0      2      0      0      2      3      3      1      0      1 \n\
                         Node 0, zone    DMA32     70     45     35     51     19     14     13      7      3      2     11 \n";
        Snapshot::parse("", buddyinfo, "", "").unwrap()
    }
}
