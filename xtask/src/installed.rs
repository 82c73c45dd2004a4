//! Installs the programs, toolchains and packages that legs need.

use crate::repository::{root, target, text};
use crate::run::{Context, Result};

/// The values of a list of strings in a TOML file, or of one string.
fn strings(toml: &str, key: &str) -> Vec<String> {
    let behind = toml.split_once(&format!("\n{key} = ")).map_or("", |(_, behind)| behind);
    let end = if behind.starts_with('[') { ']' } else { '\n' };
    let value = behind.split(end).next().unwrap_or_default();
    value.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The toolchain, components and targets of `rust-toolchain.toml`.
pub(crate) fn toolchain(context: &Context) -> Result {
    if !context.command("rustup --version").succeeds() {
        context.say("no rustup: cargo is used as it is");
        return Ok(());
    }
    let toml = text("rust-toolchain.toml");
    let channel = strings(&toml, "channel").pop().ok_or("rust-toolchain.toml has no channel")?;
    if !context.command(&format!("rustup run {channel} rustc --version")).succeeds() {
        context.run(&format!("rustup toolchain install {channel} --profile minimal"))?;
    }
    let installed =
        context.command(&format!("rustup component list --installed --toolchain {channel}")).output()?;
    for component in strings(&toml, "components") {
        if !installed.lines().any(|line| line.starts_with(&component)) {
            context.run(&format!("rustup component add --toolchain {channel} {component}"))?;
        }
    }
    for target in strings(&toml, "targets") {
        if !installed.lines().any(|line| line == format!("rust-std-{target}")) {
            context.run(&format!("rustup target add --toolchain {channel} {target}"))?;
        }
    }
    Ok(())
}

/// One more target of the project's toolchain.
pub(crate) fn rust_target(context: &Context, target: &str) -> Result {
    // Cargo may be a distribution's, which has its own targets.
    if context.command("rustup --version").succeeds() {
        context.run(&format!("rustup target add {target}"))?;
    }
    Ok(())
}

/// A nightly toolchain with these components.
pub(crate) fn nightly(context: &Context, components: &[&str]) -> Result {
    let installed = context.command("rustup component list --installed --toolchain nightly").output();
    let installed = installed.unwrap_or_default();
    let is_there = |component: &&str| installed.lines().any(|line| line.starts_with(*component));
    if !installed.is_empty() && components.iter().all(is_there) {
        return Ok(());
    }
    let components =
        components.iter().map(|component| format!(" --component {component}")).collect::<String>();
    context.run(&format!("rustup toolchain install nightly --profile minimal{components}"))
}

/// Programs, each with the package of Debian that has it.
pub(crate) fn programs(context: &Context, programs: &[(&str, &str)]) -> Result {
    let is_missing = |program: &str| !context.command("which").arguments([program]).succeeds();
    let missing: Vec<_> =
        programs.iter().filter(|(program, _)| is_missing(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let what = missing.join(" ");
    let installs = |context: &Context| {
        context.run("apt-get update")?;
        context.run(&format!("apt-get install --yes --no-install-recommends {what}"))
    };
    installs(context).map_err(|error| format!("{error}; install what is missing: {what}"))
}

/// A program of crates.io, built into `target/tools` unless it is there in this version.
pub(crate) fn cargo_program(context: &Context, name: &str, version: &str, options: &str) -> Result {
    // A subcommand of cargo answers to its own name first.
    let ask = match name.strip_prefix("cargo-") {
        Some(subcommand) => format!("{name} {subcommand} --version"),
        None => format!("{name} --version"),
    };
    if context.command(&ask).output().is_ok_and(|answer| answer.contains(version)) {
        return Ok(());
    }
    let tools = target().join("tools");
    let install =
        context.command(&format!("cargo install {name} --version {version} --locked {options} --root"));
    let install = install.arguments([&tools]).without_env("CARGO_TARGET_DIR");
    // What is built without optimisation is built faster without its lines, too.
    install.env("CARGO_PROFILE_DEV_DEBUG", "0").run()
}

/// A virtual environment of Python below the target directory that has these packages. Returns its directory.
pub(crate) fn python_environment(
    context: &Context,
    python: &str,
    name: &str,
    packages: &[&str],
) -> Result<String> {
    let directory = target().join("python").join(name).to_string_lossy().into_owned();
    if !root().join(&directory).join("bin/pip").exists() {
        if !context.command(python).arguments(["-c", "import ensurepip"]).succeeds() {
            let package = format!("{}-venv", python.rsplit('/').next().unwrap_or(python));
            programs(context, &[("no-such-program", &package)])?;
        }
        context.run(&format!("{python} -m venv {directory}"))?;
    }
    context.run(&format!("{directory}/bin/pip install --quiet {}", packages.join(" ")))?;
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_those_of_the_key() {
        let toml = "[toolchain]\nchannel = \"1.0\"\ntargets = [\n    \"a\",\n    \"b\",\n]\n";
        assert_eq!(strings(toml, "channel"), ["1.0"]);
        assert_eq!(strings(toml, "targets"), ["a", "b"]);
        assert!(strings(toml, "components").is_empty());
    }
}
