//! Policies that users write, as TOML files. A file names a base policy, and the differences from this base
//! policy.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use pageset_core::policy::{BatchRule, HighRule};
use pageset_core::{ListScheme, POLICIES, Policy};
use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// Tables that a file may write in part: a missing key keeps the base policy's value. Any other table chooses
/// one of several rules, so it replaces the whole table of the base policy.
const OF_KEYS: [&str; 7] = [
    "tuning",
    "tuning.decay",
    "free_high",
    "free_high.drains",
    "free_high.threshold",
    "free_high.keep_batch",
    "buddy",
];

/// The end of an error message, which tells the user how to see all keys.
const SHOWN: &str = "`pageset policies linux-6.18 --toml` shows all keys and their values";

/// Maximum of `scale_max` in a file. With a larger value, a scaled batch would exceed every page set.
const SCALE_MAX: u8 = 24;

/// The reason why a file does not describe a policy: file, line, column and mistake.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PolicyFileError(String);

/// Whether the name of a policy is the path of a file: it has a `/`, or ends in `.toml`.
#[must_use]
pub fn names_policy_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// Reads the policy in this file. The policy is kept until the process ends, like named policies.
///
/// # Errors
///
/// An error if the file cannot be read, has unknown keys or impossible values, or names an unknown base.
pub fn read_policy(path: &Path) -> Result<&'static Policy, PolicyFileError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::InvalidData => "is not text, so not a policy; write recordings without -p".to_owned(),
            ErrorKind::NotFound => "there is no such policy file; `pageset policies` lists names".to_owned(),
            _ => error.to_string(),
        };
        PolicyFileError(format!("{}: {why}", path.display()))
    })?;
    let stem = path.file_stem().map_or_else(|| "mine".into(), |stem| stem.to_string_lossy());
    let policy = policy_from_toml(&text, &stem).map_err(|(at, why)| {
        let place = at.map_or_else(String::new, |at| place(&text, at.start));
        PolicyFileError(format!("{}{place}: {why}", path.display()))
    })?;
    Ok(Box::leak(Box::new(policy)))
}

/// Writes a policy as the text of a file, with all its rules.
///
/// # Panics
///
/// Never panics, because TOML can express all parts of a policy.
#[must_use]
pub fn policy_to_toml(policy: &Policy) -> String {
    let mut text = String::new();
    let lines = [
        format!("{} (Linux {}): {}", policy.name, policy.kernel, policy.summary),
        "The file may leave out rules, which are then those of the base policy, and the name, which is then the file's name."
            .to_owned(),
    ];
    for line in lines {
        _ = writeln!(text, "# {line}");
    }
    _ = writeln!(text, "base = \"{}\"", policy.name);
    text += &rules(policy);
    _ = writeln!(text, "\n# Other choices:");
    let own = choices(policy);
    // Collect the choices of all named policies, and of a fixed batch and a fixed limit.
    let mut fixed = *policy;
    (fixed.batch, fixed.high) = (BatchRule::Fixed(31), HighRule::Fixed(186));
    let others = POLICIES.iter().chain([&fixed]).flat_map(choices).collect::<BTreeMap<_, _>>();
    for (choice, line) in others {
        if !own.contains_key(&choice) {
            _ = writeln!(text, "# {line}");
        }
    }
    text
}

/// Finds all choices of a policy's rules. Maps each key and choice to the line of a file that makes this
/// choice.
fn choices(policy: &Policy) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    let rules = rules(policy).parse::<toml::Table>().expect("the text that this program wrote is valid TOML");
    for (key, value) in &rules {
        find_choices(key, value, &mut found);
    }
    found
}

/// Adds the choices of a rule, and of the rules in its table. A choice is a word, or a table with one key
/// that names the choice. A table that [`OF_KEYS`] lists contains further rules.
fn find_choices(path: &str, value: &toml::Value, found: &mut BTreeMap<(String, String), String>) {
    match value {
        toml::Value::String(word) => {
            found.insert((path.to_owned(), word.clone()), format!("{path} = \"{word}\""));
        }
        toml::Value::Table(table) if !OF_KEYS.contains(&path) => {
            let name = table.keys().next().cloned().unwrap_or_default();
            found.insert((path.to_owned(), name), format!("{path} = {}", in_one_line(value)));
        }
        toml::Value::Table(table) => {
            table.iter().for_each(|(key, value)| find_choices(&format!("{path}.{key}"), value, found));
        }
        _ => {}
    }
}

fn in_one_line(value: &toml::Value) -> String {
    let toml::Value::Table(table) = value else { return value.to_string() };
    let keys: Vec<_> = table.iter().map(|(key, value)| format!("{key} = {}", in_one_line(value))).collect();
    format!("{{ {} }}", keys.join(", "))
}

fn rules(policy: &Policy) -> String {
    toml::to_string(policy).expect("TOML can express tables, words and numbers")
}

