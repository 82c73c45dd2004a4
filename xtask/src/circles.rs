//! Finds circles. The files of a circle belong to one crate and depend on each other, directly or through
//! other files.
//!
//! File A depends on file B if A imports or names an item that B defines. The call of a method counts only if
//! one file alone defines a method of this name. A `mod` declaration and a `pub use` do not count.
//! `xtask/circles.toml` has the size of each crate's largest circle, which may only fall.

use std::collections::{BTreeMap, BTreeSet};

use crate::ratchet::Ratchet;
use crate::repository::files;
use crate::run::Result;
use crate::rust_text::{Items, Token, items, tokens};
use crate::workspace::packages;

const RATCHET: Ratchet = Ratchet { file: "xtask/circles.toml", verb: "circles" };
/// A circle of this many files is allowed: a module and the files below it may use each other.
const FILES_MAX: u64 = 4;
/// Names of methods that types of the standard library have, too. A call does not show which type it is for.
const COMMON: [&str; 71] = [
    "add",
    "all",
    "and",
    "any",
    "append",
    "as_bytes",
    "as_ref",
    "as_slice",
    "as_str",
    "bytes",
    "chain",
    "chars",
    "clear",
    "collect",
    "contains",
    "count",
    "default",
    "drain",
    "end",
    "entry",
    "extend",
    "fill",
    "filter",
    "find",
    "first",
    "flush",
    "get",
    "get_mut",
    "insert",
    "into_iter",
    "is_empty",
    "iter",
    "iter_mut",
    "join",
    "keys",
    "last",
    "len",
    "line",
    "lines",
    "load",
    "lock",
    "map",
    "max",
    "min",
    "name",
    "new",
    "next",
    "parse",
    "path",
    "pop",
    "position",
    "push",
    "read",
    "remove",
    "reset",
    "rev",
    "split",
    "status",
    "output",
    "args",
    "env",
    "run",
    "start",
    "store",
    "sum",
    "swap",
    "take",
    "text",
    "values",
    "with_capacity",
    "write",
];

/// A source file of a crate.
struct Source {
    name: String,
    /// The path of the file's module in the crate, as in `["replay", "window"]`.
    module: Vec<String>,
    tokens: Vec<Token>,
    items: Items,
}

fn sources(directory: &str) -> Vec<Source> {
    let begin = format!("{directory}/src/");
    let of_crate =
        files().into_iter().filter(|file| file.has_extension(&["rs"]) && file.name.starts_with(&begin));
    of_crate
        .filter(|file| !file.name[begin.len()..].starts_with("bin/"))
        .map(|file| {
            let path = file.name[begin.len()..].trim_end_matches(".rs").to_owned();
            let mut module: Vec<_> = path.split('/').map(str::to_owned).collect();
            module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
            let tokens = tokens(&file.text());
            Source { items: items(&tokens), name: path + ".rs", module, tokens }
        })
        .collect()
}

/// Returns the paths of the `use` declaration at `at`, each as its words, and the place where the declaration
/// ends.
fn imported(tokens: &[Token], at: usize) -> (Vec<Vec<String>>, usize) {
    let (mut paths, mut prefixes, mut path) = (Vec::new(), Vec::new(), Vec::<String>::new());
    let mut is_renamed = false;
    let mut index = at;
    while index < tokens.len() {
        match &tokens[index] {
            Token::Word(word) if word == "as" => is_renamed = true,
            Token::Word(_) if is_renamed => is_renamed = false,
            Token::Word(word) => path.push(word.clone()),
            Token::Mark('{') => prefixes.push(path.clone()),
            Token::Mark(mark @ (',' | '}' | ';')) => {
                if prefixes.last() != Some(&path) && !path.is_empty() {
                    paths.push(path.clone());
                }
                if *mark == '}' {
                    prefixes.pop();
                    // A comma, a second closing brace or the end of the declaration follows.
                    path = prefixes.last().cloned().unwrap_or_default();
                } else {
                    path = prefixes.last().cloned().unwrap_or_default();
                }
                if *mark == ';' {
                    break;
                }
            }
            Token::Mark(_) => {}
        }
        index += 1;
    }
    (paths, index)
}

/// The files that define a crate's items.
struct Definitions<'a> {
    sources: &'a [Source],
    free: BTreeMap<&'a str, Vec<usize>>,
    /// The file that defines each method. `None` if several files or other crates define a method of this
    /// name.
    methods: BTreeMap<&'a str, Option<usize>>,
}

/// The files that a file depends on, each with the names that cause the dependency.
type Dependencies = BTreeMap<usize, BTreeSet<String>>;

impl<'a> Definitions<'a> {
    /// `elsewhere` has the names of methods that other crates and the standard library define.
    fn new(sources: &'a [Source], elsewhere: &BTreeSet<String>) -> Self {
        let mut definitions = Self { sources, free: BTreeMap::new(), methods: BTreeMap::new() };
        for (index, source) in sources.iter().enumerate() {
            for name in &source.items.free {
                definitions.free.entry(name).or_default().push(index);
            }
            for name in source.items.methods.iter().filter(|name| !elsewhere.contains(*name)) {
                let owner = definitions.methods.entry(name).or_insert(Some(index));
                *owner = owner.filter(|owner| *owner == index);
            }
        }
        definitions
    }

