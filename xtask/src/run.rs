//! Runs the commands of a leg. The error of a command contains its command line.

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::repository::{root, target};

/// The error is a sentence. If a command failed, the sentence contains the command line.
pub(crate) type Result<T = ()> = std::result::Result<T, String>;

/// The output file of a leg's commands, and the leg's arguments: the words after `--`.
pub(crate) struct Context {
    /// The file that gets the output of commands. `None` stands for the terminal.
    pub(crate) log: Option<File>,
    pub(crate) arguments: Vec<String>,
}

/// A command that will run at the root of the repository.
pub(crate) struct Invocation<'a> {
    context: &'a Context,
    command: Command,
    shown: String,
}

impl Context {
    /// Returns the command of a command line whose words contain no spaces.
    pub(crate) fn command(&self, line: &str) -> Invocation<'_> {
        let mut words = line.split_whitespace();
        let program = words.next().expect("a command has a program");
        let mut command = Command::new(program);
        command.args(words).current_dir(root());
        // Remove variables that tell children of cargo and rustup which toolchain and package to use. A leg
        // chooses its own.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUST_RECURSION_COUNT"] {
            command.env_remove(name);
        }
        // Remove the directories of libraries that cargo and rustup have added.
        if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
            let is_theirs = |path: &PathBuf| {
                path.starts_with(target()) || path.components().any(|part| part.as_os_str() == "toolchains")
            };
            let kept: Vec<_> = std::env::split_paths(&path).filter(|path| !is_theirs(path)).collect();
            match std::env::join_paths(&kept) {
                Ok(path) if !path.is_empty() => command.env("LD_LIBRARY_PATH", path),
                _ => command.env_remove("LD_LIBRARY_PATH"),
            };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::env::split_paths(&path).chain([target().join("tools/bin")]);
        command.env("PATH", std::env::join_paths(paths).expect("PATH was made of paths"));
        Invocation { context: self, command, shown: line.to_owned() }
    }

    /// Runs a command line without further settings.
    pub(crate) fn run(&self, line: &str) -> Result {
        self.command(line).run()
    }

    /// Prints a line to the output of the leg's commands.
    pub(crate) fn say(&self, line: &str) {
        use std::io::Write as _;
        // If the log cannot be written, the line is lost. The outcomes of legs are printed to the terminal.
        let _ = match &self.log {
            Some(file) => writeln!(&*file, "{line}"),
            None => writeln!(std::io::stdout(), "{line}"),
        };
    }
}

impl Invocation<'_> {
    pub(crate) fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        for argument in arguments {
            self.shown.push(' ');
            self.shown.push_str(&argument.as_ref().to_string_lossy());
            self.command.arg(argument);
        }
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.shown = format!("{name}=\"{}\" {}", value.as_ref().to_string_lossy(), self.shown);
        self.command.env(name, value);
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets an environment variable, unless the user has set it.
    pub(crate) fn default_env(self, name: &str, value: &str) -> Self {
        if std::env::var_os(name).is_some() { self } else { self.env(name, value) }
    }

    /// Sets the command's working directory, as a path from the repository's root.
    pub(crate) fn directory(mut self, directory: &str) -> Self {
        self.shown = format!("(cd {directory}) {}", self.shown);
        self.command.current_dir(root().join(directory));
        self
    }

    /// Runs the command. If it fails, the error contains the command line.
    pub(crate) fn run(mut self) -> Result {
        self.context.say(&format!("$ {}", self.shown));
        self.command.stdin(Stdio::null());
        if let Some(file) = &self.context.log {
            let copy = || file.try_clone().map_err(|error| format!("a log: {error}"));
            self.command.stdout(copy()?).stderr(copy()?);
        }
        let start = Instant::now();
        let status = self.command.status().map_err(|error| format!("`{}`: {error}", self.shown))?;
        self.context.say(&format!("$ took {:.0} s", start.elapsed().as_secs_f64()));
        if status.success() { Ok(()) } else { Err(format!("`{}`: {status}", self.shown)) }
    }

    /// Runs the command, and returns its standard output.
    pub(crate) fn output(mut self) -> Result<String> {
        let output = self.command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("`{}`: {error}", self.shown))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`{}`: {}\n{said}", self.shown, output.status));
        }
        String::from_utf8(output.stdout).map_err(|_| format!("`{}` prints no text", self.shown))
    }

    /// Runs the command without any output. Returns whether the command could be started and succeeded.
    pub(crate) fn succeeds(mut self) -> bool {
        let command = self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}
