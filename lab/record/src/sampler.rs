//! Samples the page sets of every CPU every 20 ms, or less often on machines with many CPUs. A thread moves
//! from CPU to CPU and reads `/proc/zoneinfo`. In a reading of `/proc/zoneinfo`, only the values of the CPU
//! that reads are all from one moment.
//!
//! Before and after each reading, the thread writes a mark to the trace. The marks show the place of the
//! reading among the events.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    os::unix::fs::FileExt as _,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use pageset_trace::{Sample, SettingChange, ZoneSample, Zoneinfo};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock::now_ns;
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::instance::Instance;
use crate::machine::SettingsWatch;

/// Time between two samples of a CPU.
const PERIOD: Duration = Duration::from_millis(20);
/// Sampling takes at most the time of one CPU divided by this number. On machines with many CPUs,
/// `/proc/zoneinfo` is long.
const SHARE: u32 = 50;
/// Maximum number of page sets in all samples: 26 MB in the trace's description before compression. When the
/// samples exceed this maximum, every second round of samples is dropped, and the period is doubled.
const PAGESETS_MAX: usize = 200_000;
/// A mark is one of these two numbers plus the CPU's number. `BEFORE` stands for the beginning of a reading,
/// and `BEHIND` for its end.
const BEFORE: u32 = 0x5a00_0000;
const BEHIND: u32 = 0x5b00_0000;

/// Samples the page sets of CPUs.
pub(crate) struct Sampler {
    cpus: CpuList,
    zoneinfo: File,
    marks: Option<File>,
    text: Vec<u8>,
    samples: Vec<Sample>,
    pagesets: usize,
    period: Duration,
    settings: SettingsWatch,
}

impl Sampler {
    /// Makes a sampler for these CPUs.
    ///
    /// # Errors
    /// An error if `/proc/zoneinfo` cannot be read.
    pub(crate) fn new(instance: &Instance, cpus: CpuList) -> Result<Self, RecordError> {
        let path = "/proc/zoneinfo";
        let zoneinfo = File::open(path).map_err(|error| RecordError::io(path, "open", error))?;
        let marks = OpenOptions::new().write(true).open(instance.path("trace_marker_raw")).ok();
        let settings = SettingsWatch::begin(now_ns());
        let (text, samples) = (Vec::new(), Vec::new());
        Ok(Self { cpus, zoneinfo, marks, text, samples, pagesets: 0, period: PERIOD, settings })
    }

    /// Whether samples are marked in the trace.
    pub(crate) fn is_marking(&self) -> bool {
        self.marks.is_some()
    }

    /// Samples until `stop` is true. Returns the samples, and the settings that changed.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> (Vec<Sample>, Vec<SettingChange>) {
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            self.look_everywhere(stop);
            self.settings.look(now_ns());
            let pause = self.period.max(began.elapsed() * SHARE).saturating_sub(began.elapsed());
            thread::park_timeout(pause);
        }
        self.settings.look(now_ns());
        (self.samples, self.settings.end())
    }

    fn look_everywhere(&mut self, stop: &AtomicBool) {
        for cpu in self.cpus.clone().iter() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            // A CPU that has just gone offline has no page sets.
            let sample = go_to(cpu).then(|| self.look(cpu)).flatten();
            if let Some(sample) = sample {
                self.keep(sample);
            }
        }
    }

    /// Samples the page sets of `cpu`. The calling thread runs on this CPU.
    fn look(&mut self, cpu: u32) -> Option<Sample> {
        let t0_ns = now_ns();
        self.mark(BEFORE | cpu);
        let length = read_whole(&self.zoneinfo, &mut self.text)?;
        self.mark(BEHIND | cpu);
        let t1_ns = now_ns();
        let zoneinfo = Zoneinfo::parse(str::from_utf8(&self.text[..length]).ok()?).ok()?;
        Some(Sample { t0_ns, t1_ns, cpu, zones: own_pagesets(&zoneinfo, cpu) })
    }

    fn mark(&mut self, mark: u32) {
        if let Some(marks) = &mut self.marks {
            // A sample is useful even without its marks, so ignore errors.
            drop(marks.write_all(&mark.to_ne_bytes()));
        }
    }

    fn keep(&mut self, sample: Sample) {
        self.pagesets += sample.zones.len();
        self.samples.push(sample);
        if self.pagesets > PAGESETS_MAX {
            self.thin_out();
        }
    }

    fn thin_out(&mut self) {
        let (mut at, round) = (0, self.cpus.len().max(1));
        self.samples.retain(|_| {
            at += 1;
            (at - 1) / round % 2 == 0
        });
        self.pagesets = self.samples.iter().map(|sample| sample.zones.len()).sum();
        self.period *= 2;
    }
}

