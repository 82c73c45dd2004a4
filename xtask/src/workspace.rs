//! Reads the list of the workspace's crates from cargo.

use serde_json::Value;

use crate::repository::root;
use crate::run::{Context, Result};

/// A crate of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// The crate's path from the repository's root, as in `kernel/core`.
    pub(crate) directory: String,
    pub(crate) version: String,
    /// The oldest version of Rust that builds the crate.
    pub(crate) rust_version: String,
    pub(crate) is_published: bool,
    pub(crate) features: Vec<String>,
    /// Names of the crate's test targets.
    pub(crate) tests: Vec<String>,
    /// The crate's normal dependencies, including crates outside the workspace.
    pub(crate) dependencies: Vec<String>,
    /// The leg that builds and tests the crate, if it is not tested with all other crates
    /// (`package.metadata.ci.leg`).
    pub(crate) leg: Option<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn package(value: &Value) -> Package {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let manifest = text(&value["manifest_path"]);
    let root = root().to_string_lossy();
    let directory = manifest.strip_prefix(&*root).unwrap_or(&manifest).trim_start_matches('/');
    let is_test = |target: &Value| list(&target["kind"]).contains(&"test".into());
    let tests = list(&value["targets"])
        .iter()
        .filter(|target| is_test(target))
        .map(|test| text(&test["name"]))
        .collect();
    let is_normal = |dependency: &Value| dependency["kind"].is_null();
    let dependencies = list(&value["dependencies"]);
    Package {
        name: text(&value["name"]),
        directory: directory.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned(),
        version: text(&value["version"]),
        rust_version: text(&value["rust_version"]),
        is_published: value["publish"].is_null(),
        features: value["features"].as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default(),
        tests,
        dependencies: dependencies
            .iter()
            .filter(|one| is_normal(one))
            .map(|one| text(&one["name"]))
            .collect(),
        leg: value["metadata"]["ci"]["leg"].as_str().map(str::to_owned),
    }
}

/// Returns all crates, in the order of the workspace's list.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let context = Context { log: None, arguments: Vec::new() };
    let text = context.command("cargo metadata --format-version 1 --no-deps").output()?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(metadata["packages"].as_array().into_iter().flatten().map(package).collect())
}

/// Returns cargo's options that select the crates that are tested together, and the features that their tests
/// need.
pub(crate) fn tested_together(packages: &[Package]) -> String {
    let excluded = packages.iter().filter(|package| package.leg.is_some());
    let excluded: Vec<_> = excluded.map(|package| format!("--exclude {}", package.name)).collect();
    let mut words = format!("--workspace {}", excluded.join(" "));
    // Tests read recordings that are compressed by xz.
    let is_packed =
        |package: &&Package| package.leg.is_none() && package.features.iter().any(|name| name == "xz");
    let features: Vec<_> =
        packages.iter().filter(is_packed).map(|package| format!("{}/xz", package.name)).collect();
    if !features.is_empty() {
        words.push_str(" --features ");
        words.push_str(&features.join(","));
    }
    words
}

/// Returns `--package NAME` for each published crate.
pub(crate) fn published(packages: &[Package]) -> String {
    let names = packages
        .iter()
        .filter(|package| package.is_published)
        .map(|package| format!("--package {}", package.name));
    names.collect::<Vec<_>>().join(" ")
}
