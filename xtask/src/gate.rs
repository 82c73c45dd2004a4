//! Runs the three gates: `quick`, `full` and `night`. A gate runs its legs one after another or at the same
//! time, and prints a summary at the end.

use std::fs::{self, File};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crate::leg::Leg;
use crate::repository::target;
use crate::run::{Context, Result};
use crate::{full, night, results, workspace};

/// Number of legs that are listed at the end of a run, the slowest first.
const SLOWEST: usize = 10;

/// The result of a leg that has ended.
struct Ended {
    name: String,
    seconds: f64,
    outcome: Result,
}

/// The state that all threads of a run share.
struct Run {
    arguments: Vec<String>,
    /// Whether legs print to the terminal. Otherwise each leg prints to a file, which is shown if the leg
    /// fails.
    is_shown: bool,
    ended: Mutex<Vec<Ended>>,
    /// Set when a leg fails. Legs that are running continue to their ends, and no other leg begins.
    stops: AtomicBool,
    start: Instant,
}

impl Run {
    fn new(arguments: &[&str], is_shown: bool) -> Self {
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        let (ended, stops, start) = (Mutex::default(), AtomicBool::new(false), Instant::now());
        Self { arguments, is_shown, ended, stops, start }
    }

    /// Runs a leg. Returns the seconds that it took, and its outcome.
    fn leg(&self, name: &str, work: &dyn Fn(&Context) -> Result) -> (f64, Result) {
        let path = target().join("xtask").join(format!("{}.log", name.replace([' ', '/'], "-")));
        let log = if self.is_shown {
            None
        } else {
            let directory = path.parent().expect("a log is in a directory");
            fs::create_dir_all(directory).and_then(|()| File::create(&path)).ok()
        };
        println!("== {name}");
        let begin = Instant::now();
        let outcome = work(&Context { log, arguments: self.arguments.clone() });
        let seconds = begin.elapsed().as_secs_f64();
        match &outcome {
            Ok(()) => println!("== {name}: passed in {seconds:.0} s"),
            Err(error) => {
                if !self.is_shown {
                    println!("{}", fs::read_to_string(&path).unwrap_or_default());
                }
                println!("== {name}: FAILED after {seconds:.0} s: {error}");
            }
        }
        let ended = Ended { name: name.to_owned(), seconds, outcome: outcome.clone() };
        self.ended.lock().expect("no leg panics with the list").push(ended);
        (seconds, outcome)
    }

