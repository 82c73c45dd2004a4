//! Parses names of policies as people type them: `6.12` is `linux-6.12`. For a wrong name, the error suggests
//! the most similar name. In place of a name, users may type the path of a policy file.

use std::path::Path;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use pageset_core::policy::FORMER_NAMES;
use pageset_core::{POLICIES, Policy};
use pageset_replay::{names_policy_file, read_policy};
use pageset_study::contest::AllocatorKind;

/// The name that stands for the recorded kernel's own policy.
pub(crate) const AUTO: &str = "auto";

/// An error suggests a name only if the name is at least this similar to the typed word; 1 means equal.
const ALIKE: f64 = 0.8;

/// The policy that the user named, or `auto`, the recorded kernel's own policy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AutoOr {
    Auto,
    Named(&'static Policy),
}

/// Parses the name of one of Linux's policies.
pub(crate) fn policy() -> impl TypedValueParser<Value = &'static Policy> {
    Names {
        possible: described,
        known: |name: &str| Policy::named(name),
        of_file: |_: &str, policy: &'static Policy| policy,
    }
}

/// Parses the name of one of Linux's policies, or `auto` for the recorded kernel's own policy.
pub(crate) fn policy_or_auto() -> impl TypedValueParser<Value = AutoOr> {
    Names {
        possible: || std::iter::once(AUTO.into()).chain(described()).collect(),
        known: |name: &str| match name {
            AUTO => Some(AutoOr::Auto),
            name => Policy::named(name).map(AutoOr::Named),
        },
        of_file: |_: &str, policy: &'static Policy| AutoOr::Named(policy),
    }
}

/// Parses the name of one of Linux's policies, or of one of the project's own allocators.
pub(crate) fn policy_or_ours() -> impl TypedValueParser<Value = String> {
    Names {
        possible: || {
            let ours = AllocatorKind::OURS.map(|ours| PossibleValue::new(ours.name()).help(ours.summary()));
            described().into_iter().chain(ours).collect()
        },
        known: |name: &str| match Policy::named(name) {
            Some(policy) => Some(policy.name.to_owned()),
            None => AllocatorKind::OURS
                .iter()
                .map(AllocatorKind::name)
                .find(|ours| *ours == name)
                .map(str::to_owned),
        },
        // Keep only the path of the policy file, because each run reads the policy file again, as it reads a
        // machine file.
        of_file: |path: &str, _: &'static Policy| path.to_owned(),
    }
}

fn described() -> Vec<PossibleValue> {
    let former = |policy: &'static Policy| {
        FORMER_NAMES.iter().filter(|(_, today)| *today == policy.name).map(|(former, _)| *former)
    };
    let named = |policy: &'static Policy| {
        PossibleValue::new(policy.name).aliases(former(policy)).help(policy.summary)
    };
    POLICIES.iter().map(named).collect()
}

/// Parses the name of a policy: `possible` lists the names, and `known` returns the value of a name.
#[derive(Clone)]
struct Names<P, K, F> {
    possible: P,
    known: K,
    /// Makes the argument's value from a policy file's path and policy.
    of_file: F,
}

impl<T, P, K, F> TypedValueParser for Names<P, K, F>
where
    T: Clone + Send + Sync + 'static,
    P: Fn() -> Vec<PossibleValue> + Clone + Send + Sync + 'static,
    K: Fn(&str) -> Option<T> + Clone + Send + Sync + 'static,
    F: Fn(&str, &'static Policy) -> T + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        typed: &std::ffi::OsStr,
    ) -> Result<T, clap::Error> {
        let typed = StringValueParser::new().parse_ref(command, arg, typed)?;
        if names_policy_file(&typed) {
            return match read_policy(Path::new(&typed)) {
                Ok(policy) => Ok((self.of_file)(&typed, policy)),
                Err(error) => Err(command.clone().error(ErrorKind::ValueValidation, error)),
            };
        }
        let possible = (self.possible)();
        let named = |name: &str| {
            let value = possible.iter().find(|value| value.matches(name, false))?;
            (self.known)(value.get_name())
        };
        full_names(&typed).iter().find_map(|name| named(name)).ok_or_else(|| {
            let mut error = clap::Error::new(ErrorKind::InvalidValue).with_cmd(command);
            if let Some(arg) = arg {
                error.insert(ContextKind::InvalidArg, ContextValue::String(arg.to_string()));
            }
            let file = format!("{typed}.toml");
            let alike = if Path::new(&file).exists() {
                Some(file)
            } else {
                nearest(&typed, possible.iter().map(PossibleValue::get_name))
            };
            let Some(nearest) = alike else {
                let why = format!("no policy is called `{typed}`; `pageset policies` lists all names\n");
                return clap::Error::raw(ErrorKind::InvalidValue, why).with_cmd(command);
            };
            error.insert(ContextKind::InvalidValue, ContextValue::String(typed));
            error.insert(ContextKind::SuggestedValue, ContextValue::String(nearest));
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.possible)().into_iter()))
    }
}

