//! The layers of the workspace: which crate may depend on which.
//!
//! The list below is the one of `crates/README.md`. It counts normal dependencies; tests may use any crate.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Every crate, bottom layer first, with the workspace crates it may depend on. Crates that do not exist yet are listed
/// too, so that they start with the right edges.
const ALLOWED: &[(&str, Allowed)] = &[
    ("pageset-core", Allowed::Only(&[])),
    ("pageset-blocks", Allowed::Only(&["pageset-core"])),
    ("pageset-pageops", Allowed::Only(&[])),
    ("pageset-fault", Allowed::Only(&["pageset-core", "pageset-pageops"])),
    ("pageset", Allowed::Only(&["pageset-blocks", "pageset-core", "pageset-pageops"])),
    ("pageset-sim", Allowed::Only(&["pageset-blocks", "pageset-core"])),
    ("pageset-trace", Allowed::Only(&["pageset-core"])),
    ("pageset-report", Allowed::Only(&[])),
    ("pageset-record", Allowed::Only(&["pageset-core", "pageset-trace"])),
    ("pageset-arrow", Allowed::Only(&["pageset-report", "pageset-trace"])),
    ("pageset-replay", Allowed::Only(&["pageset-core", "pageset-report", "pageset-trace"])),
    (
        "pageset-measure",
        Allowed::Only(&[
            "pageset-core",
            "pageset-fault",
            "pageset-pageops",
            "pageset-report",
            "pageset-trace",
        ]),
    ),
    (
        "pageset-study",
        Allowed::Only(&[
            "pageset-blocks",
            "pageset-core",
            "pageset-fault",
            "pageset-measure",
            "pageset-pageops",
            "pageset-replay",
            "pageset-report",
            "pageset-sim",
            "pageset-trace",
        ]),
    ),
    ("pageset-live", Allowed::Only(&["pageset-core", "pageset-record", "pageset-trace"])),
    ("pageset-cli", Allowed::Any),
    ("pageset-capi", Allowed::Only(&["pageset"])),
    ("pageset-bench", Allowed::Any),
    ("pageset-peers", Allowed::Any),
    ("pageset-python", Allowed::Any),
];

/// Most crates that `pageset-core` may bring into a kernel, counting indirect ones.
const CORE_DEPENDENCIES_MAX: usize = 3;

enum Allowed {
    Only(&'static [&'static str]),
    Any,
}

/// A normal dependency between two crates of the workspace.
struct Edge {
    from: String,
    to: String,
}

/// Runs cargo in the workspace and returns what it prints.
fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {} failed:\n{error}", arguments.join(" "));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

fn packages() -> Vec<Value> {
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let metadata: Value = serde_json::from_str(&text).expect("cargo metadata prints JSON");
    metadata["packages"].as_array().expect("metadata has packages").clone()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("a package has a name")
}

/// The normal dependencies between `packages`.
fn edges(packages: &[Value]) -> Vec<Edge> {
    let members: Vec<_> = packages.iter().map(name).collect();
    let mut edges = Vec::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().expect("a package has dependencies") {
            let is_normal = dependency["kind"].is_null();
            if is_normal && members.contains(&name(dependency)) {
                edges.push(Edge { from: name(package).to_owned(), to: name(dependency).to_owned() });
            }
        }
    }
    edges
}

/// What is wrong with a dependency, if anything is.
fn offence(edge: &Edge) -> Option<String> {
    let Edge { from, to } = edge;
    let Some((_, allowed)) = ALLOWED.iter().find(|(crate_name, _)| crate_name == from) else {
        return Some(format!("`{from}` is in no layer: add it to crates/README.md and to this test."));
    };
    match allowed {
        Allowed::Any => None,
        Allowed::Only(list) if list.contains(&to.as_str()) => None,
        Allowed::Only([]) => {
            Some(format!("`{from}` depends on `{to}`, but may depend on no crate of the workspace."))
        }
        Allowed::Only(list) => {
            Some(format!("`{from}` depends on `{to}`, but may depend only on {}.", list.join(", ")))
        }
    }
}

#[test]
fn crates_depend_only_on_lower_layers() {
    let offences: Vec<_> = edges(&packages()).iter().filter_map(offence).collect();
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn every_crate_has_a_layer_and_a_line_in_the_readme() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(readme).expect("crates/README.md exists");
    let mut offences = Vec::new();
    for package in packages() {
        let name = name(&package);
        if !ALLOWED.iter().any(|(crate_name, _)| *crate_name == name) {
            offences.push(format!("`{name}` is in no layer: add it to this test."));
        }
        if !readme.contains(&format!("`{name}`")) {
            offences.push(format!("`{name}` has no line in crates/README.md."));
        }
    }
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn the_core_brings_at_most_three_crates() {
    let tree = [
        "tree",
        "--offline",
        "--package",
        "pageset-core",
        "--edges",
        "normal",
        // What every host gets. `serde` is for hosts that read files of policies.
        "--features",
        "alloc",
        "--prefix",
        "none",
    ];
    let text = cargo(&tree);
    let mut dependencies: Vec<_> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    dependencies.retain(|dependency| *dependency != "pageset-core" && !dependency.is_empty());
    dependencies.sort_unstable();
    dependencies.dedup();
    let (count, names) = (dependencies.len(), dependencies.join(", "));
    assert!(
        count <= CORE_DEPENDENCIES_MAX,
        "`pageset-core` brings {count} crates, at most {CORE_DEPENDENCIES_MAX} are allowed: {names}."
    );
}

#[test]
fn a_wrong_edge_is_named() {
    let edge = |from: &str, to: &str| offence(&Edge { from: from.to_owned(), to: to.to_owned() });
    assert_eq!(edge("pageset-trace", "pageset-core"), None);
    assert_eq!(edge("pageset-cli", "pageset-report"), None);
    assert_eq!(
        edge("pageset-core", "pageset-trace").as_deref(),
        Some("`pageset-core` depends on `pageset-trace`, but may depend on no crate of the workspace.")
    );
    assert_eq!(
        edge("pageset-trace", "pageset-report").as_deref(),
        Some("`pageset-trace` depends on `pageset-report`, but may depend only on pageset-core.")
    );
    assert_eq!(
        edge("pageset-new", "pageset-core").as_deref(),
        Some("`pageset-new` is in no layer: add it to crates/README.md and to this test.")
    );
}
