//! Finds the policy that describes a kernel, from the kernel's release.

use pageset_core::Policy;

/// The first release that each policy describes, oldest first. Linux 6.2 to 6.6 have the rules of the base of
/// the auto-tuning series, and stable 6.1 has one patch of that series. Source: `Policy::kernel` and
/// `Policy::summary` of each policy.
const SINCE: [(Release, &str); 11] = [
    ((4, 0, 0), "linux-4.9"),
    ((4, 18, 0), "linux-4.18"),
    ((4, 19, 0), "linux-4.19"),
    ((5, 13, 0), "linux-5.14"),
    ((6, 1, 0), "linux-6.1"),
    ((6, 2, 0), "linux-6.6"),
    ((6, 7, 0), "linux-6.7"),
    ((6, 12, 0), "linux-6.12.0"),
    ((6, 16, 0), "linux-6.18.0"),
    ((6, 19, 0), "linux-6.19"),
    ((7, 2, 0), "linux-7.2"),
];
/// Changes that a stable series of Linux got later: the first release with the change, and the policy with
/// the change.
const STABLE: [(Release, &str); 2] = [((6, 12, 67), "linux-6.12"), ((6, 18, 7), "linux-6.18")];

/// Major, minor and stable number.
type Release = (u32, u32, u32);

/// Finds the policy of the kernel with this release, as `uname -r` prints it. The result is a guess: vendors
/// backport changes to older kernels, and some vendors do not print the stable number. If the guess is wrong,
/// try the policies that [`neighbours`] returns.
#[must_use]
pub fn policy_of_kernel(release: &str) -> Option<&'static Policy> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let stable = numbers.next().and_then(Result::ok).unwrap_or(0);
    let version = (major, minor, stable);
    let in_stable =
        STABLE.iter().find(|(since, _)| (since.0, since.1) == (major, minor) && *since <= version);
    let (_, name) = in_stable.or_else(|| SINCE.iter().rev().find(|(since, _)| *since <= version))?;
    Policy::named(name)
}

/// Returns the policies of the kernels before and after the kernel of `policy`. A vendor may have left out
/// the kernel's last changes, or backported the next changes.
#[must_use]
pub fn neighbours(policy: &Policy) -> Vec<&'static Policy> {
    let mut names: Vec<(Release, &str)> = [SINCE.as_slice(), &STABLE].concat();
    names.sort_unstable();
    let Some(at) = names.iter().position(|(_, name)| *name == policy.name) else { return Vec::new() };
    let sides = [at.checked_sub(1), Some(at + 1)];
    let names = sides.into_iter().flatten().filter_map(|side| names.get(side));
    names.filter_map(|(_, name)| Policy::named(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_their_policies() {
        for (release, name) in [
            ("6.1.0-56-amd64", "linux-6.1"),
            ("6.12.117+deb12-amd64", "linux-6.12"),
            ("6.12.66", "linux-6.12.0"),
            ("6.12.0-55.el10.x86_64", "linux-6.12.0"),
            ("6.14.2", "linux-6.12.0"),
            ("6.16.0-rc1", "linux-6.18.0"),
            ("6.18.6", "linux-6.18.0"),
            ("6.18.7", "linux-6.18"),
            ("6.18.44", "linux-6.18"),
            ("6.19.0", "linux-6.19"),
            ("7.0.1", "linux-6.19"),
            ("7.1.3+deb13-cloud-amd64", "linux-6.19"),
            ("7.2.13", "linux-7.2"),
            ("7.3.4", "linux-7.2"),
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
        for (_, name) in SINCE.iter().chain(&STABLE) {
            assert!(Policy::named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn neighbours_are_next_to_it_in_time() {
        let names = |name: &str| -> Vec<_> {
            neighbours(Policy::named(name).unwrap()).iter().map(|policy| policy.name).collect()
        };
        assert_eq!(names("linux-6.12"), ["linux-6.12.0", "linux-6.18.0"]);
        assert_eq!(names("linux-6.19"), ["linux-6.18", "linux-7.2"]);
        assert_eq!(names("linux-7.2"), ["linux-6.19"]);
        assert_eq!(names("linux-4.9"), ["linux-4.18"]);
        assert!(names("patch5").is_empty());
    }
}