/// Names that the user may mean. For `6.12.4`, the names are `6.12.4`, `linux-6.12.4` and `linux-6.12`.
fn full_names(typed: &str) -> Vec<String> {
    let release = typed.strip_prefix("linux-").unwrap_or(typed);
    let numbers: Vec<_> = release.splitn(3, '.').take(2).collect();
    vec![typed.to_owned(), format!("linux-{release}"), format!("linux-{}", numbers.join("."))]
}

/// The name that is most similar to the typed word. `None` if no name is similar enough.
fn nearest<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    // Nearly all names begin with `linux-`, so this prefix is not compared.
    let own = |name: &str| name.strip_prefix("linux-").unwrap_or(name).to_owned();
    let likeness =
        |name: &str| strsim::jaro_winkler(&own(typed), &own(name)).max(strsim::jaro(typed, name) - 0.05);
    let alike = names.map(|name| (likeness(name), name)).max_by(|one, other| one.0.total_cmp(&other.0));
    alike.filter(|(likeness, _)| *likeness >= ALIKE).map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{Args, Command};

    fn replayed(typed: &str) -> Result<Vec<&'static str>, String> {
        let args =
            Args::try_parse_from(["pageset", "replay", "-p", typed]).map_err(|error| error.to_string())?;
        let Command::Replay(replay) = args.command else { panic!("the command line is one of `replay`") };
        Ok(replay.policies.iter().map(|policy| policy.name).collect())
    }

    #[test]
    fn a_release_is_enough() {
        for typed in ["linux-6.12", "6.12", "6.12.3", "linux-6.12.41-cloud"] {
            assert_eq!(replayed(typed).as_deref(), Ok(&["linux-6.12"][..]), "{typed}");
        }
        assert_eq!(replayed("6.1,6.6").as_deref(), Ok(&["linux-6.1", "linux-6.6"][..]));
    }

    #[test]
    fn a_file_stands_for_its_policy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("half.toml");
        std::fs::write(&path, "base = \"linux-6.18\"\nfree_high.drains = { part = 0.5 }\n").unwrap();
        let typed = format!("6.18,{}", path.display());
        assert_eq!(replayed(&typed).as_deref(), Ok(&["linux-6.18", "half"][..]));
        std::fs::write(&path, "base = \"linux-6.18\"\nbatsh = { fixed = 31 }\n").unwrap();
        let error = replayed(&typed).expect_err("a key is unknown");
        assert!(error.contains("half.toml:2:1: unknown field `batsh`"), "{error}");
        assert!(error.contains("did you mean `batch`?"), "{error}");
        assert!(replayed("./nowhere.toml").is_err_and(|error| error.contains("./nowhere.toml: ")));
    }

    #[test]
    fn a_wrong_name_gets_the_nearest() {
        for (typed, nearest) in
            [("linux-6.13x", "linux-6.1"), ("patch77", "patch7"), ("lunix-6.6", "linux-6.6")]
        {
            let error = replayed(typed).expect_err("no policy has this name");
            assert!(error.contains(nearest) && error.contains(typed), "{error}");
        }
        assert!(replayed("zzz").is_err_and(|error| error.contains("pageset policies")));
    }
}
