//! Reads a fleet for several subcommands, and writes the results of all its recordings. A fleet is many
//! recordings of one load.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use pageset_replay::fleet;
use pageset_report::{Provenance, Spread, Table, json_document, printable};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::exit_with_usage;
use crate::options::{OpeningArgs, SourceArgs};
use crate::progress::Progress;

/// Whether these paths are a fleet: several paths, or a folder. If a path of a fleet is the standard input,
/// ends the program with a usage error.
pub(crate) fn is_one(recordings: &[PathBuf]) -> bool {
    if !fleet::is_fleet(recordings) {
        return false;
    }
    if recordings.iter().any(|path| path.as_os_str() == "-") {
        exit_with_usage("the standard input is one recording: name files, or a folder");
    }
    true
}

/// One recording of a fleet, with its result or error.
pub(crate) struct Member<R> {
    file: PathBuf,
    /// The subcommand's result for the recording, or the error.
    pub(crate) read: Result<R, String>,
    /// The JSON document that the subcommand prints for this recording alone, if the user wants JSON.
    document: Option<Box<RawValue>>,
}

/// All recordings of a fleet.
pub(crate) struct Fleet<R> {
    pub(crate) members: Vec<Member<R>>,
    /// Names for tables: file names without `.pgtrace`, or paths if two file names are equal.
    names: Vec<String>,
}

/// Does `work` for each recording, on all CPUs. `work` returns the result of a recording. With `--format
/// json`, `work` also returns the JSON document of the recording's result.
pub(crate) fn read<R: Send>(
    (recordings, opening): (&[PathBuf], &OpeningArgs),
    work: impl Fn(&SourceArgs) -> Result<(R, Option<Box<RawValue>>)> + Sync,
) -> Result<Fleet<R>> {
    let files = fleet::files(recordings)?;
    let members = fleet::each(&files, &mut Progress::on_terminal(), |file| {
        let source = SourceArgs { recording: Some(file.to_owned()), opening: opening.clone() };
        let (read, document) = match work(&source) {
            Ok((read, document)) => (Ok(read), document),
            Err(error) => (Err(without_path(&format!("{error:#}"), file)), None),
        };
        Member { file: file.to_owned(), read, document }
    })?;
    let name = |file: &PathBuf| {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        name.strip_suffix(".pgtrace").unwrap_or(&name).to_owned()
    };
    let mut distinct: Vec<_> = files.iter().map(name).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let is_distinct = distinct.len() == files.len();
    let names = files.iter().map(|file| match is_distinct {
        true => printable(&name(file)).into_owned(),
        false => printable(&file.display().to_string()).into_owned(),
    });
    Ok(Fleet { names: names.collect(), members })
}

/// Removes the file's name from an error, because the printed line already begins with the name.
fn without_path(error: &str, file: &Path) -> String {
    error.strip_prefix(&format!("{}: ", file.display())).unwrap_or(error).to_owned()
}

/// Turns the document of one recording into JSON text.
///
/// # Errors
///
/// Returns an error if the document cannot be written as JSON.
pub(crate) fn document(document: &impl Serialize) -> Result<Box<RawValue>> {
    Ok(serde_json::value::to_raw_value(document)?)
}

/// The JSON document with the results of a fleet. Keys are stable.
#[derive(Serialize)]
struct FleetDocument<'a, S> {
    recordings: Vec<MemberDocument<'a>>,
    summary: S,
    provenance: &'a Provenance,
}

#[derive(Serialize)]
struct MemberDocument<'a> {
    file: String,
    /// The error of a recording that could not be read.
    error: Option<&'a str>,
    /// The subcommand's result for this recording alone.
    result: Option<&'a RawValue>,
}

impl<R> Fleet<R> {
    pub(crate) fn name(&self, at: usize) -> &str {
        &self.names[at]
    }

    /// The results of the recordings that could be read, in the order of the command line.
    pub(crate) fn known(&self) -> impl Iterator<Item = &R> {
        self.members.iter().filter_map(|member| member.read.as_ref().ok())
    }

    /// The heading of the table with a line for each recording of the fleet.
    pub(crate) fn title(&self) -> String {
        format!("A fleet of {} recordings", self.members.len())
    }

    pub(crate) fn unread(&self) -> usize {
        self.members.iter().filter(|member| member.read.is_err()).count()
    }

    /// Writes one object for each recording, in the order of the command line, and the summary.
    pub(crate) fn write_json(
        &self,
        summary: impl Serialize,
        provenance: &Provenance,
        out: &mut dyn Write,
    ) -> Result<()> {
        let of = |member: &'_ Member<R>| member.read.as_ref().err().cloned();
        let errors: Vec<Option<String>> = self.members.iter().map(of).collect();
        let recordings = self.members.iter().zip(&errors).map(|(member, error)| MemberDocument {
            file: member.file.display().to_string(),
            error: error.as_deref(),
            result: member.document.as_deref(),
        });
        let document = FleetDocument { recordings: recordings.collect(), summary, provenance };
        Ok(json_document(&document, out)?)
    }

    /// Adds notes below the table for recordings that could not be read.
    pub(crate) fn note_unread(&self, table: &mut Table) {
        for (at, member) in self.members.iter().enumerate() {
            if let Err(problem) = &member.read {
                table.note(format!("Not read: {}: {}.", self.name(at), problem.trim_end_matches('.')));
            }
        }
    }

    /// Returns an error if a recording could not be read. Subcommands call this function after they have
    /// printed all results, so that the exit status shows the failure.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.unread() {
            0 => Ok(()),
            unread => bail!("{unread} of {} recordings could not be read", self.members.len()),
        }
    }
}

/// The median, the smallest and the largest of the known values.
pub(crate) fn spread(values: impl IntoIterator<Item = Option<f64>>) -> Option<Spread> {
    Spread::of(&values.into_iter().flatten().collect::<Vec<_>>())
}
