//! Replays the load of a recording on the page sets of any policy.
//!
//! The modules, in the order of their use:
//! - `prepared` reads the recording, and `load` turns the recording into acts.
//! - `start` finds the page sets' contents at the beginning of the recording, and `window` the part that is
//!   counted.
//! - `bundles` adds up acts that page sets can play in one step.
//! - `forecast` plays the recording under a policy, on the simulated page sets of `page_sets`. `exchange`
//!   moves acts to other CPUs.
//! - `interval` computes how certain the result is, and `outcome` has the counts of a row.
//!
//! `machine` and `vm_settings` describe the machine, and `guess` guesses a machine for recordings that
//! describe none. `ticks` finds when a CPU does its periodic work. `frame_map` keeps a note for each frame.
//! `portions` keeps long lists in bounded memory. `steps` reports each step of one play.

mod act;
mod bundles;
mod candidate;
mod error;
mod exchange;
mod forecast;
mod frame_map;
mod guess;
mod interval;
mod kernel_totals;
mod load;
mod machine;
mod operation_list;
mod outcome;
mod page_sets;
mod portions;
mod prepared;
mod start;
mod steps;
mod ticks;
mod totals;
mod unplayed;
mod vm_settings;
mod window;

pub use candidate::{Candidate, replayable};
pub use error::ReplayError;
pub use guess::guess_layout;
pub use interval::{INTERVAL_COVERAGE, Interval};
pub use kernel_totals::KernelTotals;
pub use operation_list::OperationList;
pub use outcome::{Intervals, Outcome};
pub use steps::{Made, Step, Steps};
pub use unplayed::{Unreplayed, Unseen};
pub use vm_settings::VmSettings;
pub use window::Window;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use pageset_trace::{Layout, LostEvents, TraceInfo, TraceReader};
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use crate::memory;
use crate::recorded::{RecordedKinds, needs};
use crate::stretch::OneSetting;
use candidate::check;
use error::go_on;
use forecast::Forecast;
use interval::{Kind, distance};
use load::{PageSetLoad, Times};
use outcome::OwnDistance;
use prepared::Prepared;

/// The candidates and the machine of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// The candidates to replay, in the order of the rows. The first row is the base that the other rows are
    /// compared with.
    pub candidates: Vec<Candidate>,
    /// The machine that replaces the recorded machine in the replay.
    pub machine: Option<Layout>,
    /// The number of CPUs of the machine that is replayed on: the recorded CPUs, and added CPUs that stay
    /// idle. If the policy computes limits from a watermark, more CPUs mean a smaller limit of each page set.
    pub cpus: Option<u32>,
    /// Whether to find [`Replay::own_steady_visits`], which takes two more plays.
    pub finds_steady_visits: bool,
    /// A flag that ends the replay with [`ReplayError::Cancelled`] if the caller sets it.
    pub cancel: Arc<AtomicBool>,
}

/// A finished replay.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Replay {
    /// The machine that was replayed on.
    pub machine: Layout,
    /// Number of events read.
    pub events: u64,
    /// Events that the recording lacks.
    pub lost: LostEvents,
    /// The kinds of events that were recorded.
    #[serde(skip)]
    pub recorded: RecordedKinds,
    /// Events that could not be replayed, by reason; the same under every policy.
    pub unreplayed: Unreplayed,
    /// Work that the replay adds. This work has no events of its own, but other events show that the work
    /// happened.
    pub unseen: Unseen,
    /// Seconds between two ticks of a CPU, if the recording has no events of ticks.
    pub tick_interval_s: Option<u32>,
    /// The part of the recording that is counted.
    pub window: Window,
    /// The recorded kernel's own counts in the window, from its events.
    pub kernel_itself: KernelTotals,
    /// The *own row*: the replay under the recorded kernel's policy and settings. `None` if this policy is
    /// not known, if the recording does not show the kernel's visits, or if the replay is for a different
    /// machine.
    pub own: Option<Outcome>,
    /// Visits of the recorded kernel's policy if its page sets begin in their steady state, as page sets of
    /// other policies do. `None` if the caller did not ask for it, without an own row, or if no row is of
    /// another policy or setting.
    #[serde(skip)]
    pub own_steady_visits: Option<u64>,
    /// One row for each candidate, in the order of [`ReplayOptions::candidates`].
    pub outcomes: Vec<Outcome>,
    /// Warnings in words. For example, facts that the recording lacks, and the part of the recording that is
    /// replayed.
    pub warnings: Vec<String>,
    /// The memory that the replay took.
    #[serde(skip)]
    pub room: Room,
}

