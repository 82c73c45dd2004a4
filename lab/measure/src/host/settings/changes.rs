//! Changes settings, and puts the old values back.

use std::path::PathBuf;

use super::SettingError;
use super::change::{Assignment, Change, Now};
use super::record::Record;
use super::told::PutBack;

/// Changed settings. Dropping this value puts the old values back. While this value exists, no other process
/// can change settings through this crate.
#[derive(Debug)]
pub struct Changes {
    root: PathBuf,
    record: Record,
    /// The changes that were made, the oldest first.
    made: Vec<Change>,
}

impl Changes {
    pub(super) fn new(root: PathBuf, record: Record) -> Self {
        Self { root, record, made: Vec::new() }
    }

    /// Changes a setting of `vm`. `text` has the form that `sysctl` takes:
    /// `vm.percpu_pagelist_high_fraction=64`. Before the change, writes the change down in the file of
    /// changes.
    ///
    /// # Errors
    /// An error if `text` is no setting of `vm`, if the change cannot be written down, or if the kernel
    /// refuses the value or stores another value. After each of these errors, the setting has its old value,
    /// unless the kernel refuses the old value too.
    pub fn set(&mut self, text: &str) -> Result<(), SettingError> {
        let assignment = Assignment::parse(text)?;
        let change = assignment.change(&self.root)?;
        self.record.append(&change)?;
        change.make(&self.root)?;
        self.made.push(change);
        // Because `made` has the change now, dropping this value puts the setting back.
        let change = self.made.last().expect("it was put there");
        let Now::Other(now) = change.now(&self.root)? else { return Ok(()) };
        change.undo(&self.root)?;
        Err(SettingError::Altered {
            key: assignment.key().to_owned(),
            asked: assignment.value().to_owned(),
            now,
        })
    }

    /// The commands that put the old values back, the last change first.
    #[must_use]
    pub fn ways_back(&self) -> Vec<String> {
        self.made.iter().rev().map(Change::way_back).collect()
    }

    /// Leaves the settings as they are now.
    ///
    /// # Errors
    /// An error if the file of changes cannot be emptied. The next command then reports that a killed process
    /// has left these changes.
    pub fn keep(mut self) -> Result<(), SettingError> {
        self.made.clear();
        self.record.clear()
    }

    /// Puts back each setting that still has its changed value. Returns a report on each changed setting.
    #[must_use]
    pub fn put_back(mut self) -> Vec<PutBack> {
        self.undo()
    }

    fn undo(&mut self) -> Vec<PutBack> {
        let made = std::mem::take(&mut self.made);
        let told: Vec<_> = made.iter().rev().map(|change| PutBack::try_on(&self.root, change)).collect();
        if told.iter().all(PutBack::is_settled) {
            // If the file of changes cannot be emptied, the file still lists changes that are undone. The
            // next command that reads the file sees that the listed changes are undone.
            drop(self.record.clear());
        }
        told
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        drop(self.undo());
    }
}
