//! A change of a setting: its values before and after. If the kernel also resets another setting, the change
//! has the values of this setting too.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{SettingError, read, write};

/// Each pair has two settings for one limit. If a program writes one setting of a pair, the kernel sets the
/// other setting to 0. The first setting of a pair is in bytes or KiB, and the second setting is in percent.
/// Source: the kernel's documentation of `vm` sysctls; every setting of `vm` was tried on Linux 6.18.
const PAIRS: [(&str, &str); 3] = [
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
];

/// Settings without a value: the kernel acts when a program writes these settings.
const ACTS: [&str; 3] = ["vm.compact_memory", "vm.drop_caches", "vm.stat_refresh"];

/// A setting and its new value, in the form that `sysctl` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    key: String,
    value: String,
}

/// A setting before and after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Values {
    pub(super) key: String,
    pub(super) before: String,
    pub(super) after: String,
}

/// A change of a setting, and of the other setting of the pair, which the kernel resets at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    /// The setting that is written.
    pub(super) written: Values,
    /// The other setting of the pair, which the kernel resets when `written` is written.
    pub(super) reset: Option<Values>,
}

/// The present state of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Now {
    /// The settings have the values after the change.
    After,
    /// The settings have the values before the change.
    Before,
    /// The settings have other values, because another process wrote the settings. The variant holds the
    /// present values.
    Other(String),
}

impl Assignment {
    /// Parses a text such as `vm.stat_interval=5`.
    pub(super) fn parse(text: &str) -> Result<Self, SettingError> {
        let not_a_setting = || SettingError::NotASetting(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(not_a_setting)?;
        let name = key.strip_prefix("vm.").ok_or_else(not_a_setting)?;
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if !is_name(name) || value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
            return Err(not_a_setting());
        }
        if ACTS.contains(&key) {
            return Err(SettingError::AnAct(key.to_owned()));
        }
        let digits = value.trim_start_matches('0');
        let value = if digits.is_empty() { "0" } else { digits };
        Ok(Self { key: key.to_owned(), value: value.to_owned() })
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Returns the change that this assignment would make below `root`.
    pub(super) fn change(&self, root: &Path) -> Result<Change, SettingError> {
        let written =
            Values { key: self.key.clone(), before: read(root, &self.key)?, after: self.value.clone() };
        let other = PAIRS.iter().find_map(|(one, other)| match self.key.as_str() {
            key if key == *one => Some(*other),
            key if key == *other => Some(*one),
            _ => None,
        });
        // A kernel with only one setting of the pair resets nothing.
        let reset = other.and_then(|key| {
            let before = read(root, key).ok()?;
            Some(Values { key: key.to_owned(), before, after: "0".to_owned() })
        });
        Ok(Change { written, reset })
    }
}

impl Change {
    /// The written setting, and the setting that is reset, if there is one.
    pub(super) fn all(&self) -> impl Iterator<Item = &Values> {
        [Some(&self.written), self.reset.as_ref()].into_iter().flatten()
    }

    /// The present state of the settings below `root`.
    pub(super) fn now(&self, root: &Path) -> Result<Now, SettingError> {
        let now = self.all().map(|values| read(root, &values.key)).collect::<Result<Vec<_>, _>>()?;
        let are = |wanted: fn(&Values) -> &String| self.all().map(wanted).eq(&now);
        // Compare the present values with the values before the change first. If a change does not alter a
        // value, the change then counts as undone.
        Ok(if are(|values| &values.before) {
            Now::Before
        } else if are(|values| &values.after) {
            Now::After
        } else {
            let pairs = self.all().zip(&now).map(|(values, now)| format!("{}={now}", values.key));
            Now::Other(pairs.collect::<Vec<_>>().join(" and "))
        })
    }

    /// Makes the change.
    pub(super) fn make(&self, root: &Path) -> Result<(), SettingError> {
        write(root, &self.written.key, &self.written.after)
    }

    /// The setting to write in order to undo the change. For a pair, this is the setting that was in force
    /// before the change. When this setting is written, the kernel sets the other setting of the pair to 0.
    pub(super) fn undoing(&self) -> &Values {
        let Some(reset) = &self.reset else { return &self.written };
        let [bytes, percent] = if PAIRS.iter().any(|(bytes, _)| *bytes == self.written.key) {
            [&self.written, reset]
        } else {
            [reset, &self.written]
        };
        if bytes.before == "0" { percent } else { bytes }
    }

    /// Undoes the change.
    pub(super) fn undo(&self, root: &Path) -> Result<(), SettingError> {
        let Values { key, before, .. } = self.undoing();
        write(root, key, before)?;
        // The kernel should have reset the other setting of the pair now. If the kernel has not reset it,
        // write the other setting too.
        let others = self.all().filter(|values| values.key != *key);
        others
            .filter(|values| read(root, &values.key).is_ok_and(|now| now != values.before))
            .try_for_each(|values| write(root, &values.key, &values.before))
    }

    /// The command that undoes the change.
    pub(super) fn way_back(&self) -> String {
        let Values { key, before, .. } = self.undoing();
        format!("sysctl {key}={before}")
    }
}