/// The memory that a replay took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Number of bytes of all acts.
    pub acts_bytes: u64,
    /// Number of bytes of the acts that were moved to a file. Acts go to a file if there are many acts or
    /// memory is short.
    pub file_bytes: u64,
    /// How many plays ran at the same time. `None` if memory sufficed for one play on each CPU.
    pub plays_at_once: Option<usize>,
}

impl Replay {
    /// The difference between the own row's visits and the recorded kernel's visits, in percent. `None` if
    /// one of the two numbers is not known.
    #[must_use]
    pub fn own_off_percent(&self) -> Option<f64> {
        let (own, itself) = (self.own.as_ref()?.visits() as f64, self.kernel_itself.visits()? as f64);
        Some(100.0 * ((own + 1.0) / (itself + 1.0) - 1.0))
    }

    /// The difference from the recorded kernel in words, such as `12 % more zone visits than it made`. If the
    /// replay has more than twice as many visits as the kernel, the sentence has a factor instead.
    #[must_use]
    pub fn own_beside(&self) -> Option<String> {
        self.own_off_percent().map(visits_beside)
    }

    /// The visits that rows of other policies should be compared with, if this number differs by more than 25
    /// % from the own row's visits: see [`own_steady_visits`](Self::own_steady_visits).
    #[must_use]
    pub fn steady_base(&self) -> Option<u64> {
        let own = self.own.as_ref()?.visits();
        self.own_steady_visits.filter(|steady| {
            let (low, high) = (own.min(*steady) + 1, own.max(*steady) + 1);
            high >= FEW_VISITS && 4 * high > 5 * low
        })
    }

    /// Whether the own row differs so much from the recorded kernel that forecasts cannot be trusted. With
    /// few visits the result is `false`, because the difference may be due to chance.
    #[must_use]
    pub fn is_far_off(&self) -> bool {
        let visits = self.own.as_ref().map(Outcome::visits).max(self.kernel_itself.visits());
        let is_more_than_chance = visits.is_some_and(|visits| visits >= FEW_VISITS);
        is_more_than_chance && self.own_off_percent().is_some_and(|off| off.abs() > FAR_OFF_PERCENT)
    }
}

/// Writes in words how the replay's visits differ from the kernel's visits. `off_percent` is the difference
/// in percent.
fn visits_beside(off_percent: f64) -> String {
    match off_percent.round() {
        0.0 => "as many zone visits as it made".to_owned(),
        off if off > 100.0 => {
            format!("{:.1} times as many zone visits as it made", off_percent / 100.0 + 1.0)
        }
        off if off > 0.0 => format!("{off:.0} % more zone visits than it made"),
        off => format!("{:.0} % fewer zone visits than it made", -off),
    }
}

/// Sentences that ask for a longer recording, because the replay of the recorded kernel itself is wrong. A
/// program that makes the recordings itself may replace these sentences.
pub const RECORD_LONGER: [&str; 2] = [
    "Make a longer recording, with all events that the guide to recording names.",
    "Record for longer, all CPUs, and with the state of the zones.",
];
/// If there are fewer zone visits than this number, chance decides about them, so a comparison shows little.
pub const FEW_VISITS: u64 = 20;
/// The largest difference in percent between a kernel and the replay under its own policy. If the difference
/// is larger, a forecast cannot be trusted.
pub const FAR_OFF_PERCENT: f64 = 25.0;

/// Progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Number of events read so far.
    Read(u64),
    /// Number of acts played so far, in all plays of all candidates, and this number at the end of the
    /// replay. Most acts are allocations and frees.
    Played(u64, u64),
}

/// Replays a recording under each candidate. The recording is read once, and several candidates are played at
/// the same time. Each allocation and free takes eight bytes. At most 80 MiB of these bytes stay in memory,
/// and the other bytes go to a file. Bundles of allocations and frees take at most 112 MiB more. `progress`
/// gets the number of events read, and then the number of allocations and frees played.
///
/// If a setting changed during the recording, the longest part without a change is replayed.
///
/// # Errors
/// An error if the recording is damaged, or has no allocations or no frees. Also an error if no possible
/// machine is known, if a setting changed at an unknown time, or if a policy cannot be replayed. Also an
/// error if neither memory nor a file has room, or if the replay is cancelled.
pub fn replay(
    reader: &mut dyn TraceReader,
    options: &ReplayOptions,
    progress: impl Fn(Stage) + Sync,
) -> Result<Replay, ReplayError> {
    replay_repeats(reader, &mut [], options, progress)
}

