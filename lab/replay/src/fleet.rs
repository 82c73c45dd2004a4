//! A fleet: many recordings of one load, from one machine again and again or from many machines.
//!
//! [`files`] finds the recordings in a folder, and [`each`] runs a function for all recordings in parallel.
//! [`Answers`] sums up the verdicts of [`advise`]. If a recording cannot be read, its result is an error, and
//! work on the other recordings continues.
//!
//! [`advise`]: crate::advise::advise

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, bail};
use pageset_report::Progress;
use serde::{Deserialize, Serialize};

use crate::advise::{Advice, Verdict, Why};

/// The suffix of each recording in a folder. A folder may have other files too: layouts, notes, results.
const SUFFIX: &str = ".pgtrace";
/// Maximum number of recordings with the answer Yes that a sentence names.
const NAMED: usize = 5;

/// Drops the tables of tasks and call sites of an advice. These tables may be long, and the lines of a fleet
/// do not have the tables.
pub fn drop_tables(advice: &mut Advice) {
    (advice.who, advice.sites) = (None, None);
}

/// Whether the user asked for several recordings: more than one path, or a folder.
#[must_use]
pub fn is_fleet(paths: &[PathBuf]) -> bool {
    paths.len() > 1 || paths.iter().any(|path| path.is_dir())
}

/// Returns the recordings that the user asked for, each recording only once. A folder stands for its files
/// whose names end in `.pgtrace`, sorted by name.
///
/// # Errors
/// An error if a folder cannot be read, or has no recording.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unreadable = || format!("{}: cannot read the folder", path.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(path).with_context(unreadable)? {
            let file = entry.with_context(unreadable)?.path();
            let name = file.file_name().unwrap_or_default().as_encoded_bytes();
            if name.ends_with(SUFFIX.as_bytes()) && !name.starts_with(b".") && !file.is_dir() {
                found.push(file);
            }
        }
        if found.is_empty() {
            bail!(
                "{}: no file in this folder ends in {SUFFIX}; name files of other formats one by one, or convert them",
                path.display()
            );
        }
        found.sort_unstable();
        files.extend(found);
    }
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    Ok(files)
}

/// Runs `work` for each recording, on all CPUs. The results are in the order of `files`. One thread reads
/// each recording, so there are never more recordings in memory than CPUs. If there are fewer recordings than
/// CPUs, `work` may use several threads.
///
/// # Errors
/// [`Cancelled`](pageset_report::Cancelled), after the recordings that were begun are finished. An error if
/// the system cannot create threads.
pub fn each<R: Send>(
    files: &[PathBuf],
    progress: &mut dyn Progress,
    work: impl Fn(&Path) -> R + Sync,
) -> Result<Vec<R>> {
    progress.begin("reading", "recordings", Some(files.len() as u64));
    progress.update(0)?;
    let cpus = cpus_of_this_machine();
    let workers = cpus.min(files.len()).max(1);
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(cpus.div_ceil(workers)).build();
    // Each worker has its own thread pool. In a shared pool, a thread that waits for its recording's parallel
    // work would begin another recording in the meantime.
    let pools = (0..workers).map(|_| pool()).collect::<Result<Vec<_>, _>>().context("cannot make threads")?;
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    // The results, the number of results so far, the receiver of progress, and whether this receiver has
    // cancelled the work.
    let results = Mutex::new((files.iter().map(|_| None).collect::<Vec<Option<R>>>(), 0, progress, Ok(())));
    thread::scope(|scope| {
        for pool in &pools {
            let (next, stop, results, work) = (&next, &stop, &results, &work);
            scope.spawn(move || {
                while !stop.load(Relaxed)
                    && let at = next.fetch_add(1, Relaxed)
                    && let Some(file) = files.get(at)
                {
                    let result = pool.install(|| work(file));
                    let mut held = results.lock().unwrap_or_else(PoisonError::into_inner);
                    let (results, done, progress, going) = &mut *held;
                    results[at] = Some(result);
                    *done += 1;
                    if let Err(cancelled) = progress.update(*done) {
                        *going = Err(cancelled);
                        stop.store(true, Relaxed);
                    }
                }
            });
        }
    });
    let (results, _, _, going) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    going?;
    Ok(results.into_iter().flatten().collect())
}

/// The verdict of an advice, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// An effect of page sets matters. In most cases a setting or a kernel helps.
    Yes,
    /// Leave the settings alone.
    No,
    /// The recording does not show whether page sets matter.
    Unknown,
}

impl Answer {
    /// Reduces a verdict to the word that its sentences begin with.
    #[must_use]
    pub fn of(verdict: &Verdict) -> Self {
        use crate::advise::Matter::{CpuTime, HeldMemory};
        match verdict {
            Verdict::Set { .. }
            | Verdict::ChangeKernel { .. }
            | Verdict::Matters { .. }
            | Verdict::NothingHelps { matter: HeldMemory } => Self::Yes,
            Verdict::LeaveAlone | Verdict::NothingHelps { matter: CpuTime } => Self::No,
            Verdict::Unknown { .. } => Self::Unknown,
        }
    }

