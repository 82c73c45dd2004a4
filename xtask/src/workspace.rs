//! The workspace's crates, as cargo tells them.

use serde_json::Value;

use crate::repository::root;
use crate::run::{Context, Result};

/// A crate of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// From the root, as in `kernel/core`.
    pub(crate) directory: String,
    pub(crate) version: String,
    /// The oldest Rust that builds it.
    pub(crate) rust_version: String,
    pub(crate) is_published: bool,
    pub(crate) features: Vec<String>,
    /// Names of the targets of tests.
    pub(crate) tests: Vec<String>,
    /// The crates that it needs when it is used, also those from outside the workspace.
    pub(crate) dependencies: Vec<String>,
    /// The leg that builds and tests it, if it is not tested with the others (`package.metadata.ci.leg`).
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

/// All members, in the order of the workspace's list.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let context = Context { log: None, arguments: Vec::new() };
    let text = context.command("cargo metadata --format-version 1 --no-deps").output()?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(metadata["packages"].as_array().into_iter().flatten().map(package).collect())
}

/// Options of cargo that select the crates that are tested together, with the features that tests need.
pub(crate) fn tested_together(packages: &[Package]) -> String {
    let excluded = packages.iter().filter(|package| package.leg.is_some());
    let excluded: Vec<_> = excluded.map(|package| format!("--exclude {}", package.name)).collect();
    let mut words = format!("--workspace {}", excluded.join(" "));
    // Tests read recordings that are packed so.
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

/// `--package NAME` for each crate that is published.
pub(crate) fn published(packages: &[Package]) -> String {
    let names = packages
        .iter()
        .filter(|package| package.is_published)
        .map(|package| format!("--package {}", package.name));
    names.collect::<Vec<_>>().join(" ")
}
