//! From a kernel's release to the policy that describes it.

use pageset_core::{POLICIES, Policy};

/// First release of each policy, oldest first. 6.2 to 6.6 decide as the base of the auto-tuning series; stable 6.1 has
/// one of its patches. Source: `Policy::kernel` and `Policy::summary` of each.
const SINCE: [(u32, u32, &str); 8] = [
    (4, 0, "linux-4.9"),
    (4, 18, "linux-4.18"),
    (4, 19, "linux-4.19"),
    (5, 13, "linux-5.14"),
    (6, 1, "linux-6.1"),
    (6, 2, "linux-6.6"),
    (6, 7, "linux-6.7"),
    (6, 12, "linux-6.12"),
];
/// The last row, apart: the threshold of free_high changed in 6.16.
const SINCE_6_16: &str = "linux-6.18";

/// The policy of the kernel with this release, as `uname -r` prints it.
#[must_use]
pub fn policy_of_kernel(release: &str) -> Option<&'static Policy> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let name = if version >= (6, 16) {
        SINCE_6_16
    } else {
        SINCE.iter().rev().find(|(major, minor, _)| (*major, *minor) <= version)?.2
    };
    POLICIES.iter().find(|policy| policy.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_their_policies() {
        for (release, name) in [
            ("6.1.0-56-amd64", "linux-6.1"),
            ("6.12.117+deb12-amd64", "linux-6.12"),
            ("6.18.44", "linux-6.18"),
            ("7.0.1", "linux-6.18"),
            ("6.6.30", "linux-6.6"),
            ("4.19.0-18", "linux-4.19"),
            ("5.14.0-503.el9", "linux-5.14"),
        ] {
            assert_eq!(policy_of_kernel(release).map(|policy| policy.name), Some(name), "{release}");
        }
        for release in ["", "x.y", "2.6.32", "6", "99999999999.1"] {
            assert_eq!(policy_of_kernel(release), None, "{release}");
        }
    }

    #[test]
    fn every_row_names_a_policy() {
        for name in SINCE.iter().map(|row| row.2).chain([SINCE_6_16]) {
            assert!(Policy::named(name).is_some(), "{name}");
        }
    }
}
