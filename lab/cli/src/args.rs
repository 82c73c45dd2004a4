//! The command line. The texts in this file appear in help pages, man pages and completion scripts.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::advise::args::AdviseArgs;
use crate::bench::args::BenchArgs;
use crate::convert::args::ConvertArgs;
use crate::policies::args::PoliciesArgs;
use crate::record::args::RecordArgs;
use crate::replay::args::ReplayArgs;
use crate::report::args::ReportArgs;
use crate::reproduce::args::ReproduceArgs;
use crate::simulate::args::SimulateArgs;
use crate::stat::args::StatArgs;
use crate::sweep::args::SweepArgs;
use crate::top::args::TopArgs;
use crate::verify::args::VerifyArgs;

const EXAMPLES: &str = "\
Examples:
  sudo pageset advise -- make -j4        are page sets the problem?
  sudo pageset record -- make -j4        a recording of what this machine does
  pageset stat my.pgtrace                allocations, frees, lifetimes
  pageset replay my.pgtrace              the load on other kernels
  pageset replay -p 6.6,6.12 my.pgtrace  two kernels; the first is the base
  pageset convert trace.dat my.pgtrace   files of ftrace, perf or trace-cmd

Where data comes from:
  A recording holds the kernel's page events. Without a RECORDING, advise
  records this machine. Other commands use a recording that is built in: Lua
  compiled with make -j4 on Linux 6.18, 2 CPUs.
  More recordings are in data/traces/ of the sources. To record your own
  machine, run `pageset record` as root.

Exit status: 0 done, 1 failed, 2 the command line is wrong.";

/// See Linux's page allocation at work on your machine, and try other settings and kernels on its load.
///
/// A recording holds each page that a kernel allocated or freed, with its CPU. The command shows the contents
/// of a recording, and replays the load on the per-CPU page sets (PCP) of other kernels. A replay counts how
/// often page sets fetch pages from the zone and give pages back. For each fetch and each return, a CPU takes
/// the zone lock.
#[derive(Debug, Parser)]
#[command(name = "pageset", version, after_help = EXAMPLES, max_term_width = 80)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Record(RecordArgs),
    Advise(AdviseArgs),
    Top(TopArgs),
    Stat(StatArgs),
    Replay(ReplayArgs),
    Report(ReportArgs),
    Verify(VerifyArgs),
    Convert(ConvertArgs),
    Simulate(SimulateArgs),
    Sweep(SweepArgs),
    Reproduce(ReproduceArgs),
    Bench(BenchArgs),
    Policies(PoliciesArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Groups of commands for the help, in the order of their use. Commands that are in no
/// group are for shells and packagers.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Your machine", &["record", "advise", "top"]),
    ("A recording", &["stat", "replay", "report", "verify", "convert"]),
    ("A larger machine", &["simulate", "sweep", "reproduce"]),
    ("This machine's costs", &["bench"]),
    ("Kernels", &["policies"]),
];

/// Returns clap's definition of the command line, with the subcommands in groups.
pub(crate) fn definition() -> clap::Command {
    let definition = Args::command();
    let about = |name: &str| {
        let command = definition.find_subcommand(name);
        command.and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default()
    };
    let mut groups = String::new();
    for (group, names) in GROUPS {
        groups += &format!("{group}:\n");
        for name in names {
            let words = textwrap_at(&about(name), WIDTH - NAME_WIDTH);
            groups += &format!("  {name:<width$}{words}\n", width = NAME_WIDTH - 2);
        }
        groups.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{options-heading}}\n{{options}}{{after-help}}"
    );
    definition.help_template(template.replace("{options-heading}", "Options:"))
}

/// `WIDTH` is the width of a help page in columns. `NAME_WIDTH` is the width of a help page's column of
/// names.
const WIDTH: usize = 80;
const NAME_WIDTH: usize = 13;

/// Wraps the words of `text` into lines of `width` columns. All lines after the first line are indented by
/// `NAME_WIDTH`, because the caller writes the first line behind a name.
fn textwrap_at(text: &str, width: usize) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_ascii_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines.join(&format!("\n{}", " ".repeat(NAME_WIDTH)))
}

const READING_COMPLETIONS: &str = "\
Examples:
  cd ~/.local/share/bash-completion/completions
  pageset completions bash > pageset

  pageset completions zsh > ~/.zfunc/_pageset
  pageset completions fish > ~/.config/fish/completions/pageset.fish";

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(hide = true, after_long_help = READING_COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one for each command
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct ManArgs {
    /// Write pageset.1, pageset-replay.1 and so on into DIR; a missing DIR is created
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
}

/// Ends the program with a usage error, as clap does.
pub(crate) fn exit_with_usage(problem: impl std::fmt::Display) -> ! {
    definition().error(ErrorKind::ValueValidation, problem).exit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    /// Tests that an option letter has one meaning in all subcommands.
    #[test]
    fn an_option_letter_means_the_same_everywhere() {
        fn collect(command: &clap::Command, letters: &mut std::collections::BTreeMap<char, String>) {
            for arg in command.get_arguments() {
                let Some(letter) = arg.get_short() else { continue };
                let name = arg.get_long().expect("an option with a letter also has a long name").to_owned();
                let known = letters.entry(letter).or_insert_with(|| name.clone());
                assert_eq!(
                    *known,
                    name,
                    "-{letter} has another meaning in the subcommand {}",
                    command.get_name()
                );
            }
            command.get_subcommands().for_each(|command| collect(command, letters));
        }
        collect(&definition(), &mut std::collections::BTreeMap::new());
    }

    #[test]
    fn help_names_every_command_in_a_group_once() {
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let definition = definition();
        let shown = definition.get_subcommands().filter(|command| !command.is_hide_set());
        let mut shown: Vec<_> = shown.map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        shown.sort_unstable();
        assert_eq!(grouped, shown);
    }
}