/// Does the same as [`replay`] with further recordings of the same load. The counts of a row come from the
/// first recording. The interval of a row comes from plays of all recordings, which also show how much runs
/// of the load differ.
///
/// # Errors
/// The errors of [`replay`], and an error if a recording has another kernel, machine or setting than the
/// first.
pub fn replay_repeats(
    reader: &mut dyn TraceReader,
    repeats: &mut [Box<dyn TraceReader>],
    options: &ReplayOptions,
    progress: impl Fn(Stage) + Sync,
) -> Result<Replay, ReplayError> {
    options.candidates.iter().try_for_each(check)?;
    let read = ReadRecording::read(reader, options, |events| {
        progress(Stage::Read(events));
        go_on(&options.cancel)
    })?;
    replay_read(read, repeats, options, progress)
}

/// Replays a recording that was already read.
pub(crate) fn replay_read(
    read: ReadRecording,
    repeats: &mut [Box<dyn TraceReader>],
    options: &ReplayOptions,
    progress: impl Fn(Stage) + Sync,
) -> Result<Replay, ReplayError> {
    let mut first = Played::new(read, options, progress)?;
    let mut others = Vec::new();
    let of_repeats = ReplayOptions { finds_steady_visits: false, ..options.clone() };
    for reader in repeats {
        let read = ReadRecording::read(reader.as_mut(), options, |_| go_on(&options.cancel))?;
        let other = Played::new(read, &of_repeats, |_| {})?;
        first.expect_repeat(&other, reader.info())?;
        others.push(other);
    }
    let outcomes = options.candidates.iter().enumerate().map(|(at, candidate)| {
        let (kind, forecast) = &first.forecasts[at];
        let repeats: Vec<_> = others.iter().map(|other| (&other.forecasts[at].1, other.off)).collect();
        Outcome::new(candidate, *kind, (forecast, first.off), &repeats)
    });
    first.replay.outcomes = outcomes.collect();
    Ok(first.replay)
}

/// Warnings that a user should read before the rows.
fn warnings(replay: &Replay) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(why) = replay.recorded.unsaid(needs::VISITS) {
        warnings.push(format!(
            "This recording does not show what its kernel did, so the error of a forecast is not known. {why}"
        ));
    }
    if let (Some(own), Some(beside), true) = (&replay.own, replay.own_beside(), replay.is_far_off()) {
        warnings.push(format!(
            "Beware: {} under its own policy is replayed {beside}. Forecasts from this recording are as wrong. {}",
            own.policy, RECORD_LONGER[0],
        ));
    }
    warnings
}

/// A recording that was read to its end and is ready for a replay.
pub(crate) struct ReadRecording {
    prepared: Prepared,
    info: TraceInfo,
    lost: LostEvents,
    /// The part of the recording that was read, in words.
    said: Option<String>,
}

impl ReadRecording {
    /// Reads a recording, or its longest part under one setting. `progress` receives the number of events
    /// read, and may end the reading.
    pub(crate) fn read(
        mut reader: &mut dyn TraceReader,
        options: &ReplayOptions,
        progress: impl FnMut(u64) -> Result<(), ReplayError>,
    ) -> Result<Self, ReplayError> {
        let from = (options.machine.clone(), options.cpus);
        // If the caller gives the machine, the settings of this machine hold for the whole recording.
        let (prepared, said) = if options.machine.is_some() {
            (Prepared::read(&mut reader, from, Times::Forget, progress)?, None)
        } else {
            let mut part = OneSetting::new(&mut *reader)?;
            let prepared = Prepared::read(&mut part, from, Times::Forget, progress)?;
            (prepared, part.said().map(str::to_owned))
        };
        Ok(Self { prepared, said, info: reader.info().clone(), lost: reader.lost() })
    }
}

/// The result of a replay of one recording under every candidate.
struct Played {
    /// The replay without its outcomes.
    replay: Replay,
    forecasts: Vec<(Kind, Forecast)>,
    /// The distance of the own row from the recorded kernel's counts; `None` if these counts were not
    /// recorded.
    off: Option<OwnDistance>,
}

