//! Finds the command lines in help texts, in the book and in READMEs. Tests parse all found command lines,
//! and run most command lines of help texts.

/// Returns the command lines in a text. A command line is indented by two spaces. A command line stands below
/// `Examples:`, or calls `pageset` with an option or one of `subcommands`. The function leaves out a comment
/// after two spaces.
pub(crate) fn command_lines(text: &str, subcommands: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_example = false;
    for line in text.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            is_example = line == "Examples:";
        }
        let is_indented = line.starts_with("  ") && !line.starts_with("   ");
        let typed = line.trim_start().split("  ").next().unwrap_or_default().trim_end();
        let names_command = pageset_parts(typed).any(|words| {
            let second = words.get(1).map_or("", String::as_str);
            second.starts_with('-') || subcommands.iter().any(|subcommand| subcommand == second)
        });
        if is_indented && (is_example || names_command) {
            lines.push(typed.to_owned());
        }
    }
    lines
}

/// Returns the words of each call of `pageset` in a shell line. The first word of a call is `pageset`, even
/// if the line has `sudo` before this word.
pub(crate) fn pageset_parts(line: &str) -> impl Iterator<Item = Vec<String>> {
    let commands = commands(line).into_iter().map(|mut words| {
        if words.first().is_some_and(|first| first == "sudo") {
            words.remove(0);
        }
        words
    });
    commands.filter(|words| words.first().is_some_and(|first| first == "pageset"))
}

/// Returns the words of each command in a shell line. `;`, `|` and `&&` separate commands, and the function
/// leaves out redirections. Words in single quotes may contain spaces.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![String::new()]];
    let mut is_quoted = false;
    for character in line.chars() {
        let command = commands.last_mut().expect("the list of commands is never empty");
        match character {
            '\'' => is_quoted = !is_quoted,
            ';' | '|' | '&' if !is_quoted => commands.push(vec![String::new()]),
            ' ' if !is_quoted => command.push(String::new()),
            _ => command.last_mut().expect("the list of commands is never empty").push(character),
        }
    }
    for command in &mut commands {
        command.retain(|word| !word.is_empty());
        if let Some(redirection) = command.iter().position(|word| word.starts_with('>')) {
            command.truncate(redirection);
        }
    }
    commands
}
