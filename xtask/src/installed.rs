//! Installs the programs, toolchains and packages that legs need.

use crate::repository::{root, target, text};
use crate::run::{Context, Result};

/// Returns the values of a key in a TOML file. The key's value is a string or a list of strings.
fn strings(toml: &str, key: &str) -> Vec<String> {
    let behind = toml.split_once(&format!("\n{key} = ")).map_or("", |(_, behind)| behind);
    let end = if behind.starts_with('[') { ']' } else { '\n' };
    let value = behind.split(end).next().unwrap_or_default();
    value.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Installs the toolchain, the components and the targets of `rust-toolchain.toml`.
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

/// Installs one more target of the project's toolchain.
pub(crate) fn rust_target(context: &Context, target: &str) -> Result {
    // Without rustup, cargo comes from a distribution, which installs targets in its own way.
    if context.command("rustup --version").succeeds() {
        context.run(&format!("rustup target add {target}"))?;
    }
    Ok(())
}

/// Installs a nightly toolchain with these components.
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

/// Installs programs. Each program comes with the name of its Debian package.
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

/// Builds a program of crates.io into `target/tools`, unless the program is there in this version.
pub(crate) fn cargo_program(context: &Context, name: &str, version: &str, options: &str) -> Result {
    // A subcommand of cargo expects its own name as the first argument.
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
    // Leave debug information out, because programs that are built without optimisation then build faster.
    install.env("CARGO_PROFILE_DEV_DEBUG", "0").run()
}

/// Makes a virtual environment of Python with these packages below the target directory. Returns the
/// environment's directory.
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