    /// Returns the answer in words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Yes => "Yes",
            Self::No => "No",
            Self::Unknown => "unknown",
        }
    }
}

/// Returns the advised settings in the form that `sysctl` takes, or the advised kernel. Also returns the
/// least and the most CPU time that this setting or kernel saves, in percent.
fn advised(advice: &Advice) -> Option<(&str, Option<(f64, f64)>)> {
    let (Verdict::Set { forecast, .. } | Verdict::ChangeKernel { forecast, .. }) = advice.verdict else {
        return None;
    };
    let forecast = &advice.forecasts[forecast];
    Some((forecast.kernel.as_deref().unwrap_or(&forecast.settings), forecast.saved_percent))
}

/// Says in a few words why a recording gives no answer. `None` if the recording gives an answer.
fn why_unknown(advice: &Advice) -> Option<&'static str> {
    let Verdict::Unknown { why } = advice.verdict else { return None };
    Some(match why {
        Why::NotRecorded => "events not recorded",
        Why::SettingChanged => "a setting changed",
        Why::PartOfMachine => "part of the machine",
        Why::TooShort => "too short",
        Why::EventsLost => "events lost",
        Why::OwnKernelMissed => "replay is far off",
        Why::UnknownKernel => "kernel not known",
        Why::WaitsNotRecorded => "waits not recorded",
        Why::CostNotMeasured => "cost not measured",
        Why::EventsNeeded => "counts only",
    })
}

/// The row of one recording in the table of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The answer in words. `None` if the recording could not be read.
    pub answer: Option<String>,
    /// The setting or kernel that is advised.
    pub advised: Option<String>,
    /// The least CPU time that the advised change saves, in percent.
    pub saved_percent_least: Option<f64>,
    /// The most CPU time that the advised change saves, in percent.
    pub saved_percent_most: Option<f64>,
    /// The most CPU time that any setting could save, in percent.
    pub most_percent: Option<f64>,
    /// Number of visits to zones per second.
    pub visits_per_s: Option<f64>,
    /// Why the recording gives no answer.
    pub why_unknown: Option<String>,
    /// Why the recording could not be read.
    pub error: Option<String>,
}

impl Line {
    /// Makes the line for an advice, or for the reason why a recording could not be read.
    #[must_use]
    pub fn new(read: Result<&Advice, String>) -> Self {
        let advice = match read {
            Ok(advice) => advice,
            Err(problem) => return Self { error: Some(problem), ..Self::default() },
        };
        let findings = &advice.findings;
        let (what, saved) = advised(advice).unzip();
        let saved = saved.flatten();
        let visits = findings.visits.filter(|_| findings.seconds > 0.0);
        Self {
            answer: Some(Answer::of(&advice.verdict).word().to_owned()),
            advised: what.map(str::to_owned),
            saved_percent_least: saved.map(|saved| saved.0),
            saved_percent_most: saved.map(|saved| saved.1),
            most_percent: findings.spending.most_percent,
            visits_per_s: visits.map(|visits| visits as f64 / findings.seconds),
            why_unknown: why_unknown(advice).map(str::to_owned),
            error: None,
        }
    }
}

/// The answers of all recordings of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// Number of recordings.
    pub recordings: usize,
    /// The recordings whose answer is *Yes*, as indices into the fleet's recordings. The recording with the
    /// largest saving is first.
    pub yes: Vec<usize>,
    /// The number of recordings whose answer is *No*.
    pub no: usize,
    /// The number of recordings without an answer.
    pub unknown: usize,
    /// The reasons why recordings give no answer, with the number of recordings for each reason. The most
    /// frequent reason is first.
    pub why_unknown: Vec<(String, usize)>,
    /// The number of recordings that could not be read.
    pub unread: usize,
    /// Each advised setting or kernel, with the number of recordings that get this advice. The most frequent
    /// advice is first.
    pub advised: Vec<(String, usize)>,
    /// All recordings by their answer: Yes, then unknown, then No, then recordings that could not be read.
    #[serde(skip)]
    pub order: Vec<usize>,
}

