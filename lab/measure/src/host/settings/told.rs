//! Sentences about changed settings.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::change::{Change, Now};
use super::record::Owner;

/// The report on a changed setting that was to be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// The setting that was written to undo the change.
    pub key: String,
    /// The value before the change.
    pub before: String,
    /// Whether the setting has its value before the change again.
    pub outcome: Undone,
    way_back: String,
}

/// Whether a changed setting has its old value again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The setting has its old value again.
    Done,
    /// The setting had its old value already, so nothing was written.
    WasDone,
    /// The setting has neither the changed nor the old value, because another process wrote the setting. This
    /// process therefore leaves the setting as it is. The variant holds the present value.
    ChangedByAnother(String),
    /// The kernel refuses the old value. The variant holds the reason.
    Refused(String),
}

impl PutBack {
    /// Undoes a change that is still in force. Race: another process may write the setting after this process
    /// has compared the value and before this process writes it. The other process's write is lost, because
    /// the kernel offers no way to compare and write at once.
    pub(super) fn try_on(root: &Path, change: &Change) -> Self {
        let refused = |error: super::SettingError| Undone::Refused(error.to_string());
        let outcome = match change.now(root) {
            Ok(Now::Before) => Undone::WasDone,
            Ok(Now::Other(now)) => Undone::ChangedByAnother(now),
            Err(error) => refused(error),
            Ok(Now::After) => match change.undo(root).and_then(|()| change.now(root)) {
                Ok(Now::Before) => Undone::Done,
                Ok(Now::After) => Undone::Refused("the kernel keeps the changed value".to_owned()),
                Ok(Now::Other(now)) => Undone::ChangedByAnother(now),
                Err(error) => refused(error),
            },
        };
        let values = change.undoing();
        Self { key: values.key.clone(), before: values.before.clone(), outcome, way_back: change.way_back() }
    }

    /// Whether nothing is left to do: the setting has its old value, or another process has written the
    /// setting.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !matches!(self.outcome, Undone::Refused(_))
    }
}

impl fmt::Display for PutBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, before, outcome, way_back } = self;
        match outcome {
            Undone::Done => write!(f, "{key} was put back to {before}."),
            Undone::WasDone => write!(f, "{key} is {before} again already."),
            Undone::ChangedByAnother(now) => write!(
                f,
                "{key} was not put back to {before}: another process set {now} meanwhile. `{way_back}` puts it back."
            ),
            Undone::Refused(why) => {
                write!(f, "{key} was not put back to {before}: {why}. Try `{way_back}` as root.")
            }
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid == 0 {
            return f.write_str("a process that has not said its number yet");
        }
        write!(f, "process {} (`{}`, begun {} ago)", self.pid, self.command, span(self.age()))
    }
}

/// Returns a time as a whole number of seconds, minutes, hours or days.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
