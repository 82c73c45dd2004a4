//! Runs the phases of a test on real threads. All threads are created and pinned, and wait until all threads
//! are ready. When all threads are ready, each thread touches its pages, and ends.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use super::result::Run;
use crate::host::{pin, thread_cpu, usable_cpus};

/// A thread's work between the barriers.
pub(super) trait Toucher {
    /// The value that the thread's work returns at its end.
    type Left: Send;

    /// Touches all pages of the thread.
    fn touch(&mut self) -> Result<()>;

    /// Ends the work, on the thread that touched the pages.
    fn leave(self) -> Self::Left;
}

/// The times and faults that the operating system counted for a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    pub(super) cpu: Duration,
    pub(super) system: Duration,
    /// Page faults that needed no input from a disk.
    pub(super) minor_faults: u64,
}

/// Measured values of one thread.
struct Report<L> {
    begin: Instant,
    end: Instant,
    touch_cpu: Duration,
    /// Minor page faults between the barriers.
    touch_faults: u64,
    account: Account,
    outcome: Result<L>,
}

/// Times of the first three phases, and the values that the threads' work returned.
pub(super) struct Phases<L> {
    pub(super) run: Run,
    pub(super) minor_faults: u64,
    pub(super) left: Vec<L>,
}

/// Runs `threads` threads. Each thread first calls `make`, before the start barrier.
pub(super) fn run<T: Toucher>(
    threads: u32,
    make: impl Fn(u32) -> Result<T> + Sync,
) -> Result<Phases<T::Left>> {
    let (ready, done) = (Barrier::new(threads as usize + 1), Barrier::new(threads as usize + 1));
    let cpus = usable_cpus();
    let began = Instant::now();
    let (started, touched, reports) = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|index| {
                let (ready, done, make) = (&ready, &done, &make);
                let cpu = cpus[index as usize % cpus.len().max(1)];
                scope.spawn(move || one_thread(cpu, ready, done, || make(index)))
            })
            .collect();
        ready.wait();
        let started = Instant::now();
        done.wait();
        let touched = Instant::now();
        (started, touched, handles.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>())
    });
    let ended = Instant::now();
    let mut run = Run {
        start_s: (started - began).as_secs_f64(),
        touch_s: (touched - started).as_secs_f64(),
        exit_s: (ended - touched).as_secs_f64(),
        ..Run::default()
    };
    let (mut left, mut minor_faults, mut spans) = (Vec::new(), 0, Vec::new());
    for report in reports {
        let report = report.map_err(|_| anyhow!("a thread panicked; this is a bug"))?;
        run.touch_cpu_s += report.touch_cpu.as_secs_f64();
        run.system_s += report.account.system.as_secs_f64();
        run.user_s += report.account.cpu.saturating_sub(report.account.system).as_secs_f64();
        minor_faults += report.touch_faults;
        spans.push((report.end - report.begin).as_secs_f64());
        left.push(report.outcome?);
    }
    let mean = spans.iter().sum::<f64>() / spans.len().max(1) as f64;
    run.imbalance = spans.iter().copied().fold(0.0, f64::max) / mean;
    Ok(Phases { run, minor_faults, left })
}

fn one_thread<T: Toucher>(
    cpu: usize,
    ready: &Barrier,
    done: &Barrier,
    make: impl FnOnce() -> Result<T>,
) -> Report<T::Left> {
    // If the system refuses to pin the thread, the thread runs on any CPU.
    pin(cpu);
    let made = make();
    // Read the account before the barrier, so that the time of reading it is not measured.
    let before = account();
    ready.wait();
    let (begin, cpu_begin) = (Instant::now(), thread_cpu());
    // The thread must arrive at both barriers, even after an error.
    let touched = made.and_then(|mut toucher| toucher.touch().map(|()| toucher));
    let (end, cpu_end) = (Instant::now(), thread_cpu());
    let after = account();
    done.wait();
    let outcome = touched.map(T::leave);
    let counted = before.and_then(|before| Ok((before, after?, account()?)));
    let (touch_faults, account, outcome) = match counted {
        Ok((before, after, account)) => (after.minor_faults - before.minor_faults, account, outcome),
        Err(error) => (0, Account::default(), outcome.and(Err(error))),
    };
    Report { begin, end, touch_cpu: cpu_end.saturating_sub(cpu_begin), touch_faults, account, outcome }
}

/// CPU time and faults of the calling thread so far. System time has a resolution of 10 ms, Linux's clock
/// tick.
pub(super) fn account() -> Result<Account> {
    const FILE: &str = "/proc/thread-self/stat";
    let text =
        std::fs::read_to_string(FILE).context("/proc/thread-self/stat: cannot read; pft needs Linux")?;
    parse_stat(&text, thread_cpu()).ok_or_else(|| anyhow!("{FILE}: not as documented in proc(5)"))
}

/// Parses the text by the field numbers of proc(5). Field 3 (`state`) is the first field after the name in
/// parentheses, field 10 is `minflt`, and field 15 is `stime`.
fn parse_stat(text: &str, cpu: Duration) -> Option<Account> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let system = Duration::from_millis(field(15)? * 10).min(cpu);
    Some(Account { cpu, system, minor_faults: field(10)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing(u32);

    impl Toucher for Nothing {
        type Left = u32;

        fn touch(&mut self) -> Result<()> {
            if self.0 == 7 { anyhow::bail!("seven") } else { Ok(()) }
        }

        fn leave(self) -> u32 {
            self.0
        }
    }

    #[test]
    fn every_thread_is_waited_for_and_errors_come_out() {
        let phases = run(3, |index| Ok(Nothing(index))).unwrap();
        assert_eq!(phases.left, [0, 1, 2]);
        assert!(phases.run.imbalance >= 1.0);
        let error = run(3, |index| Ok(Nothing(index + 6))).err().unwrap();
        assert_eq!(error.to_string(), "seven");
        let error = run(2, |_| -> Result<Nothing> { anyhow::bail!("cannot be made") }).err().unwrap();
        assert_eq!(error.to_string(), "cannot be made");
    }

    #[test]
    fn the_name_of_a_thread_may_hold_anything() {
        let text = "12 (a) b) R 1 2 3 4 5 6 77 8 9 10 11 12 13";
        let account = parse_stat(text, Duration::from_secs(9)).unwrap();
        assert_eq!((account.minor_faults, account.system), (77, Duration::from_millis(120)));
        assert!(parse_stat("12 a", Duration::ZERO).is_none());
    }
}