impl Answers {
    /// Sums up the answers; `None` stands for a recording that could not be read.
    pub fn new<'a>(fleet: impl IntoIterator<Item = Option<&'a Advice>>) -> Self {
        let mut answers = Self::default();
        let mut keys = Vec::new();
        for (at, advice) in fleet.into_iter().enumerate() {
            answers.recordings += 1;
            let Some(advice) = advice else {
                answers.unread += 1;
                keys.push((3, 0.0, at));
                continue;
            };
            // Answers are sorted by the saving that is certain. If no saving is certain, the largest possible
            // saving is used.
            let most = || advice.findings.spending.most_percent.unwrap_or(0.0);
            let saved = advised(advice).and_then(|(_, saved)| saved).map_or_else(most, |(least, _)| least);
            let class = match Answer::of(&advice.verdict) {
                Answer::Yes => 0,
                Answer::Unknown => 1,
                Answer::No => 2,
            };
            answers.no += usize::from(class == 2);
            answers.unknown += usize::from(class == 1);
            keys.push((class, -saved, at));
            let counts = [
                (&mut answers.advised, advised(advice).map(|(what, _)| what)),
                (&mut answers.why_unknown, why_unknown(advice)),
            ];
            for (counts, what) in counts {
                let Some(what) = what else { continue };
                match counts.iter_mut().find(|(known, _)| known == what) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((what.to_owned(), 1)),
                }
            }
        }
        keys.sort_by(|one, other| {
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2))
        });
        answers.yes = keys.iter().filter(|key| key.0 == 0).map(|key| key.2).collect();
        answers.order = keys.into_iter().map(|key| key.2).collect();
        for counts in [&mut answers.advised, &mut answers.why_unknown] {
            counts.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        }
        answers
    }

    /// Sentences that say how many recordings have each answer, and for how many recordings each change is
    /// advised. The sentences also name some recordings with the answer Yes, the largest saving first. `name`
    /// gives the name of a recording.
    pub fn sentences<'n>(&self, name: impl Fn(usize) -> &'n str) -> Vec<String> {
        let Self { recordings, yes, no, unknown, why_unknown, unread, advised, .. } = self;
        let mut said = vec![format!("{} of {recordings} recordings say Yes, {no} say No.", yes.len())];
        if *unknown > 0 {
            let whys = why_unknown.iter().map(|(why, count)| format!("{why} ({count})"));
            said.push(format!("{unknown} do not say: {}.", whys.collect::<Vec<_>>().join(", ")));
        }
        if *unread > 0 {
            said.push(format!("{unread} could not be read."));
        }
        if !yes.is_empty() {
            let named: Vec<&str> = yes.iter().take(NAMED).map(|at| name(*at)).collect();
            let more = match yes.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            said.push(format!("Yes, the worst first: {}{more}.", named.join(", ")));
        }
        said.extend(advised.iter().map(|(what, count)| {
            let are = if *count == 1 { "1 recording".to_owned() } else { format!("{count} recordings") };
            format!("{what} is advised for {are}.")
        }));
        said
    }
}

fn cpus_of_this_machine() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pageset_report::Cancelled;
    use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

    use super::*;

    #[test]
    fn a_folder_is_its_recordings_by_name_and_nothing_else_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["b.pgtrace", "a.pgtrace", "notes.txt", "a.toml", ".begun.pgtrace"] {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at("c.pgtrace")).unwrap();
        let named = |paths: &[PathBuf]| files(paths).unwrap();
        assert_eq!(named(&[folder.path().to_owned()]), [at("a.pgtrace"), at("b.pgtrace")]);
        let twice = [at("notes.txt"), at("b.pgtrace"), folder.path().to_owned()];
        assert_eq!(named(&twice), [at("notes.txt"), at("b.pgtrace"), at("a.pgtrace")], "each once");
        let error = files(&[at("c.pgtrace")]).unwrap_err().to_string();
        assert!(error.contains("no file in this folder ends in .pgtrace"), "{error}");
        assert!(is_fleet(&twice) && is_fleet(&[folder.path().to_owned()]));
        assert!(!is_fleet(&[at("a.pgtrace")]) && !is_fleet(&[at("missing")]));
    }

    #[test]
    fn results_have_the_order_of_the_recordings_and_no_more_are_read_at_once_than_there_are_cpus() {
        let files: Vec<PathBuf> = (0..100).map(|at| PathBuf::from(at.to_string())).collect();
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let results = each(&files, &mut (), |file| {
            most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
            // While a thread waits for its recording's parallel work, the thread must not begin another
            // recording.
            (0..8).into_par_iter().for_each(|_| thread::sleep(Duration::from_micros(50)));
            now.fetch_sub(1, Relaxed);
            file.to_owned()
        });
        assert_eq!(results.unwrap(), files);
        assert!(most.into_inner() <= cpus_of_this_machine());
        assert_eq!(each(&[], &mut (), |_| ()).unwrap(), []);
    }

    struct UpTo(u64);

    impl Progress for UpTo {
        fn begin(&mut self, _: &'static str, _: &'static str, _: Option<u64>) {}

        fn update(&mut self, done: u64) -> Result<(), Cancelled> {
            if done < self.0 { Ok(()) } else { Err(Cancelled) }
        }
    }

    #[test]
    fn whoever_watches_may_end_it() {
        let files: Vec<PathBuf> = (0..10_000).map(|at| PathBuf::from(at.to_string())).collect();
        let seen = Mutex::new(HashSet::new());
        let ended = each(&files, &mut UpTo(5), |file| {
            seen.lock().unwrap().insert(file.to_owned());
        });
        assert!(ended.unwrap_err().is::<Cancelled>());
        assert!(seen.into_inner().unwrap().len() <= 5 + cpus_of_this_machine());
    }
}
