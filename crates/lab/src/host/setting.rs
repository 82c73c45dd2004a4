//! A setting of the running kernel that is put back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Where the kernel has its settings.
const ROOT: &str = "/proc/sys";

/// A changed setting. It is put back when this goes out of scope.
#[derive(Debug)]
pub struct Setting {
    path: PathBuf,
    key: String,
    before: String,
    is_kept: bool,
}

/// A setting cannot be read or changed.
#[derive(Debug, Error)]
pub enum SettingError {
    /// It is not written as `sysctl` takes it.
    #[error("`{0}` is not a setting: write it like vm.percpu_pagelist_high_fraction=64")]
    NotASetting(String),
    /// The kernel has no such setting, or does not show it.
    #[error("{path}: cannot read this setting: {source}")]
    Unreadable {
        /// Its file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The kernel refuses the value, or does not allow this user to set it.
    #[error("{path}: cannot write {value}: {source}. Settings are changed by root")]
    Refused {
        /// Its file.
        path: PathBuf,
        /// What was to be written.
        value: String,
        /// What the system says.
        source: io::Error,
    },
}

impl Setting {
    /// Changes a setting of `vm`, written as `sysctl` takes it: `vm.percpu_pagelist_high_fraction=64`.
    ///
    /// # Errors
    /// It is no setting of `vm`, or the kernel refuses; then nothing is changed.
    pub fn change(text: &str) -> Result<Self, SettingError> {
        Self::change_in(Path::new(ROOT), text)
    }

    fn change_in(root: &Path, text: &str) -> Result<Self, SettingError> {
        let not_a_setting = || SettingError::NotASetting(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(not_a_setting)?;
        let name = key.strip_prefix("vm.").ok_or_else(not_a_setting)?;
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if !is_name(name) || value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
            return Err(not_a_setting());
        }
        let path = root.join("vm").join(name);
        let unreadable = |source| SettingError::Unreadable { path: path.clone(), source };
        let before = fs::read_to_string(&path).map_err(unreadable)?.trim().to_owned();
        let setting = Self { path, key: key.to_owned(), before, is_kept: false };
        match setting.write(value) {
            Ok(()) => Ok(setting),
            Err(source) => {
                let path = setting.path.clone();
                // Nothing was changed, so nothing is put back.
                setting.keep();
                Err(SettingError::Refused { path, value: value.to_owned(), source })
            }
        }
    }

    /// The command that puts the old value back, for people.
    #[must_use]
    pub fn way_back(&self) -> String {
        format!("sysctl {}={}", self.key, self.before)
    }

    /// Leaves it as it is now.
    pub fn keep(mut self) {
        self.is_kept = true;
    }

    /// Puts it back now, and tells if that fails.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn put_back(mut self) -> io::Result<()> {
        self.is_kept = true;
        self.write(&self.before)
    }

    fn write(&self, value: &str) -> io::Result<()> {
        // Without creating: a file that is not there is no setting.
        let mut file = fs::OpenOptions::new().write(true).open(&self.path)?;
        io::Write::write_all(&mut file, value.as_bytes())
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nobody is left to be told.
            let _ = self.write(&self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(value: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("vm")).unwrap();
        fs::write(root.path().join("vm/stat_interval"), value).unwrap();
        root
    }

    #[test]
    fn a_setting_is_put_back_unless_it_is_kept() {
        let root = root("1");
        let now = || fs::read_to_string(root.path().join("vm/stat_interval")).unwrap();
        let setting = Setting::change_in(root.path(), "vm.stat_interval=5").unwrap();
        assert_eq!((now().as_str(), setting.way_back().as_str()), ("5", "sysctl vm.stat_interval=1"));
        drop(setting);
        assert_eq!(now(), "1");
        Setting::change_in(root.path(), "vm.stat_interval=7").unwrap().put_back().unwrap();
        assert_eq!(now(), "1");
        Setting::change_in(root.path(), "vm.stat_interval=9").unwrap().keep();
        assert_eq!(now(), "9");
    }

    #[test]
    fn nothing_else_is_written() {
        let root = root("1");
        for wrong in [
            "vm.stat_interval",
            "kernel.pid_max=1",
            "vm.=1",
            "vm.../../etc/x=1",
            "vm.a=-1",
            "vm.a=1;",
            "vm.a=",
        ] {
            let error = Setting::change_in(root.path(), wrong).unwrap_err();
            assert!(matches!(error, SettingError::NotASetting(_)), "{wrong}: {error}");
        }
        let error = Setting::change_in(root.path(), "vm.unknown=1").unwrap_err();
        assert!(matches!(error, SettingError::Unreadable { .. }), "{error}");
        assert!(!root.path().join("vm/unknown").exists());
    }
}