    /// Runs legs one after another, until a leg of this sequence or of another sequence fails.
    fn sequence(&self, legs: &[Leg]) {
        for leg in legs {
            if self.stops.load(Ordering::Relaxed) {
                return;
            }
            if self.leg(&leg.name, &*leg.work).1.is_err() {
                self.stops.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Runs several sequences of legs at the same time.
    fn beside(&self, lanes: &[Vec<Leg>]) {
        thread::scope(|scope| {
            for lane in lanes {
                scope.spawn(|| self.sequence(lane));
            }
        });
    }

    /// Prints the slowest legs and the legs that failed.
    fn end(self, gate: &str) -> Result {
        let mut ended = self.ended.into_inner().expect("no leg panics with the list");
        ended.sort_by(|left, right| right.seconds.total_cmp(&left.seconds));
        println!("\nThe slowest legs, s:");
        for leg in ended.iter().take(SLOWEST) {
            println!("{:6.0}  {}", leg.seconds, leg.name);
        }
        let failed: Vec<_> = ended
            .iter()
            .filter_map(|leg| Some(format!("\n    {}: {}", leg.name, leg.outcome.as_ref().err()?)))
            .collect();
        let seconds = self.start.elapsed().as_secs_f64();
        if !failed.is_empty() {
            return Err(format!("ci {gate}: FAILED after {seconds:.0} s:{}", failed.concat()));
        }
        println!("cargo xtask ci {gate}: {} legs passed in {seconds:.0} s", ended.len());
        Ok(())
    }
}

/// Returns the legs with these names, in the order of the gate.
fn named(legs: Vec<Leg>, names: &[&str]) -> Result<Vec<Leg>> {
    if let Some(unknown) = names.iter().find(|name| !legs.iter().any(|leg| leg.name == **name)) {
        let known: Vec<_> = legs.iter().map(|leg| leg.name.as_str()).collect();
        return Err(format!("no leg `{unknown}`; there are: {}", known.join(", ")));
    }
    Ok(legs.into_iter().filter(|leg| names.contains(&leg.name.as_str())).collect())
}

pub(crate) fn quick(names: &[&str], arguments: &[&str]) -> Result {
    let legs = full::quick(&workspace::packages()?);
    let run = Run::new(arguments, !names.is_empty());
    run.sequence(&if names.is_empty() { legs } else { named(legs, names)? });
    run.end("quick")
}

pub(crate) fn full(names: &[&str], arguments: &[&str]) -> Result {
    let full::Full { first, beside } = full::legs(&workspace::packages()?);
    let run = Run::new(arguments, !names.is_empty());
    if names.is_empty() {
        run.sequence(&first);
        run.beside(&beside);
    } else {
        run.sequence(&named(first.into_iter().chain(beside.into_iter().flatten()).collect(), names)?);
    }
    run.end("full")
}

/// Runs all legs of the night, or the named legs. If a leg fails, the other legs still run.
pub(crate) fn night(names: &[&str], arguments: &[&str]) -> Result {
    if let Some(unknown) = names.iter().find(|name| !night::LEGS.iter().any(|leg| leg.name == **name)) {
        return Err(format!("no leg `{unknown}`: see `cargo xtask ci list`"));
    }
    if !arguments.is_empty() && names.len() != 1 {
        return Err("words after -- are arguments of one leg: name this leg".to_owned());
    }
    let has_root = is_root();
    let run = Run::new(arguments, true);
    let mut left_out = Vec::new();
    for leg in night::LEGS.iter().filter(|leg| names.is_empty() || names.contains(&leg.name)) {
        if leg.is_for_root && !has_root {
            left_out.push(leg.name);
            continue;
        }
        let sources = results::Sources::now()?;
        let (seconds, outcome) = run.leg(leg.name, &leg.work);
        // With arguments, only a part of the leg may have run, so do not record its result.
        if arguments.is_empty() {
            results::write(leg.name, &sources, seconds, &outcome)?;
        }
    }
    if !left_out.is_empty() {
        println!("left out, since they need root: {}", left_out.join(", "));
    }
    run.end("night")
}

/// Whether this process runs as root: its effective user is 0.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    user.and_then(|users| users.split_whitespace().nth(1)) == Some("0")
}

/// Prints the names of all legs of all gates.
pub(crate) fn list() -> Result {
    let packages = workspace::packages()?;
    let names = |legs: &[Leg]| legs.iter().map(|leg| leg.name.clone()).collect::<Vec<_>>().join(", ");
    println!("quick: {}", names(&full::quick(&packages)));
    let legs = full::legs(&packages);
    println!("full: {}", names(&legs.first));
    for lane in &legs.beside {
        println!("  beside: {}", names(lane));
    }
    println!("night:");
    for leg in night::LEGS {
        let root = if leg.is_for_root { ", as root" } else { "" };
        println!("  {:14} {} minutes{root}", leg.name, leg.minutes);
    }
    Ok(())
}

/// Prints the last result of each leg of the night.
pub(crate) fn status() -> Result {
    results::print(&night::LEGS.iter().map(|leg| leg.name).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leg::leg;

    #[test]
    fn a_leg_that_fails_stops_those_behind_it_and_says_which_command_failed() {
        let run = Run::new(&[], true);
        run.sequence(&[
            leg("one", |context| context.run("true")),
            leg("two", |context| context.run("false")),
            leg("three", |_| panic!("it runs behind one that failed")),
        ]);
        let error = run.end("test").expect_err("a leg failed");
        assert!(error.contains("two: `false`: exit status: 1"), "{error}");
    }

    #[test]
    fn legs_have_names_of_their_own() {
        let mut names: Vec<_> = night::LEGS.iter().map(|leg| leg.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), night::LEGS.len());
        // A crate that is not tested with all crates must name the leg that tests it.
        for package in workspace::packages().expect("cargo lists the workspace") {
            let leg = package.leg.as_deref().unwrap_or("tidy");
            assert!(leg == "tidy" || names.contains(&leg), "{}: no leg {leg}", package.name);
        }
        assert!(named(vec![leg("a", |_| Ok(()))], &["b"]).is_err_and(|error| error.contains("there are: a")));
    }
}
