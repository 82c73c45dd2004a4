//! Makes the list of the runs of a plan.

use pageset_study::key::canonical;
use pageset_study::simulate::RunSpec;
use serde_json::{Map, Value};

use super::plan::{Grid, Plan};

/// Returns all runs of a plan, grid by grid. In the order of a grid's runs, the machine varies slowest, and
/// the seed varies fastest. Returns equal runs only once.
pub fn runs(plan: &Plan) -> Vec<RunSpec> {
    let mut runs: Vec<RunSpec> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for spec in plan.grids.iter().flat_map(expand) {
        if seen.insert(canonical(&spec)) {
            runs.push(spec);
        }
    }
    runs
}

fn expand(grid: &Grid) -> Vec<RunSpec> {
    let mut runs = Vec::new();
    for machine in grid.machine.values() {
        for workload in grid.workload.values() {
            for policy in grid.policy.values() {
                let kernel_of = grid.kernel_of.clone();
                runs.push(RunSpec { kernel_of, ..RunSpec::new(machine, workload, policy) });
            }
        }
    }
    vary(&mut runs, &grid.cpus.or_default(), |run, cpus| run.cpus = cpus.copied());
    vary(&mut runs, &grid.batch.or_default(), |run, batch| run.batch = batch.copied());
    vary(&mut runs, &grid.high.or_default(), |run, high| run.high = high.copied());
    for (key, values) in &grid.set {
        vary(&mut runs, values.values(), |run, value| {
            run.settings.insert(key.clone(), *value);
        });
    }
    vary(&mut runs, &grid.warmup_ms.or_default(), |run, ms| run.warmup_ms = ms.copied());
    vary(&mut runs, &grid.duration_ms.or_default(), |run, ms| run.duration_ms = ms.copied());
    vary(&mut runs, &grid.seed.or_default(), |run, seed| run.seed = seed.copied().unwrap_or(run.seed));
    runs
}

/// Replaces each run by several runs, one for each value in `values`.
fn vary<T>(runs: &mut Vec<RunSpec>, values: &[T], set: impl Fn(&mut RunSpec, &T)) {
    let before = std::mem::take(runs);
    for run in before {
        for value in values {
            let mut run = run.clone();
            set(&mut run, value);
            runs.push(run);
        }
    }
}

/// Returns the keys and values of a run in one flat map. A parameter of the workload has the key `set.KEY`.
pub fn keys(spec: &RunSpec) -> Map<String, Value> {
    let Ok(Value::Object(mut keys)) = serde_json::to_value(spec) else { return Map::new() };
    if let Some(Value::Object(settings)) = keys.remove("settings") {
        keys.extend(settings.into_iter().map(|(key, value)| (format!("set.{key}"), value)));
    }
    keys.retain(|_, value| !value.is_null());
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        toml::from_str(&format!("title = \"t\"\n{text}")).unwrap()
    }

    const GRID: &str = "[[grid]]\nmachine = \"m\"\nworkload = \"w\"\npolicy = [\"a\", \"b\"]\n";

    #[test]
    fn every_combination_is_run_once() {
        let plan =
            plan(&format!("{GRID}batch = [31, 63]\nseed = [1, 2]\nset = {{ think_ns = [0, 5] }}\n{GRID}"));
        let runs = runs(&plan);
        // The first grid has 16 runs. The second grid adds two runs without a fixed batch.
        assert_eq!(runs.len(), 18);
        assert_eq!((runs[0].policy.as_str(), runs[0].batch, runs[0].seed), ("a", Some(31), 1));
        assert_eq!((runs[1].batch, runs[1].seed), (Some(31), 2));
        assert_eq!(runs[2].settings["think_ns"], 5);
        assert_eq!((runs[17].policy.as_str(), runs[17].batch), ("b", None));
    }

    #[test]
    fn a_repeated_grid_adds_nothing() {
        assert_eq!(runs(&plan(&format!("{GRID}{GRID}"))).len(), 2);
    }

    #[test]
    fn keys_are_flat_and_leave_out_what_is_not_said() {
        let plan = plan(&format!("{GRID}set = {{ think_ns = 7 }}"));
        let keys = keys(&runs(&plan)[0]);
        assert_eq!(keys["set.think_ns"], 7);
        assert_eq!(keys["seed"], 1);
        assert!(!keys.contains_key("batch"));
    }
}
