//! Settings that a killed process did not put back.

use std::fmt;
use std::path::{Path, PathBuf};

use super::SettingError;
use super::change::{Change, Now};
use super::record::{Content, Owner, Record};
use super::told::PutBack;

/// Settings that a killed process did not put back. A later command puts settings of a killed process back
/// only on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The killed process.
    pub owner: Owner,
    /// The changes that are still in force.
    changes: Vec<Change>,
    root: PathBuf,
    record: PathBuf,
}

impl Left {
    /// Returns the changes in the content of the file `record` that are still in force below `root`. `None`
    /// if no change is in force, or if the machine has restarted since the changes.
    pub(super) fn of(content: Content, root: &Path, record: &Path) -> Option<Self> {
        let owner = content.owner.filter(Owner::is_of_this_boot)?;
        let mut changes = content.changes;
        changes.retain(|change| matches!(change.now(root), Ok(Now::After)));
        if changes.is_empty() {
            return None;
        }
        Some(Self { owner, changes, root: root.to_owned(), record: record.to_owned() })
    }

    /// The commands that put the old values back, the last change first.
    #[must_use]
    pub fn ways_back(&self) -> Vec<String> {
        self.changes.iter().rev().map(Change::way_back).collect()
    }

    /// Puts back each setting that still has the value that the killed process left. Returns a report on each
    /// setting that was to be put back.
    ///
    /// # Errors
    /// An error if another process changes settings now, or if this process may not change settings.
    pub fn put_back(self) -> Result<Vec<PutBack>, SettingError> {
        let mut record = Record::lock(&[self.record])?;
        let changes = record.content().changes;
        let told: Vec<_> = changes.iter().rev().map(|change| PutBack::try_on(&self.root, change)).collect();
        if told.iter().all(PutBack::is_settled) {
            record.clear()?;
        }
        Ok(told)
    }

    /// Leaves the settings as they are now, and empties the file of changes.
    ///
    /// # Errors
    /// An error if another process changes settings now, or if this process may not change settings.
    pub fn keep(self) -> Result<(), SettingError> {
        Record::lock(&[self.record])?.clear()
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.changes.iter().flat_map(Change::all);
        let each =
            values.map(|values| format!("{} is {}, and was {}", values.key, values.after, values.before));
        let each = each.collect::<Vec<_>>().join("; ");
        write!(f, "A command was killed before it put settings back: {each}. It was {}.", self.owner)
    }
}
