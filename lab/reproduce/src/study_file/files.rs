//! Finds and reads the files of a study: one TOML file with the simulations, CSV files with the published
//! values, and one Markdown file with the notes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pageset_trace::read_description;

use crate::sweep::FileName;

// The build script wrote this list of the files of each built-in study.
include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// Name and text of a built-in file.
type Bundled = (&'static str, &'static str);

/// The files of one study.
#[derive(Debug)]
pub(super) struct Files {
    /// The study's name: the name of its TOML file, without extension.
    pub(super) name: String,
    /// The path of the study's TOML file.
    path: PathBuf,
    /// The text of the TOML file.
    pub(super) text: String,
    /// The files of a built-in study. `None` if the user has the study's files in a directory.
    bundled: Option<&'static [Bundled]>,
}

impl Files {
    /// Returns the built-in studies.
    pub(super) fn bundled() -> impl Iterator<Item = Self> {
        BUNDLED.iter().map(|(name, files)| {
            let file = format!("{name}.toml");
            let mut bundled = Self {
                name: (*name).to_owned(),
                path: Path::new("data/tables").join(name).join(&file),
                text: String::new(),
                bundled: Some(files),
            };
            bundled.text = bundled.read(&file).expect("the build script found it");
            bundled
        })
    }

    /// Opens a study of the user by the path of its TOML file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = FileName::try_from(name.into_owned())
            .with_context(|| format!("{}: rename this file", path.display()))?;
        Ok(Self {
            name: name.to_string(),
            path: path.to_owned(),
            text: read_description(path)?,
            bundled: None,
        })
    }

    /// Returns the files of a study with the text `text` in its TOML file. The published values and the notes
    /// are small examples.
    pub(super) fn fuzzed(text: &str) -> Self {
        const BESIDE: &[Bundled] = &[
            ("my-study.csv", "batch,score,zone_pct\n31,3511158,2\n63,3561082,2\n127,3549375,0\n"),
            ("my-study.md", ""),
        ];
        let (name, path, text) = ("my-study".to_owned(), PathBuf::from("my-study.toml"), text.to_owned());
        Self { name, path, text, bundled: Some(BESIDE) }
    }

    /// Returns the path of the study's TOML file, for errors.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the path of another file in the directory of the study's TOML file, for errors and for runs.
    pub(super) fn beside(&self, name: &str) -> String {
        self.path.with_file_name(name).display().to_string()
    }

    /// Returns the text of another file in the directory of the study's TOML file.
    pub(super) fn read(&self, name: &str) -> Result<String> {
        let Some(bundled) = self.bundled else {
            return Ok(read_description(&self.path.with_file_name(name))?);
        };
        let found = bundled.iter().find(|(file, _)| *file == name);
        let missing = || format!("{}: is not there", self.beside(name));
        found.map(|(_, text)| (*text).to_owned()).with_context(missing)
    }

    /// Whether the study belongs to the user, and is not built in.
    pub(super) fn is_users(&self) -> bool {
        self.bundled.is_none()
    }
}