    /// Returns the file that defines an item. `path` is the item's path as it stands in the source.
    fn file_of(&self, from: usize, path: &[String]) -> Option<usize> {
        let source = &self.sources[from];
        let (first, mut rest) = path.split_first()?;
        let mut module = match first.as_str() {
            "crate" => Vec::new(),
            "self" => source.module.clone(),
            "super" => source.module.split_last()?.1.to_vec(),
            // The path begins with a module below this file or beside it.
            _ => {
                let below = [&source.module[..], std::slice::from_ref(first)].concat();
                if !self.sources.iter().any(|source| source.module == below) {
                    return None;
                }
                below
            }
        };
        while let Some((word, after)) = rest.split_first() {
            if word == "super" {
                module.pop();
            } else if self
                .sources
                .iter()
                .any(|source| source.module.starts_with(&[&module[..], std::slice::from_ref(word)].concat()))
            {
                module.push(word.clone());
            } else {
                break;
            }
            rest = after;
        }
        let file = self.sources.iter().position(|source| source.module == module);
        let Some(name) = rest.first() else { return file };
        let definers = self.free.get(name.as_str())?;
        // The module itself defines the item, or makes an item of a module below it public.
        let in_itself = definers.iter().copied().find(|index| Some(*index) == file);
        let below =
            || definers.iter().copied().find(|index| self.sources[*index].module.starts_with(&module));
        in_itself.or_else(below).or_else(|| (definers.len() == 1).then(|| definers[0]))
    }

    /// Returns the files that a file depends on, each with the names that cause the dependency.
    fn dependencies(&self, from: usize) -> Dependencies {
        let tokens = &self.sources[from].tokens;
        let mut found = Dependencies::new();
        let mut add = |to: Option<usize>, name: &str| {
            if let Some(to) = to.filter(|to| *to != from) {
                found.entry(to).or_default().insert(name.to_owned());
            }
        };
        let mut at = 0;
        while at < tokens.len() {
            let Some(word) = tokens[at].word() else {
                at += 1;
                continue;
            };
            let is_behind = |mark| tokens.get(at + 1).is_some_and(|token| token.is(mark));
            let is_before = |mark| at > 0 && tokens[at - 1].is(mark);
            if word == "in" && is_before('(') {
                // `pub(in PATH)` only limits who may use an item, so it is no dependency.
                at += tokens[at..].iter().take_while(|token| !token.is(')')).count();
            } else if word == "use" {
                let (paths, end) = imported(tokens, at + 1);
                if !is_passed_on(tokens, at) {
                    for path in paths {
                        add(self.file_of(from, &path), &path.join("::"));
                    }
                }
                at = end;
            } else if is_before('.') && (is_behind('(') || is_behind(':')) {
                add(self.methods.get(word).copied().flatten(), &format!(".{word}()"));
            } else if is_behind('!') && !is_before(':') {
                let definers = self.free.get(&*format!("{word}!")).filter(|definers| definers.len() == 1);
                add(definers.map(|definers| definers[0]), word);
            } else if is_behind(':') && !is_before(':') {
                // The path's first word is an imported name, a name of this file, or a module.
                let path = path(tokens, at);
                if path.len() > 1 {
                    add(self.file_of(from, &path), &path.join("::"));
                }
            }
            at += 1;
        }
        found
    }
}

/// Whether the `use` at this place is a `pub use`.
fn is_passed_on(tokens: &[Token], at: usize) -> bool {
    let before = tokens[..at].iter().rev().take_while(|token| !token.is(';') && !token.is('}'));
    before.take(4).any(|token| token.word() == Some("pub"))
}

/// Returns the words of the path `a::b::c` at `at`.
fn path(tokens: &[Token], at: usize) -> Vec<String> {
    let mut path: Vec<_> = tokens[at].word().into_iter().map(str::to_owned).collect();
    let mut index = at + 1;
    while index + 2 < tokens.len() && tokens[index].is(':') && tokens[index + 1].is(':') {
        let Some(word) = tokens[index + 2].word() else { break };
        path.push(word.to_owned());
        index += 3;
    }
    path
}