impl Played {
    fn new(
        read: ReadRecording,
        options: &ReplayOptions,
        progress: impl Fn(Stage) + Sync,
    ) -> Result<Self, ReplayError> {
        let ReadRecording { prepared, info, lost, said } = read;
        prepared.require_load(&info)?;
        let bundles = forecast::bundles(&prepared.load, prepared.window);
        let (done, all) = (AtomicU64::new(0), AtomicU64::new(0));
        let told = |acts| progress(Stage::Played(done.fetch_add(acts, Relaxed) + acts, all.load(Relaxed)));
        let forecaster = prepared.forecaster(&bundles, &options.cancel, &told);
        let Prepared { policy, window, ref load, .. } = prepared;

        let kernel_itself = kernel_itself(load, window)?;
        let recorded = load.recorded;
        let shows_kernel = recorded.has(needs::VISITS);
        let own = policy.filter(|_| shows_kernel).map(Candidate::from);
        let (plays, room) = room(&prepared);
        type Forecasts = (Option<(Candidate, Forecast)>, Option<u64>, Vec<(Kind, Forecast)>);
        let on_few = |work: &mut (dyn FnMut() -> Result<Forecasts, ReplayError> + Send)| match plays {
            Some(plays) => match rayon::ThreadPoolBuilder::new().num_threads(plays).build() {
                Ok(pool) => pool.install(work),
                // Use one thread if memory does not suffice for further threads.
                Err(_) => work(),
            },
            None => work(),
        };
        let (own, own_steady_visits, forecasts) = on_few(&mut || {
            // Play candidates with the same deciding facts (`Deciding`) only once.
            let mut groups: Vec<(Candidate, Vec<usize>)> = Vec::new();
            let deciding = options.candidates.iter().map(|candidate| forecaster.deciding(candidate));
            let deciding = deciding.collect::<Result<Vec<_>, ReplayError>>()?;
            for (at, candidate) in options.candidates.iter().enumerate() {
                match groups.iter_mut().find(|(_, members)| deciding[members[0]] == deciding[at]) {
                    Some((_, members)) => members.push(at),
                    None => groups.push((*candidate, vec![at])),
                }
            }
            let is_own = |candidate: &Candidate| {
                let kind = forecaster.kind(candidate);
                own.as_ref().is_some_and(|own| kind == Kind::Recorded && own.policy == candidate.policy)
            };
            let played = groups.iter().map(|(candidate, _)| candidate).filter(|candidate| !is_own(candidate));
            let has_others = groups.iter().any(|(candidate, _)| !is_own(candidate));
            let own_beside_others = own.as_ref().filter(|_| has_others && options.finds_steady_visits);
            let steady_acts = own_beside_others.map_or(0, |_| forecaster.steady_acts());
            let acts: u64 = own.iter().chain(played).map(|candidate| forecaster.acts(candidate)).sum();
            all.store(acts + steady_acts, Relaxed);
            let own_forecast = own.as_ref().map(|own| forecaster.forecast(own)).transpose()?;
            let own_steady = own_beside_others.map(|own| forecaster.steady_visits(own)).transpose()?;
            let played = groups.into_par_iter().map(|(candidate, members)| {
                let kind = forecaster.kind(&candidate);
                let forecast = match &own_forecast {
                    // This candidate is the own row, which was played already.
                    Some(forecast) if is_own(&candidate) => forecast.clone(),
                    _ => forecaster.forecast(&candidate)?,
                };
                Ok(members.into_iter().map(move |at| (at, (kind, forecast.clone()))))
            });
            let played = played.collect::<Result<Vec<_>, ReplayError>>()?;
            let mut forecasts: Vec<_> = played.into_iter().flatten().collect();
            forecasts.sort_by_key(|(at, _)| *at);
            let forecasts = forecasts.into_iter().map(|(_, forecast)| forecast).collect();
            Ok((own.zip(own_forecast), own_steady, forecasts))
        })?;
        // Several threads report, so the last report before this one may not have the largest number.
        progress(Stage::Played(all.load(Relaxed), all.load(Relaxed)));
        let off = own.as_ref().map_or_else(OwnDistance::default, |(_, own)| own_distance(own, kernel_itself));
        let off = shows_kernel.then_some(off);
        let own = own.map(|(own, forecast)| Outcome::new(&own, Kind::Recorded, (&forecast, off), &[]));

        let (events, unreplayed, tick_interval_s) = (load.events, load.unreplayed, load.tick_interval_s);
        let unseen = Unseen {
            unmatched_frees: load.unmatched_frees,
            allocations: load.unseen_allocs,
            stack_pages: load.stack_pages,
            diverted_frees: load.diverted_frees,
        };
        let machine = prepared.machine.layout;
        let mut replay = Replay {
            machine,
            events,
            lost,
            recorded,
            unreplayed,
            unseen,
            tick_interval_s,
            window,
            kernel_itself,
            own,
            own_steady_visits,
            outcomes: Vec::new(),
            warnings: Vec::new(),
            room,
        };
        replay.warnings = said.into_iter().chain(warnings(&replay)).collect();
        Ok(Self { replay, forecasts, off })
    }