/// A mistake, and its position in the text if the position is known.
type Wrong = (Option<Range<usize>>, String);

fn policy_from_toml(text: &str, stem: &str) -> Result<Policy, Wrong> {
    let mut file = DeTable::parse(text).map_err(|error| (error.span(), error.message().to_owned()))?;
    let of_whole = file.span();
    let mut word = |key: &str| match file.get_mut().remove(key) {
        None => Ok(None),
        Some(value) => match value.get_ref().as_str() {
            Some(word) => Ok(Some((value.span(), word.to_owned()))),
            None => Err((Some(value.span()), format!("`{key}` needs a name in quotes"))),
        },
    };
    let (base, name) = (word("base")?, word("name")?);
    let Some((at, base)) = base else {
        return Err((None, "name the policy that this one is based on: base = \"linux-6.18\"".to_owned()));
    };
    let base = Policy::named(&base).or_else(|| Policy::named(&format!("linux-{base}"))).ok_or_else(|| {
        let nearest = nearest(&base, POLICIES.iter().map(|policy| policy.name));
        (Some(at), format!("no policy is called `{base}`; did you mean `{nearest}`?"))
    })?;
    let name = match name {
        Some((at, name)) if name.is_empty() || Policy::named(&name).is_some() => {
            return Err((Some(at), format!("`{name}` is the name of another policy: choose a new name")));
        }
        Some((_, name)) => name,
        None if Policy::named(stem).is_some() => format!("{stem}.toml"),
        None => stem.to_owned(),
    };
    // Pad the text of the base, so that its byte positions are larger than all positions in the file.
    let padded = " ".repeat(text.len() + 1) + &rules(base);
    let whole = DeTable::parse(&padded).expect("the text that this program wrote is valid TOML");
    let mut merged = whole.into_inner();
    let places = Places::of(&file);
    merge(&mut merged, file.into_inner(), "");
    let mut policy =
        Policy::deserialize(Deserializer::from(Spanned::new(of_whole, merged))).map_err(|error| {
            let at = error.span().filter(|at| at.end <= text.len());
            (at, with_nearest(error.message()))
        })?;
    if let Some((key, why)) = impossible(&policy) {
        return Err((places.at(key), format!("{key}: {why}")));
    }
    policy.name = Box::leak(name.into_boxed_str());
    policy.kernel = base.kernel;
    policy.summary = Box::leak(format!("of a file; begins with {}", base.name).into_boxed_str());
    policy.source = "a file";
    Ok(policy)
}

fn merge<'t>(base: &mut DeTable<'t>, file: DeTable<'t>, path: &str) {
    for (key, mut value) in file {
        let below =
            if path.is_empty() { key.get_ref().to_string() } else { format!("{path}.{}", key.get_ref()) };
        if OF_KEYS.contains(&below.as_str())
            && let Some(of_base) = base.get_mut(key.get_ref().as_ref())
            && let (DeValue::Table(of_base), DeValue::Table(of_file)) = (of_base.get_mut(), value.get_mut())
        {
            merge(of_base, std::mem::take(of_file), &below);
        } else {
            // Replace the key too, because the key holds its position in the text.
            base.remove(key.get_ref().as_ref());
            base.insert(key, value);
        }
    }
}

/// The positions of the top-level keys in a policy file.
struct Places(Vec<(String, Range<usize>)>);

impl Places {
    fn of(file: &Spanned<DeTable<'_>>) -> Self {
        Self(file.get_ref().keys().map(|key| (key.get_ref().to_string(), key.span())).collect())
    }

    fn at(&self, key: &str) -> Option<Range<usize>> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, at)| at.clone())
    }
}

/// Finds a key whose value is impossible, or does not go with another key, and says why.
fn impossible(policy: &Policy) -> Option<(&'static str, &'static str)> {
    match (policy.batch, policy.high) {
        (BatchRule::Fixed(pages), _) if pages < 1 => return Some(("batch", "a batch is at least one page")),
        (_, HighRule::Fixed(pages)) if pages < 0 => {
            return Some(("high", "no page set holds less than nothing"));
        }
        (_, HighRule::Batches(batches)) if batches < 0 => {
            return Some(("high", "no page set holds less than nothing"));
        }
        _ => {}
    }
    if policy.scale_max > SCALE_MAX {
        return Some(("scale_max", "at most 24: a batch is doubled so many times"));
    }
    let owns = policy.ownership.is_some();
    if owns != (policy.lists == ListScheme::EveryOrder) {
        let key = if owns { "ownership" } else { "lists" };
        return Some((key, "lists = \"every_order\" and a table `ownership` go together"));
    }
    None
}

