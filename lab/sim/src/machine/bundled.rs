//! The machines that come with the crate.

use super::Machine;

/// A machine file that is built into the program.
#[derive(Clone, Copy, Debug)]
pub struct BundledMachine {
    /// The machine's name.
    pub name: &'static str,
    text: &'static str,
}

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        /// Every bundled machine, with its name.
        pub static MACHINES: &[BundledMachine] = &[$(BundledMachine {
            name: $name,
            text: include_str!(concat!("../../machines/", $name, ".toml")),
        }),*];
    };
}

bundled![
    "epyc-2",
    "sapphire-rapids",
    "two-socket-128",
    "skylake-ex",
    "broadwell-ex",
    "skylake-ep",
    "broadwell-ep",
    "haswell-ep",
    "westmere-ep",
    "skylake-desktop",
    "haswell-desktop",
    "sandybridge-desktop",
    "one-socket-2010",
    "two-socket-2016",
    "altix-512",
    "epyc-768",
    "zen-316",
    "zen-176",
    "xeon-36",
    "arm-72",
];

impl BundledMachine {
    /// Returns the machine that the file describes.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "a test reads every bundled file")]
    pub fn parse(&self) -> Machine {
        Machine::parse(self.text, self.name).expect("bundled machine files are valid")
    }

    /// Returns the text of the machine file, for example as a template for a new machine file.
    #[must_use]
    pub const fn text(&self) -> &'static str {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_file_is_valid_and_bears_its_name() {
        for machine in MACHINES {
            assert_eq!(machine.parse().name, machine.name);
        }
    }
}
