//! Makes the texts of errors. If a right is missing that root has, the text shows a command line that runs
//! the command as root.

use std::env;
use std::path::Path;

use anyhow::Error;
use pageset_measure::host::SettingError;
use pageset_record::RecordError;
use pageset_report::shell_word;

use crate::left;

/// Name of the program that users run.
const NAME: &str = "pageset";
/// Directories where `sudo` looks for a command, instead of the user's PATH. Source: sudoers(5),
/// `secure_path` of distributions.
const PATHS_OF_ROOT: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Returns the text of an error, with each cause once. If only root has the right, the text shows the command
/// line that root needs. If a killed command left settings changed, the text shows the command line that
/// restores the settings. `typed` has the words that the user typed after the program's name.
pub(crate) fn told(error: &Error, typed: &[String]) -> String {
    let missing = error.chain().find_map(|cause| {
        let not_root = |what: &str| Some(format!("{what}: run `{}`", as_root(typed)));
        match (cause.downcast_ref::<RecordError>(), cause.downcast_ref::<SettingError>()) {
            (Some(RecordError::NotRoot { path }), _) => {
                not_root(&format!("only root may use {}", path.display()))
            }
            (_, Some(SettingError::NotRoot { path })) => {
                not_root(&format!("only root may change {}", path.display()))
            }
            (_, Some(SettingError::Left(left))) => Some(left::refused(left)),
            _ => None,
        }
    });
    missing.unwrap_or_else(|| causes(error))
}

/// An error and its causes. A cause is left out if an earlier text contains it.
fn causes(error: &Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told += &format!(": {cause}");
        }
    }
    told
}

/// Returns the command line that runs this program as root with the arguments `words`.
pub(crate) fn as_root(words: &[impl AsRef<str>]) -> String {
    // If this code runs within another program such as Python, the process has that program's name. Do not
    // use another program's name: the command line has the name `pageset`.
    let found = env::current_exe()
        .ok()
        .filter(|found| found.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME)));
    let program = env::args().next().filter(|_| found.is_some()).unwrap_or_else(|| NAME.to_owned());
    let mut line = format!("sudo {}", shell_word(&program_of_root(&program, found.as_deref())));
    words.iter().for_each(|word| line += &format!(" {}", shell_word(word.as_ref())));
    line
}

/// The word that root must type to run this program: the program's name if root's PATH contains the program,
/// and otherwise its path.
fn program_of_root(typed: &str, found: Option<&Path>) -> String {
    match found {
        Some(found) if !typed.contains('/') => {
            let is_known = PATHS_OF_ROOT.iter().any(|path| Path::new(path).join(typed) == found);
            if is_known { typed.to_owned() } else { found.display().to_string() }
        }
        _ => typed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let system = || std::io::Error::from_raw_os_error(22);
        let error = SettingError::Refused { path: "/x".into(), value: "1".into(), source: system() };
        let told = told(&Error::from(error), &[]);
        assert_eq!(told.matches("os error 22").count(), 1, "{told}");
        let error = Err::<(), _>(anyhow!("a: b")).context("c").unwrap_err();
        assert_eq!(causes(&error), "c: a: b");
    }

    #[test]
    fn a_missing_right_is_named_once_with_the_command_that_has_it() {
        let typed = ["advise", "--for", "5s", "--", "sh", "-c", "make -s; make"].map(str::to_owned);
        for error in [
            Error::from(RecordError::NotRoot { path: "/sys/kernel/tracing".into() }),
            Error::from(SettingError::NotRoot { path: "/proc/sys/vm/x".into() }).context("another"),
        ] {
            let told = told(&error, &typed);
            assert!(told.starts_with("only root may ") && told.matches("root").count() == 1, "{told}");
            assert!(told.ends_with(" advise --for 5s -- sh -c 'make -s; make'`"), "{told}");
            assert!(
                told.contains(": run `sudo /"),
                "root's PATH does not contain this test's program, so the message must name its whole path: {told}"
            );
        }
    }

    #[test]
    fn root_is_told_a_program_that_it_finds() {
        assert_eq!(program_of_root("pageset", Some(Path::new("/usr/bin/pageset"))), "pageset");
        assert_eq!(program_of_root("pageset", Some(Path::new("/home/u/bin/pageset"))), "/home/u/bin/pageset");
        assert_eq!(program_of_root("./pageset", Some(Path::new("/home/u/pageset"))), "./pageset");
        assert_eq!(program_of_root("pageset", None), "pageset");
    }
}
