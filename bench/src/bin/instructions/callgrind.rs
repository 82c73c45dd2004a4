//! Counts the instructions inside a function, with valgrind's callgrind.

use std::process::Command;

/// The reason why callgrind cannot be used, if there is one.
pub(crate) fn is_missing() -> Option<String> {
    let version = Command::new("valgrind").arg("--version").output();
    let works = version.is_ok_and(|output| output.status.success());
    (!works).then(|| "valgrind is not installed".to_owned())
}

/// Runs this program with one entry. Returns the instructions of all calls of the entry's function, callees
/// included.
pub(crate) fn collected(name: &str, function: &str) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(format!("--toggle-collect=*{function}*")).arg(program).args(["--run", name]);
    let output = command.output().map_err(|error| format!("cannot run valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("`{name}` failed under valgrind:\n{text}"));
    }
    total(&text).ok_or_else(|| format!("valgrind counted nothing for `{name}`:\n{text}"))
}

/// The number of the line `==7== Collected : 12345`.
fn total(text: &str) -> Option<f64> {
    let number = text.lines().find_map(|line| line.split_once("Collected : "))?.1;
    number.trim().parse().ok().filter(|count| *count > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found() {
        assert_eq!(total("==7== \n==7== Events    : Ir\n==7== Collected : 12345\n"), Some(12345.0));
        assert_eq!(total("==7== Collected : 0"), None);
    }
}