/// Returns the groups of files that depend on each other in a circle, the largest group first.
fn circles(edges: &[Dependencies]) -> Vec<Vec<usize>> {
    let reached = |from: usize| {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(file) = waiting.pop() {
            waiting.extend(edges[file].keys().copied().filter(|next| reached.insert(*next)));
        }
        reached
    };
    let all: Vec<_> = (0..edges.len()).map(reached).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for file in 0..edges.len() {
        let circle: Vec<_> = (0..edges.len())
            .filter(|other| all[file].contains(other) && all[*other].contains(&file))
            .collect();
        if circle.len() > 1 && seen.insert(circle.clone()) {
            circles.push(circle);
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// The files of a crate with their dependencies.
struct Crate {
    name: String,
    sources: Vec<Source>,
    edges: Vec<Dependencies>,
}

fn crates() -> Result<Vec<Crate>> {
    let all: Vec<_> =
        packages()?.into_iter().map(|package| (package.name, sources(&package.directory))).collect();
    let methods_but = |name: &str| {
        let others = all.iter().filter(|(other, _)| other != name).flat_map(|(_, sources)| sources);
        let mut methods: BTreeSet<_> =
            others.flat_map(|source| source.items.methods.iter().cloned()).collect();
        methods.extend(COMMON.map(str::to_owned));
        methods
    };
    let elsewhere: Vec<_> = all.iter().map(|(name, _)| methods_but(name)).collect();
    let made = all.into_iter().zip(&elsewhere).map(|((name, sources), elsewhere)| {
        let definitions = Definitions::new(&sources, elsewhere);
        let edges = (0..sources.len()).map(|file| definitions.dependencies(file)).collect();
        Crate { name, edges, sources }
    });
    Ok(made.collect())
}

fn counts() -> Result<BTreeMap<String, u64>> {
    let largest = |one: Crate| Some((one.name, circles(&one.edges).first()?.len() as u64));
    Ok(crates()?.into_iter().filter_map(largest).collect())
}

pub(crate) fn check() -> Result {
    RATCHET.check_each(&counts()?, FILES_MAX)
}

pub(crate) fn accept() -> Result {
    let mut counts = counts()?;
    counts.retain(|_, files| *files > FILES_MAX);
    RATCHET.write(&counts)
}

/// Prints the circles of the named crates, or of all crates, with the names that cause each dependency.
pub(crate) fn list(names: &[&str]) -> Result {
    for Crate { name, sources, edges } in crates()? {
        if !names.is_empty() && !names.contains(&name.as_str()) {
            continue;
        }
        let circles = circles(&edges);
        let sizes: Vec<_> = circles.iter().map(|circle| circle.len().to_string()).collect();
        let sizes = if sizes.is_empty() { "none".to_owned() } else { sizes.join(", ") };
        println!("{name}: {} files, circles of {sizes}", sources.len());
        if names.is_empty() {
            continue;
        }
        for circle in circles {
            println!();
            for file in &circle {
                println!("  {}", sources[*file].name);
                for (to, names) in edges[*file].iter().filter(|(to, _)| circle.contains(to)) {
                    let names: Vec<_> = names.iter().map(String::as_str).collect();
                    println!("      {}: {}", sources[*to].name, names.join(", "));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, text: &str) -> Source {
        let mut module: Vec<_> = name.split('/').map(str::to_owned).collect();
        module.pop_if(|last| last == "lib");
        let tokens = tokens(text);
        Source { name: name.to_owned(), module, items: items(&tokens), tokens }
    }

    #[track_caller]
    fn expect(files: &[(&str, &str)], edges: &[(&str, &str)]) {
        let sources: Vec<_> = files.iter().map(|(name, text)| source(name, text)).collect();
        let definitions = Definitions::new(&sources, &BTreeSet::new());
        let mut found = Vec::new();
        for (from, source) in sources.iter().enumerate() {
            found.extend(
                definitions
                    .dependencies(from)
                    .keys()
                    .map(|to| (source.name.as_str(), sources[*to].name.as_str())),
            );
        }
        assert_eq!(found, edges);
    }

    #[test]
    fn imports_and_names_lead_to_the_file_that_defines_them() {
        let lib = ("lib", "mod a; mod b; pub use a::{Zone, take}; pub(crate) use b::Page;");
        expect(&[lib, ("a", "pub struct Zone; pub fn take() {}"), ("b", "pub struct Page;")], &[]);
        expect(&[lib, ("a", "pub struct Zone; use crate::Page;"), ("b", "pub struct Page;")], &[("a", "b")]);
        expect(&[lib, ("a", "pub fn take() {}"), ("b", "fn f() { crate::a::take() }")], &[("b", "a")]);
        expect(&[lib, ("a", "pub fn take() {}"), ("b", "fn f() { let take = 1; x.take; }")], &[]);
        expect(
            &[lib, ("a", "impl X { pub fn refill(&self) {} }"), ("b", "fn f() { x.refill() }")],
            &[("b", "a")],
        );
        expect(&[lib, ("a", "pub(in crate::b) struct Zone;"), ("b", "struct Page;")], &[]);
        expect(&[lib, ("a", "pub struct Zone;"), ("b", "use other::Zone; fn f(zone: Zone) {}")], &[]);
        expect(
            &[
                lib,
                ("a", "use super::b::{self, Page}; fn f() { b::g() }"),
                ("b", "pub struct Page; pub fn g() {}"),
            ],
            &[("a", "b")],
        );
    }

    #[test]
    fn a_circle_is_closed_by_way_of_others() {
        let to = |file: usize| Dependencies::from([(file, BTreeSet::new())]);
        let edges = [to(1), to(2), to(0), to(0)];
        assert_eq!(circles(&edges), [[0, 1, 2]]);
    }
}