    /// Returns an error unless `other` is a repeat of this recording.
    fn expect_repeat(&self, other: &Self, info: &TraceInfo) -> Result<(), ReplayError> {
        let (ours, theirs) = (&self.replay.machine, &other.replay.machine);
        // Compare the zones' `present` pages, because their number is the same at each boot. `managed` may
        // differ from boot to boot, because a kernel does not always keep the same amount of memory for
        // itself.
        let memory =
            |machine: &Layout| -> Vec<u64> { machine.zones.iter().map(|zone| zone.present).collect() };
        let settings = VmSettings::between(ours, theirs);
        let what = if ours.kernel != theirs.kernel {
            format!("kernel ({} and {})", ours.kernel, theirs.kernel)
        } else if (ours.cpus, memory(ours)) != (theirs.cpus, memory(theirs)) {
            "machine".to_owned()
        } else if !settings.is_unchanged() {
            format!("setting ({settings})")
        } else {
            return Ok(());
        };
        Err(ReplayError::NoRepeat { path: info.path.clone(), what })
    }
}

/// How many plays may run at the same time. `None` if memory suffices for one play on each CPU.
fn room(prepared: &Prepared) -> (Option<usize>, Room) {
    let load = &prepared.load;
    // A play needs memory for its page sets and for three buffers of acts. The buffers hold bytes from the
    // file, acts, and acts of exchanged CPUs.
    let play = prepared.machine.sets() * page_sets::SET_BYTES + 3 * portions::PORTION * size_of::<act::Act>();
    let plays = memory::to_be_had()
        .map_or(usize::MAX, |bytes| usize::try_from(bytes / 2 / play as u64).unwrap_or(usize::MAX).max(1));
    let plays = Some(plays).filter(|plays| *plays < rayon::current_num_threads());
    let (acts_bytes, file_bytes) = load.acts.bytes();
    (plays, Room { acts_bytes, file_bytes, plays_at_once: plays })
}

fn kernel_itself(load: &PageSetLoad, window: Window) -> Result<KernelTotals, ReplayError> {
    let (mut refills, mut refilled_pages, mut drains, mut drained_pages) = (0, 0, 0, 0);
    let counted = load.decisions.each_one(|decided| {
        if u64::from(decided.before) < window.skipped {
            return;
        }
        let (count, pages) = match decided.refill {
            Some(_) => (&mut refills, &mut refilled_pages),
            None => (&mut drains, &mut drained_pages),
        };
        *count += 1;
        *pages += u64::from(decided.pages);
    });
    counted.map_err(|error| ReplayError::no_room(&load.decisions, error))?;
    let recorded = &load.recorded;
    Ok(KernelTotals {
        refills: recorded.known(needs::REFILLS, refills),
        refilled_pages: recorded.known(needs::REFILLS, refilled_pages),
        drains: recorded.known(needs::DRAINS, drains),
        drained_pages: recorded.known(needs::DRAINS, drained_pages),
    })
}

fn own_distance(own: &Forecast, kernel: KernelTotals) -> OwnDistance {
    let far = |own, kernel: Option<u64>| kernel.map_or(0.0, |kernel| distance(own, kernel));
    OwnDistance {
        visits: far(own.totals.visits(), kernel.visits()),
        refilled_pages: far(own.totals.refilled_pages, kernel.refilled_pages),
        drained_pages: far(own.totals.drained_pages, kernel.drained_pages),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use pageset_core::ZoneKind;
    use pageset_trace::{Node, Sysctls, ZoneDescription};

    use super::*;

    #[test]
    fn more_than_twice_as_many_is_a_factor() {
        assert_eq!(visits_beside(48.0), "48 % more zone visits than it made");
        assert_eq!(visits_beside(348.0), "4.5 times as many zone visits as it made");
        assert_eq!(visits_beside(-48.4), "48 % fewer zone visits than it made");
    }

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

    /// A machine with two CPUs, and zones of 16 MiB and 124 MiB.
    pub(crate) fn small_layout() -> Layout {
        Layout {
            kernel: "6.12".into(),
            architecture: "x86_64".into(),
            page_size: 4096,
            assumed: Vec::new(),
            cpus: 2,
            sysctls: Sysctls::default(),
            nodes: vec![Node { id: 0, cpus: vec![0, 1], distances: vec![10] }],
            caches: Vec::new(),
            zones: vec![zone(ZoneKind::Dma, 0, 3996), zone(ZoneKind::Dma32, 4096, 31_900)],
        }
    }
}
