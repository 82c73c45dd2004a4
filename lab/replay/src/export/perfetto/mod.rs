//! Writes a recording as a trace for Perfetto, with tracks for nodes, zones, page sets, CPUs and threads. A
//! browser shows the tracks, and SQL can query them.
//!
//! Files, from an event to its bytes:
//! - `kernel` has the recorded kernel's tracks, with `kernel/cpu`, `kernel/reclaim`, `zones`, `samples`,
//!   `waits` and `flows`.
//! - `policy` has the tracks of a replay under a policy.
//! - `group` has the tracks that a recorded kernel and a replayed policy both have, and `curve` has their
//!   counters.
//! - `threads` has the tracks of threads, and `names` the names of slices.
//! - `packets` writes the parts of the format, and `wire` writes their bytes.

mod curve;
mod flows;
mod group;
mod kernel;
mod names;
mod packets;
mod policy;
mod samples;
#[cfg(test)]
mod tests;
mod threads;
mod waits;
mod wire;
mod zones;

use std::io::Write;

use anyhow::Result;
use pageset_core::policy::LINUX_6_18;
use pageset_report::Progress;
use pageset_trace::{Event, Layout, LostEvents, TraceReader};

use crate::{Candidate, Steps, policy_of_kernel};
use kernel::Kernel;
use names::{Key, Name};
use packets::{Descriptor, Packets, TrackKind, Value, What};

pub use flows::{FOLLOWED_ONE_IN, Followed};
pub use samples::SampledSets;

/// Options of an export.
#[derive(Clone, Debug)]
pub struct PerfettoOptions {
    /// The machine whose zones are shown. If this machine differs from the recorded machine, policies are
    /// replayed on this machine.
    pub machine: Layout,
    /// Policies that are shown beside the recorded kernel.
    pub policies: Vec<Candidate>,
    /// The program that writes the trace, and its version.
    pub written_by: String,
}

/// Counts of the exported events and slices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfettoSummary {
    /// Number of events read.
    pub events: u64,
    /// Number of packets written.
    pub packets: u64,
    /// The size of the packets in bytes.
    pub bytes: u64,
    /// The number of refills and the number of drains of the recorded kernel.
    pub recorded: (u64, u64),
    /// The number of refills and the number of drains under each policy, in the order of
    /// [`PerfettoOptions::policies`].
    pub replayed: Vec<(u64, u64)>,
    /// Counts of blocks that were followed from their allocation to their free.
    pub followed: Followed,
    /// How well page counts that were computed from events agree with the sampled page counts.
    pub samples: SampledSets,
    /// How many beginnings have no end, and how many ends have no beginning. A tick, LRU drain or reclaim
    /// without an end is drawn as a slice that ends at a later event or stays open. A wait without an end,
    /// and any end without a beginning, is not drawn.
    pub unpaired: u64,
    /// Events that the recording lacks.
    pub lost: LostEvents,
}

/// Writes a recording as a trace of Perfetto. `open` opens the recording from its beginning. The recording is
/// read once for the recorded kernel, in memory that does not grow with the number of events. If there are
/// policies, the recording is read once more, and each allocation and free takes 16 bytes of memory or, in
/// long recordings, of a file.
///
/// # Errors
/// An error if the recording cannot be read, if its description gives no possible machine, if `out` cannot be
/// written, or if the work is cancelled.
pub fn perfetto(
    open: &mut dyn FnMut() -> Result<Box<dyn TraceReader>>,
    options: &PerfettoOptions,
    out: &mut dyn Write,
    progress: &mut dyn Progress,
) -> Result<PerfettoSummary> {
    let mut reader = open()?;
    let mut events = Vec::new();
    reader.read_block(&mut events)?;
    let first_ns = events.first().map_or(0, |event| event.ts_ns);
    let mut packets = Packets::new(out, first_ns);
    let mut summary = recorded(reader.as_mut(), events, &mut packets, options, progress)?;
    if !options.policies.is_empty() {
        let mut reader = open()?;
        // If the machine is the recorded machine, do not pass this machine to the replay. Without a given
        // machine, the replay also uses the recorded state of memory.
        let is_recorded = reader.info().machine.as_ref() == Some(&options.machine);
        let machine = (!is_recorded).then(|| options.machine.clone());
        let amount = reader.amount();
        progress.begin("reading again", amount.unit(), amount.total());
        let mut cancelled = Ok(());
        let steps = Steps::read(reader.as_mut(), machine, |events| {
            if cancelled.is_ok() {
                cancelled = progress.update(amount.done(events));
            }
        })?;
        cancelled?;
        for (rank, candidate) in (1..).zip(&options.policies) {
            progress.begin("replaying", "allocations and frees", None);
            let tell = |steps| Ok(progress.update(steps)?);
            let made = policy::write(&mut packets, &steps, candidate, rank, tell)?;
            summary.replayed.push((made.refills, made.drains));
        }
    }
    Ok(PerfettoSummary { packets: packets.written, bytes: packets.bytes, ..summary })
}

