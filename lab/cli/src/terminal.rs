//! Asks the user questions at the terminal.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};

use pageset_report::printable_lines;

/// The terminal that this process was started from. `None` if there is no terminal.
pub(crate) fn open() -> Option<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty").ok().filter(File::is_terminal)
}

/// Whether a user would see a question: whether the standard input and the standard error are terminals.
pub(crate) fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question, and returns the answer in lower case.
pub(crate) fn ask(mut terminal: File, question: &str) -> io::Result<String> {
    write!(terminal, "{} ", printable_lines(question))?;
    let mut answer = String::new();
    BufReader::new(terminal).read_line(&mut answer)?;
    Ok(answer.trim().to_ascii_lowercase())
}