/// Moves this thread to `cpu`. Returns whether the move succeeded.
fn go_to(cpu: u32) -> bool {
    let mut set = CpuSet::new();
    if cpu as usize >= CpuSet::MAX_CPU {
        return false;
    }
    set.set(cpu as usize);
    sched_setaffinity(None, &set).is_ok()
}

/// Reads a file from its beginning into `text`, which grows as needed. Returns the length of the file.
fn read_whole(file: &File, text: &mut Vec<u8>) -> Option<usize> {
    let mut length = 0;
    loop {
        if length == text.len() {
            text.resize((text.len() * 2).max(1 << 16), 0);
        }
        match file.read_at(&mut text[length..], length as u64).ok()? {
            0 => return Some(length),
            bytes => length += bytes,
        }
    }
}

fn own_pagesets(zoneinfo: &Zoneinfo, cpu: u32) -> Vec<ZoneSample> {
    let own = |zone: &pageset_trace::ZoneDescription| {
        let set = zone.pagesets.iter().find(|set| set.cpu == cpu)?;
        Some(ZoneSample {
            node: zone.node,
            kind: zone.kind,
            free: zone.free,
            count: set.count,
            high: set.high,
            batch: set.batch,
            high_min: set.high_min,
            high_max: set.high_max,
        })
    };
    zoneinfo.populated().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(cpus: &str) -> Sampler {
        Sampler {
            cpus: cpus.parse().unwrap(),
            zoneinfo: File::open("/proc/zoneinfo").unwrap(),
            marks: None,
            text: Vec::new(),
            samples: Vec::new(),
            pagesets: 0,
            period: PERIOD,
            settings: SettingsWatch::begin(0),
        }
    }

    #[test]
    fn a_cpu_sees_its_own_page_sets() {
        let cpu = CpuList::online().iter().next().unwrap();
        let mut sampler = sampler(&cpu.to_string());
        let sample = sampler.look(cpu).unwrap();
        assert!(sample.t0_ns <= sample.t1_ns && !sample.zones.is_empty());
        assert!(sample.zones.iter().all(|zone| zone.batch > 0));
    }

    #[test]
    fn samples_of_a_long_recording_are_thinned_out_evenly() {
        let mut sampler = sampler("0-1");
        let zone = ZoneSample {
            node: 0,
            kind: pageset_core::ZoneKind::Normal,
            free: 0,
            count: 0,
            high: 0,
            batch: 1,
            high_min: None,
            high_max: None,
        };
        for look in 0..2 * PAGESETS_MAX as u64 {
            sampler.keep(Sample { t0_ns: look, t1_ns: look, cpu: (look % 2) as u32, zones: vec![zone] });
        }
        assert!(sampler.samples.len() <= PAGESETS_MAX && sampler.samples.len() > PAGESETS_MAX / 3);
        assert!(sampler.period > PERIOD);
        assert!(sampler.samples.is_sorted_by_key(|sample| sample.t0_ns));
        let of_cpu_0 = sampler.samples.iter().filter(|sample| sample.cpu == 0).count();
        assert_eq!(of_cpu_0 * 2, sampler.samples.len());
    }
}