/// Writes the place of this byte as `:LINE:COLUMN`.
fn place(text: &str, byte: usize) -> String {
    let before = &text[..byte.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    format!(":{line}:{column}")
}

/// Adds a suggestion to serde's message about an unknown word: the most similar word that serde knows. To
/// messages about a wrong type, adds how to see all keys.
fn with_nearest(message: &str) -> String {
    let mut words = message.split('`').skip(1).step_by(2);
    match words.next() {
        Some(unknown) if message.starts_with("unknown ") => {
            let nearest = nearest(unknown, words);
            format!("{message}; did you mean `{nearest}`? {SHOWN}")
        }
        _ if message.starts_with("invalid type") || message.starts_with("wanted") => {
            format!("{message}. {SHOWN}")
        }
        _ => message.to_owned(),
    }
}

fn nearest<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> &'n str {
    let alike = names.map(|name| (strsim::jaro_winkler(typed, name), name));
    alike.max_by(|one, other| one.0.total_cmp(&other.0)).map_or("", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use pageset_core::policy::{Decay, FreeHighDrains, LINUX_6_18, Part};

    use super::*;

    fn refused(text: &str) -> String {
        let (at, why) = policy_from_toml(text, "mine").expect_err(text);
        at.map_or_else(String::new, |at| place(text, at.start)) + " " + &why
    }

    #[test]
    fn every_policy_is_the_same_after_a_round_trip() {
        for policy in POLICIES {
            let text = policy_to_toml(policy);
            let mut again = policy_from_toml(&text, "mine").unwrap_or_else(|why| panic!("{why:?}\n{text}"));
            // The result must not depend on the base, because the file that was written has all rules.
            let other = text.replace(&format!("base = \"{}\"", policy.name), "base = \"linux-4.9\"");
            let of_other = policy_from_toml(&other, "mine").unwrap_or_else(|why| panic!("{why:?}\n{other}"));
            for read in [&mut again, &mut { of_other }] {
                (read.name, read.kernel) = (policy.name, policy.kernel);
                (read.summary, read.source) = (policy.summary, policy.source);
                assert_eq!(read, policy, "{text}");
            }
        }
    }

    #[test]
    fn other_choices_are_shown_and_can_be_taken() {
        let text = policy_to_toml(&LINUX_6_18);
        for line in ["# batch = { fixed = ", "# free_high = \"none\"", "# high = "] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let (_, others) = text.split_once("# Other choices").unwrap();
        for line in others.lines().filter_map(|line| line.strip_prefix("# ")) {
            let file = format!("base = \"linux-6.18\"\n{line}\n");
            match policy_from_toml(&file, "mine") {
                Ok(_) => {}
                // Some choices are valid only together with other choices.
                Err((_, why)) => assert!(why.contains("go together"), "{line}: {why}"),
            }
        }
    }

    #[test]
    fn what_a_file_leaves_out_is_the_base() {
        let text = "base = \"linux-6.18\"\nfree_high.drains = { part = 0.5 }\ntuning.decay.part = \"1/3\"\n";
        let read = policy_from_toml(text, "half").unwrap();
        let (mut free_high, mut tuning) = (LINUX_6_18.free_high.unwrap(), LINUX_6_18.tuning.unwrap());
        free_high.drains = FreeHighDrains { part: Part::new(1, 2), ..free_high.drains };
        tuning.decay = Decay { part: Part::new(1, 3), ..tuning.decay };
        assert_eq!((read.name, read.free_high, read.tuning), ("half", Some(free_high), Some(tuning)));
        assert_eq!((read.batch, read.buddy), (LINUX_6_18.batch, LINUX_6_18.buddy));
        let read =
            policy_from_toml("base = \"linux-6.18\"\nfree_high = \"none\"\nbatch = { fixed = 31 }\n", "x");
        let read = read.unwrap();
        assert_eq!((read.free_high, read.batch), (None, BatchRule::Fixed(31)));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_the_nearest_name() {
        let after = |lines: &str| refused(&format!("base = \"linux-6.18\"\n{lines}"));
        for (lines, parts) in [
            ("free_hihg = \"none\"", [":2:1", "`free_high`"]),
            ("batch = 31", [":2:", "`pageset policies linux-6.18 --toml`"]),
            ("free_high.drains = { prat = 0.5 }", [":2:22", "`part`"]),
            ("\n[tuning]\nraise = \"unless_below_hihg\"", [":4:9", "`unless_below_high`"]),
            ("free_high.drains = { part = 1.5 }", [":2:29", "from 0 to 1"]),
            ("batch = { fixed = 0 }", [":2:1", "one page"]),
            ("scale_max = 25", [":2:1", "at most 24"]),
            ("lists = \"every_order\"", [":2:1", "go together"]),
            ("batch = ", [":2:", ""]),
        ] {
            let said = after(lines);
            assert!(parts.iter().all(|part| said.contains(part)), "{lines}: {said}");
        }
        assert!(
            refused("base = \"linux-6.81\"").contains(":1:8 no policy is called `linux-6.81`; did you mean")
        );
        assert!(refused("batch = { fixed = 3 }").contains("base = \"linux-6.18\""));
        assert!(refused("base = \"linux-6.18\"\nname = \"linux-6.1\"").contains(":2:8"));
    }
}