/// Exports the recorded kernel. The caller has read the first block of events.
fn recorded(
    reader: &mut dyn TraceReader,
    mut events: Vec<Event>,
    packets: &mut Packets<'_>,
    options: &PerfettoOptions,
    progress: &mut dyn Progress,
) -> Result<PerfettoSummary> {
    let info = reader.info().clone();
    let release = info.kernel.as_deref().unwrap_or(&options.machine.kernel);
    let lists = policy_of_kernel(release).unwrap_or(&LINUX_6_18).lists;
    let name =
        if release.is_empty() { "recorded kernel".to_owned() } else { format!("recorded Linux {release}") };
    let first_ns = events.first().map_or(0, |event| event.ts_ns);
    let description = description(&info.not_recorded);
    let titles = (name.as_str(), description.as_str());
    let mut kernel = Kernel::begin(packets, titles, &info, &options.machine, lists, first_ns)?;
    let amount = reader.amount();
    progress.begin("exporting", amount.unit(), amount.total());
    let (mut read, mut last_ns) = (0, first_ns);
    while !events.is_empty() {
        for event in &events {
            kernel.event(packets, event)?;
            last_ns = event.ts_ns.max(last_ns);
        }
        read += events.len() as u64;
        progress.update(amount.done(read))?;
        reader.read_block(&mut events)?;
    }
    kernel.finish(packets, &info)?;
    let summary = PerfettoSummary {
        events: read,
        recorded: (kernel.refills, kernel.drains),
        followed: kernel.flows.counts,
        samples: kernel.sampled,
        unpaired: kernel.unpaired(),
        lost: reader.lost(),
        ..PerfettoSummary::default()
    };
    about(packets, &info, options, &summary, (first_ns, last_ns))?;
    Ok(summary)
}

/// Draws a slice that covers the whole recording and describes the recording, and a slice for each gap.
fn about(
    packets: &mut Packets<'_>,
    info: &pageset_trace::TraceInfo,
    options: &PerfettoOptions,
    summary: &PerfettoSummary,
    (first_ns, last_ns): (u64, u64),
) -> Result<()> {
    let sequence = packets.begin_sequence("about")?;
    let id = packets.new_track();
    packets.describe(
        sequence,
        &Descriptor {
            id,
            parent: None,
            name: "about this recording",
            description: "Information about the recording, and its gaps.",
            kind: TrackKind::Slices,
            rank: -1,
        },
    )?;
    let name = info.name.as_deref().unwrap_or("");
    let kernel = info.kernel.as_deref().unwrap_or("unknown");
    let facts = [
        (Key::Recorded, Value::Text(name)),
        (Key::Kernel, Value::Text(kernel)),
        (Key::Events, Value::Number(summary.events)),
        (Key::LostEvents, Value::Number(summary.lost.missing())),
        (Key::OneAllocationIn, Value::Number(FOLLOWED_ONE_IN)),
        (Key::WrittenBy, Value::Text(&options.written_by)),
    ];
    packets.event(sequence, first_ns, id, What::Begin(Name::Recording), &facts)?;
    packets.event(sequence, last_ns, id, What::End, &[])?;
    for (rank, gap) in info.gaps.iter().enumerate() {
        let track = packets.new_track();
        packets.describe(
            sequence,
            &Descriptor {
                id: track,
                parent: Some(id),
                name: &format!("missing on CPU {}", gap.cpu),
                description: "",
                kind: TrackKind::Slices,
                rank: rank as i64,
            },
        )?;
        let mut facts = vec![(Key::Cpu, Value::Number(u64::from(gap.cpu)))];
        facts.extend(gap.events.map(|events| (Key::Events, Value::Number(events))));
        packets.event(sequence, gap.after_ns, track, What::Begin(Name::EventsMissing), &facts)?;
        packets.event(sequence, gap.before_ns.max(gap.after_ns), track, What::End, &[])?;
    }
    Ok(())
}

fn description(not_recorded: &[String]) -> String {
    let mut text = "Refills and drains are runs of the kernel's own events. `count` follows from events and is set right by \
                    samples of /proc/zoneinfo; `high` and free pages are what those samples say."
        .to_owned();
    for what in not_recorded {
        text += &format!(" Not recorded: {what}.");
    }
    text
}
