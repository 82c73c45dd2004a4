//! Settings that a killed command left changed. Every command that looks at the running kernel reports them.

use anyhow::{Result, bail};
use pageset_measure::host::Settings;
use pageset_measure::host::settings::{Left, PutBack};

use crate::output::say;
use crate::{rights, terminal};

/// Reports settings that were left changed. If the user is root and at a terminal, offers to put them back.
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

/// Puts back settings that were left changed, without a question, because the user asked for this.
pub(crate) fn put_back(settings: &Settings) -> Result<()> {
    match settings.left() {
        Some(left) => told(&left.put_back()?),
        None => {
            say("No command was killed before it put its settings back.");
            Ok(())
        }
    }
}

/// The error of a command that must not change settings, because a killed command left some changed.
pub(crate) fn refused(left: &Left) -> String {
    format!("{left} {}", way_back())
}

fn way_back() -> String {
    format!("`{}` puts them back.", rights::as_root(&["advise", "--put-back"]))
}

/// Reports each setting. Returns an error if a setting does not have its old value.
fn told(all: &[PutBack]) -> Result<()> {
    all.iter().for_each(|one| say(&one.to_string()));
    if all.iter().any(|one| !one.is_settled()) {
        bail!("a setting was not put back");
    }
    Ok(())
}
