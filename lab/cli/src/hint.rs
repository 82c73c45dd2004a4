//! Adds a remedy to an error, if one is known.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Result, anyhow};
use pageset_trace::TraceError;

/// The remedy for a recording that does not exist. `otherwise` says what the subcommand does if the user
/// names no file.
fn make_one(otherwise: &str) -> String {
    format!("`pageset record -o FILE -- COMMAND` makes a recording; without a file name, {otherwise}")
}

/// Adds a remedy to an error of a recording. If the file does not exist, the error says how to make a
/// recording. If the file is damaged, the error names the option that reads a damaged file.
pub(crate) fn of_trace(error: TraceError) -> anyhow::Error {
    let hint = match &error {
        TraceError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            Some(make_one("the bundled recording is read"))
        }
        error if error.to_string().contains("leniently") => Some("the option --lenient does that".to_owned()),
        TraceError::Damaged { .. } => Some("the option --recover does that".to_owned()),
        _ => None,
    };
    match hint {
        Some(hint) => anyhow!("{error}; {hint}"),
        None => error.into(),
    }
}

/// Returns an error if there is no file at `recording`. `otherwise` says what the subcommand does if the user
/// names no file.
pub(crate) fn of_missing(recording: &Path, otherwise: &str) -> Result<()> {
    match fs::metadata(recording) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(anyhow!("{}: cannot open: {error}; {}", recording.display(), make_one(otherwise)))
        }
        _ => Ok(()),
    }
}

/// Adds a remedy to the error of a damaged file: the command that converts the file. Subcommands that have
/// neither `--lenient` nor `--recover` call this function.
pub(crate) fn of_conversion(error: anyhow::Error) -> anyhow::Error {
    let option = match error.downcast_ref() {
        Some(TraceError::Damaged { .. }) => "--recover",
        Some(error) if error.to_string().contains("leniently") => "--lenient",
        _ => return error,
    };
    anyhow!("{error:#}: `pageset convert {option}` makes a file that this command can read")
}

/// Adds a remedy to the error of a layout file. `text` is the content of the file.
pub(crate) fn of_layout(error: &TraceError, text: &str) -> anyhow::Error {
    if pageset_sim::Machine::parse(text, "").is_ok() {
        let name = error.path().display();
        return anyhow!(
            "{name}: this is a machine to simulate, for `pageset simulate --machine`; a layout has zones, and \
             `pageset convert --to layout` prints a layout"
        );
    }
    let is_description =
        matches!(error, TraceError::File { remedy, .. } if remedy.contains("machine description"));
    match is_description {
        true => anyhow!("{error}; `pageset convert --to layout` prints a layout that you can edit"),
        false => anyhow!("{error}"),
    }
}
