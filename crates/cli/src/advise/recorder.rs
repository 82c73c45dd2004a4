//! Recordings that `advise` makes itself: of a command, or for a time.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use pageset_record::{Going, Options, Session};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tempfile::TempDir;

use crate::record::Live;

/// How soon an interrupt is noticed while nothing is recorded.
const PAUSE: Duration = Duration::from_millis(50);

/// Records the same load as often as it is asked to.
pub(super) struct Recorder<'a> {
    /// Where recordings are, gone at the end.
    directory: TempDir,
    duration: Duration,
    command: &'a [OsString],
    /// Set by an interrupt. It does not end the process: a setting may have to be put back.
    is_interrupted: Arc<AtomicBool>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(duration: Duration, command: &'a [OsString]) -> Result<Self> {
        let is_interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&is_interrupted))?;
        }
        Ok(Self { directory: tempfile::tempdir()?, duration, command, is_interrupted })
    }

    /// Records so many times, each once page sets are as the load leaves them.
    pub(super) fn record_settled(&self, name: &str, times: u32) -> Result<Vec<PathBuf>> {
        let one = |time: u32| {
            self.settle()?;
            self.record(&format!("{name}-{time}"))
        };
        (1..=times).map(one).collect()
    }

    /// Records once.
    pub(super) fn record(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name).with_extension("pgtrace");
        let is_of_command = !self.command.is_empty();
        let duration = (!is_of_command).then_some(self.duration);
        let options = Options {
            duration,
            command: self.command.to_vec(),
            // Which waits are for zone locks is then known, and not inferred.
            with_call_chains: true,
            ..Options::default()
        };
        let session = Session::prepare(options)?;
        let mut live = Live::new(!is_of_command);
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        session.run(file, &mut |status| {
            live.show(status);
            if self.is_interrupted.load(Relaxed) { Going::End } else { Going::On }
        })?;
        drop(live);
        self.go_on()?;
        Ok(path)
    }

    /// Lets the load run unrecorded.
    fn settle(&self) -> Result<()> {
        match self.command {
            [] => {
                let until = Instant::now() + self.duration;
                while Instant::now() < until && !self.is_interrupted.load(Relaxed) {
                    thread::sleep(PAUSE);
                }
            }
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).stdout(Stdio::null());
                command.status().with_context(|| format!("cannot run `{}`", program.display()))?;
            }
        }
        self.go_on()
    }

    fn go_on(&self) -> Result<()> {
        if self.is_interrupted.load(Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }
}
