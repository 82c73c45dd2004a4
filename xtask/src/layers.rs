//! Checks the dependencies between crates against the layers in the table of `docs/crates.md`. Only normal
//! dependencies count, so tests may use any crate.

use crate::repository::{Broken, text};
use crate::run::{Context, Result};
use crate::workspace::{Package, packages};

const TABLE: &str = "docs/crates.md";
/// Largest number of crates that `pageset-core` may bring into a kernel, including indirect dependencies.
const CORE_DEPENDENCIES_MAX: usize = 3;

/// A row of the table.
#[derive(Debug, PartialEq)]
struct Row {
    /// `None` for crates that are not published. Such a crate may depend on any crate.
    layer: Option<u32>,
    name: String,
    may: Allowed,
}

#[derive(Debug, PartialEq)]
enum Allowed {
    Any,
    /// The crate may depend on every crate of a lower layer except these.
    BelowBut(Vec<String>),
    Only(Vec<String>),
}

/// Returns the full name of a crate. The table's last column leaves `pageset-` out.
fn full_name(short: &str) -> String {
    if short == "pageset" { short.to_owned() } else { format!("pageset-{short}") }
}

fn allowed(cell: &str) -> Allowed {
    let names = |list: &str| list.split(',').map(|name| full_name(name.trim())).collect();
    match cell {
        "all" => Allowed::Any,
        "nothing here" => Allowed::Only(Vec::new()),
        "all below" => Allowed::BelowBut(Vec::new()),
        _ => match cell.strip_prefix("all below but ") {
            Some(list) => Allowed::BelowBut(names(list)),
            None => Allowed::Only(names(cell)),
        },
    }
}

/// Returns the rows of the table. Its columns are layer, crate, directory, environment, purpose, and allowed
/// dependencies.
fn rows(page: &str) -> Vec<Row> {
    let table = page.lines().skip_while(|line| !line.starts_with("| layer |")).skip(2);
    let lines = table.take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let name = cells.get(1).copied().unwrap_or_default().trim_matches('`').to_owned();
            Row { layer: cells[0].parse().ok(), name, may: allowed(cells.last().unwrap_or(&"")) }
        })
        .collect()
}

/// Returns a sentence if the layers forbid this dependency.
fn offence(rows: &[Row], from: &str, to: &str) -> Option<String> {
    let find = |name: &str| rows.iter().find(|row| row.name == name);
    let Some(row) = find(from) else {
        return Some(format!("`{from}` has no line in {TABLE}"));
    };
    let is_allowed = match &row.may {
        Allowed::Any => true,
        Allowed::Only(names) => names.iter().any(|name| name == to),
        Allowed::BelowBut(not) => {
            let is_below = find(to).is_some_and(|other| other.layer < row.layer && other.layer.is_some());
            is_below && !not.iter().any(|name| name == to)
        }
    };
    (!is_allowed).then(|| format!("`{from}` depends on `{to}`, which its line in {TABLE} does not allow"))
}

pub(crate) fn rules() -> Result<Vec<Broken>> {
    let packages = packages()?;
    let rows = rows(&text(TABLE));
    let is_member = |name: &String| packages.iter().any(|package| package.name == *name);
    let mut edges = Vec::new();
    for package in &packages {
        let inside = package.dependencies.iter().filter(|name| is_member(name));
        edges.extend(inside.filter_map(|name| offence(&rows, &package.name, name)));
    }
    let has_row = |package: &&Package| rows.iter().any(|row| row.name == package.name);
    let missing = packages.iter().filter(|package| !has_row(package)).map(|package| package.name.clone());
    Ok(vec![
        ("A crate depends only on crates of lower layers.", edges),
        ("Every crate has a line in the table of docs/crates.md.", missing.collect()),
        ("pageset-core brings at most three crates.", core_dependencies()?),
    ])
}

fn core_dependencies() -> Result<Vec<String>> {
    let context = Context { log: None, arguments: Vec::new() };
    // Count the dependencies that every host gets. Only hosts that read policy files need `serde`.
    let line = "cargo tree --package pageset-core --edges normal --features alloc --prefix none";
    let text = context.command(line).output()?;
    let mut names: Vec<_> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    names.retain(|name| *name != "pageset-core" && !name.is_empty());
    names.sort_unstable();
    names.dedup();
    let is_more = names.len() > CORE_DEPENDENCIES_MAX;
    Ok(if is_more { vec![format!("it brings {}: {}", names.len(), names.join(", "))] } else { Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_edge_is_named() {
        let page = "\
| layer | crate | directory | environment | what it is | may depend on |
|---|---|---|---|---|---|
| 0 | `pageset-core` | [core](core) | x | y | nothing here |
| 3 | `pageset-trace` | [trace](trace) | x | y | core |
| 4 | `pageset-study` | [study](study) | x | y | all below but pageset |
| 2 | `pageset` | [pageset](pageset) | x | y | core |
| 5 | `pageset-cli` | [cli](cli) | x | y | all |
";
        let rows = rows(page);
        assert_eq!(rows.len(), 5);
        let edge = |from: &str, to: &str| offence(&rows, from, to).is_none();
        assert!(edge("pageset-trace", "pageset-core") && edge("pageset-cli", "pageset-study"));
        assert!(edge("pageset-study", "pageset-trace") && edge("pageset", "pageset-core"));
        assert!(!edge("pageset-study", "pageset") && !edge("pageset-study", "pageset-cli"));
        assert!(!edge("pageset-core", "pageset-trace") && !edge("pageset-trace", "pageset-study"));
        assert_eq!(
            offence(&rows, "pageset-new", "pageset-core").as_deref(),
            Some("`pageset-new` has no line in docs/crates.md")
        );
    }
}
