//! Finds kernel settings that a killed command did not restore. The commands `advise`, `record`, `top` and
//! `bench machine` report settings that a killed command did not restore.

use anyhow::{Result, bail};
use pageset_measure::host::Settings;
use pageset_measure::host::settings::{Left, PutBack};

use crate::output::say;
use crate::{rights, terminal};

/// Reports settings that a killed command did not restore. If the user is root and at a terminal, offers to
/// restore the settings.
pub(crate) fn offer(settings: &Settings) -> Result<()> {
    let Some(left) = settings.left() else { return Ok(()) };
    let is_root = rustix::process::geteuid().is_root();
    let answer = match terminal::open().filter(|_| is_root && terminal::is_attended()) {
        Some(terminal) => {
            terminal::ask(terminal, &format!("{left}\nPut them back? [y]es, [k]eep them, or not now [N]"))?
        }
        None => {
            say(&format!("{left} {}", way_back()));
            return Ok(());
        }
    };
    match answer.as_str() {
        "y" | "yes" => told(&left.put_back()?),
        "k" | "keep" => Ok(left.keep()?),
        _ => {
            say(&way_back());
            Ok(())
        }
    }
}

/// Restores settings that a killed command did not restore. The function does not ask the user, because the
/// user gave `--put-back`.
pub(crate) fn put_back(settings: &Settings) -> Result<()> {
    match settings.left() {
        Some(left) => told(&left.put_back()?),
        None => {
            say("No command was killed before it put its settings back.");
            Ok(())
        }
    }
}

/// The error text of a command that refuses to change settings, because a killed command did not restore its
/// settings.
pub(crate) fn refused(left: &Left) -> String {
    format!("{left} {}", way_back())
}

fn way_back() -> String {
    format!("`{}` puts them back.", rights::as_root(&["advise", "--put-back"]))
}

/// Reports what became of each setting. Returns an error if a setting could not be restored.
fn told(all: &[PutBack]) -> Result<()> {
    all.iter().for_each(|one| say(&one.to_string()));
    if all.iter().any(|one| !one.is_settled()) {
        bail!("a setting was not put back");
    }
    Ok(())
}
