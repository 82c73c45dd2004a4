//! Makes a study from a plan with goals. The study compares one policy with other policies, and says which
//! goals this policy meets.

use anyhow::{Context as _, Result};
use pageset_report::{Cell, Column, Progress, Row, Spread, Table};
use pageset_sim::LineTraffic;
use pageset_study::simulate::{RunResult, RunSpec, machine_text, parse_machine, simulate_all};

use super::prose::{EXPLANATIONS, NOTES, Prose};
use super::study::{Findings, Options, Study};
use crate::metric::Metric;
use crate::sweep::{Goal, Goals, Plan, Several, runs};

/// A built-in plan with goals, and its notes.
#[derive(Debug)]
pub(crate) struct PlanWithGoals {
    name: &'static str,
    plan: Plan,
    goals: Goals,
    prose: Prose,
}

/// A *place*, which is a workload on a number of CPUs of a machine, with a result for each policy and seed.
#[derive(Debug)]
struct Place {
    machine: String,
    cpus: u32,
    workload: String,
    by_policy: Vec<(String, Vec<(RunSpec, RunResult)>)>,
}

/// A comparison of two figures at one place: the figure of the policy that has the goals, and the figure of
/// another policy.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Match {
    is_met: bool,
    /// The policy's figure divided by the other policy's figure, after the goal's `plus` was added to both.
    ratio: f64,
}

impl PlanWithGoals {
    /// Returns the study that compares this project's own allocator with Linux's allocator.
    pub(super) fn owned_blocks() -> Self {
        let text = include_str!("../bundled/owned-blocks.toml");
        let prose = include_str!("../bundled/owned-blocks.md");
        Self::parse("owned-blocks", text, prose).expect("a test reads it")
    }

    fn parse(name: &'static str, text: &str, prose: &str) -> Result<Self> {
        let plan = Plan::parse(text)?;
        let goals = plan.goals.clone().context("the plan has no [goals]")?;
        Ok(Self { name, plan, goals, prose: Prose::parse(&format!("{name}.md"), prose)? })
    }

    /// Returns the runs, in the order of the plan.
    fn runs(&self, options: &Options) -> Vec<RunSpec> {
        let mut plan = self.plan.clone();
        if options.is_quick {
            plan.grids = std::mem::take(&mut plan.quick);
        }
        for grid in &mut plan.grids {
            grid.seed = Several::Many(options.seeds().iter().collect());
        }
        runs(&plan)
    }

    /// Makes the table of goals. For each goal, the table has the number of places that meet the goal.
    fn verdict(&self, places: &[Place]) -> Table {
        let Goals { policy, beside, base, goals, .. } = &self.goals;
        let mut columns = vec![Column::label("axis", "axis"), Column::label("goal", "goal, beside Linux's")];
        columns.extend(beside.iter().map(|other| Column::label(&format!("met_{other}"), other)));
        columns.push(Column::ratio("mean", &format!("mean, of {base}")));
        columns.push(Column::ratio("worst", "worst"));
        columns.push(Column::label("worst_at", "at"));
        let mut table = Table::new(format!("{}: goals met, in how many places", self.name), columns);
        for goal in goals {
            let met = beside.iter().map(|other| {
                let matches = matches(places, goal, policy, other);
                let met = matches.iter().filter(|(_, one)| one.is_met).count();
                Cell::from(format!("{met} of {}", matches.len()))
            });
            let of_base = matches(places, goal, policy, base);
            let worst = of_base.iter().max_by(|(_, one), (_, other)| {
                let order = one.ratio.total_cmp(&other.ratio);
                if goal.at_most.is_none() { order.reverse() } else { order }
            });
            let (ratio, at) = worst.map_or((Cell::Absent, String::new()), |(place, one)| {
                (Cell::real(one.ratio, 3), format!("{} {}", place.workload, place.cpus))
            });
            let names = [Cell::from(goal.axis.as_str()), goal.words.as_str().into()];
            table.push(Row::new(names.into_iter().chain(met).chain([mean(&of_base), ratio, at.into()])));
        }
        table
    }

    /// Makes the table of one machine, with one row for each workload and policy.
    fn of_machine(&self, places: &[Place]) -> Table {
        let Goals { base, columns: means, .. } = &self.goals;
        let mut columns = vec![
            Column::label("workload", "workload"),
            Column::label("allocator", "allocator"),
            Column::ratio("score_percent", "score").with_unit("%"),
            Column::ratio("spread_percent", "+/-").with_unit("%"),
        ];
        columns.extend(means.iter().map(|column| {
            let heading = column.heading.as_ref().unwrap_or(&column.key);
            Column::ratio(&column.key, heading).with_unit(&column.unit)
        }));
        let Place { cpus, machine, .. } = &places[0];
        let mut table = Table::new(format!("{cpus} CPUs ({machine}); score: {base} = 100"), columns);
        for place in places {
            let base = place.spread(base, Metric::Score);
            for (policy, _) in &place.by_policy {
                let scores = place.spread(policy, Metric::Score);
                let score = scores.as_ref().zip(base.as_ref());
                let score = score.map(|(scores, base)| 100.0 * scores.mean / base.mean);
                let deviation = scores.and_then(|scores| scores.stddev_percent());
                let names = [place.workload.as_str().into(), policy.as_str().into()];
                let means = means.iter().map(|column| {
                    let mean = place.spread(policy, column.metric).map(|spread| spread.mean);
                    Cell::real(mean, column.decimals)
                });
                let scores = [Cell::real(score, 1), Cell::real(deviation, 1)];
                table.push(Row::new(names.into_iter().chain(scores).chain(means)));
            }
        }
        table
    }

    /// Makes the table of cache lines that CPUs fetch from each other, with one column for each table of the
    /// allocator.
    fn lines(&self, places: &[Place]) -> Table {
        let mut columns =
            vec![Column::label("workload", "lines, of 1000 pages"), Column::count("cpus", "CPUs")];
        columns.extend(LineTraffic::TABLES.map(|table| Column::ratio(table, table)));
        let title = format!("{}: lines that pass from CPU to CPU, for 1000 pages allocated", self.name);
        let mut table = Table::new(title, columns);
        for place in places {
            let results = || place.of(&self.goals.policy).iter().map(|(_, result)| result);
            let pages: u64 = results().map(|run| run.allocated_pages).sum();
            let of = |table: &str| {
                let passes = results().filter_map(|run| run.shared.line_passes.get(table)).sum::<u64>();
                if pages == 0 { Cell::Absent } else { Cell::real(1000.0 * passes as f64 / pages as f64, 2) }
            };
            let names = [Cell::from(place.workload.as_str()), u64::from(place.cpus).into()];
            table.push(Row::new(names.into_iter().chain(LineTraffic::TABLES.map(of))));
        }
        table
    }

    /// Returns a sentence for each goal that the policy misses in comparison with the base policy. The
    /// sentence lists the places where the policy misses the goal.
    fn misses(&self, places: &[Place]) -> Vec<String> {
        let Goals { policy, base, goals, .. } = &self.goals;
        let of_goal = |goal: &Goal| {
            let matches = matches(places, goal, policy, base);
            let missed = matches.iter().filter(|(_, one)| !one.is_met);
            let places: Vec<_> = missed
                .map(|(place, one)| format!("{} on {} CPUs ({:.2})", place.workload, place.cpus, one.ratio))
                .collect();
            let Goal { axis, words, .. } = goal;
            let places = (!places.is_empty()).then(|| places.join(", "))?;
            Some(format!("{axis}, goal \"{words}\" compared with {base}: missed by {places}."))
        };
        goals.iter().filter_map(of_goal).collect()
    }
}

impl Study for PlanWithGoals {
    fn name(&self) -> &str {
        self.name
    }

    fn summary(&self) -> &str {
        &self.plan.title
    }

    fn figures(&self) -> Vec<&str> {
        Vec::new()
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        // The study begins with the longest runs, so that no long run is left at the end. The longest runs
        // are last in the plan, because the plan lists larger machines and longer loads after smaller
        // machines and shorter loads.
        let mut runs = self.runs(options);
        runs.reverse();
        let results = simulate_all(&runs, options.jobs, progress)?;
        let places = places(runs.into_iter().zip(results).rev())?;
        let by_machine: Vec<_> =
            places.chunk_by(|one, other| (one.cpus, &one.machine) == (other.cpus, &other.machine)).collect();
        let machines: Vec<_> = by_machine.iter().map(|places| places[0].machine.as_str()).collect();
        let policies = places.first().into_iter().flat_map(|place| &place.by_policy);
        let tables = by_machine.iter().map(|places| self.of_machine(places));
        let mut explanations = self.misses(&places);
        explanations.extend(options.reasons(self.prose.below(EXPLANATIONS)));
        Ok(Findings {
            more: [self.verdict(&places)].into_iter().chain(tables).chain([self.lines(&places)]).collect(),
            notes: self.prose.below(NOTES).to_vec(),
            explanations,
            machine: format!("simulated: {}", machines.join(", ")),
            policies: policies.map(|(policy, _)| policy.clone()).collect(),
            seeds: Some(options.seeds()),
            ..Findings::default()
        })
    }
}

/// Groups results by place. Places on smaller machines come first, because the report has one table for each
/// machine. Places on the same machine stay in the order of the plan.
fn places(results: impl Iterator<Item = (RunSpec, RunResult)>) -> Result<Vec<Place>> {
    let mut places: Vec<Place> = Vec::new();
    for (run, result) in results {
        let all = || Ok(parse_machine(&machine_text(&run.machine)?, &run.machine)?.cpus());
        let cpus = run.cpus.map_or_else(all, anyhow::Ok)?;
        let here = (cpus, &run.machine, &run.workload);
        let at = places.iter().position(|place| (place.cpus, &place.machine, &place.workload) == here);
        let at = at.unwrap_or_else(|| {
            let (machine, workload) = (run.machine.clone(), run.workload.clone());
            places.push(Place { machine, cpus, workload, by_policy: Vec::new() });
            places.len() - 1
        });
        let place = &mut places[at];
        match place.by_policy.iter_mut().find(|(policy, _)| *policy == run.policy) {
            Some((_, results)) => results.push((run, result)),
            None => place.by_policy.push((run.policy.clone(), vec![(run, result)])),
        }
    }
    places.sort_by(|one, other| (one.cpus, &one.machine).cmp(&(other.cpus, &other.machine)));
    Ok(places)
}

impl Place {
    /// Returns the results of the policy `policy` at this place.
    fn of(&self, policy: &str) -> &[(RunSpec, RunResult)] {
        self.by_policy.iter().find(|(name, _)| name == policy).map_or(&[], |(_, results)| results)
    }

    /// Returns the mean and the deviation of a policy's figure over all seeds. Returns `None` if the place
    /// has no results of the policy `policy`.
    fn spread(&self, policy: &str, metric: Metric) -> Option<Spread> {
        let values: Vec<_> = self.of(policy).iter().map(|(run, result)| metric.of(run, result)).collect();
        Spread::of(&values)
    }

    /// Compares the means of two policies over all seeds. Returns `None` if one of the policies has no
    /// results.
    fn compare(&self, goal: &Goal, policy: &str, other: &str) -> Option<Match> {
        let own = self.spread(policy, goal.metric)?;
        let other = self.spread(other, goal.beside_metric.unwrap_or(goal.metric))?;
        let is_met = match goal.at_most {
            Some(part) => own.mean <= other.mean * part,
            None => own.mean >= other.mean || !own.is_apart_from(&other) && own.runs > 1,
        };
        Some(Match { is_met, ratio: (own.mean + goal.plus) / (other.mean + goal.plus) })
    }
}

fn matches<'a>(places: &'a [Place], goal: &Goal, policy: &str, other: &str) -> Vec<(&'a Place, Match)> {
    places.iter().filter_map(|place| Some((place, place.compare(goal, policy, other)?))).collect()
}

/// Returns the geometric mean of the ratios of `matches`.
fn mean(matches: &[(&Place, Match)]) -> Cell {
    if matches.is_empty() {
        return Cell::Absent;
    }
    let logarithms: f64 = matches.iter().map(|(_, one)| one.ratio.ln()).sum();
    Cell::real((logarithms / matches.len() as f64).exp(), 3)
}

#[cfg(test)]
mod tests {
    use pageset_study::simulate::SharedUse;

    use super::*;
    use crate::sweep::Sweep;

    #[test]
    fn every_run_is_of_something_that_there_is() {
        let study = PlanWithGoals::owned_blocks();
        let counts = [false, true].map(|is_quick| {
            let runs = study.runs(&Options { is_quick, jobs: 1, seeds: Some(1), ..Options::default() });
            for run in &runs {
                assert!(run.check().is_ok(), "{run:?}: {:?}", run.check());
            }
            let Goals { policy, beside, base, .. } = &study.goals;
            for named in beside.iter().chain([policy, base]) {
                assert!(runs.iter().any(|run| run.policy == *named), "{named}");
            }
            runs.len() / 6
        });
        assert_eq!(counts, [32, 3]);
        assert_eq!(
            Sweep::new(&study.plan).unwrap().run_count(),
            32 * 6 * 5,
            "the sweep runs each run of the plan with five seeds"
        );
    }

    #[test]
    fn places_are_ordered_by_size_and_keep_the_order_of_policies() {
        let run = |machine: &str, policy: &str, seed| {
            let run = RunSpec { seed, ..RunSpec::new(machine, "page_fault1", policy) };
            (run, RunResult { score_per_s: seed as f64, ..RunResult::default() })
        };
        let (mut few, result) = run("xeon-36", "b", 5);
        few.cpus = Some(18);
        let all =
            [run("xeon-36", "b", 1), run("xeon-36", "b", 3), run("xeon-36", "a", 7), run("epyc-2", "b", 2)];
        let places = places(all.into_iter().chain([(few, result)])).unwrap();
        let sizes: Vec<_> = places.iter().map(|place| (place.machine.as_str(), place.cpus)).collect();
        assert_eq!(sizes, [("epyc-2", 2), ("xeon-36", 18), ("xeon-36", 36)]);
        let policies: Vec<_> = places[2].by_policy.iter().map(|(policy, _)| policy.as_str()).collect();
        assert_eq!(policies, ["b", "a"]);
        let spread = places[2].spread("b", Metric::Score).unwrap();
        assert_eq!((spread.mean, spread.runs), (2.0, 2));
    }

    fn result(score_per_s: f64, held_mean: f64) -> RunResult {
        let mut result = RunResult { score_per_s, ..RunResult::default() };
        result.shared.held_mean = held_mean;
        result
    }

    #[test]
    fn a_goal_is_met_or_not() {
        let goals = PlanWithGoals::owned_blocks().goals;
        let matched = |axis: &str, ours: RunResult, linux: RunResult| {
            let run = |policy: &str| RunSpec::new("epyc-2", "page_fault1", policy);
            let place = places([(run("ours"), ours), (run("linux"), linux)].into_iter()).unwrap().remove(0);
            let goal = goals.goals.iter().find(|goal| goal.axis == axis).unwrap();
            place.compare(goal, "ours", "linux").unwrap()
        };
        assert!(matched("score", result(100.0, 0.0), result(100.0, 0.0)).is_met);
        assert_eq!(
            matched("score", result(100.0, 0.0), result(200.0, 0.0)),
            Match { is_met: false, ratio: 0.5 }
        );
        assert!(matched("pages held, mean", result(1.0, 50.0), result(1.0, 100.0)).is_met);
        assert!(!matched("pages held, mean", result(1.0, 51.0), result(1.0, 100.0)).is_met);
        assert!(
            matched("fallbacks", result(1.0, 0.0), result(1.0, 0.0)).is_met,
            "the goal is met if no request of either policy falls back"
        );
        let busy = RunResult { shared: SharedUse { visits: 30, ..SharedUse::default() }, ..result(4.0, 0.0) };
        let slow = RunResult { shared: SharedUse { visits: 10, ..SharedUse::default() }, ..result(1.0, 0.0) };
        assert!(!matched("visits to shared state", busy.clone(), slow.clone()).is_met);
        assert!(matched("visits, for as much work", busy, slow.clone()).is_met);
        let shared = SharedUse { visits: 5, contended_lines: 2, line_transfers: 7, ..SharedUse::default() };
        let passes = RunResult { shared, ..result(1.0, 0.0) };
        assert!(matched("visits to shared state", passes.clone(), slow.clone()).is_met);
        assert_eq!(matched("visits and all lines that passed", passes, slow).ratio, 1.0);
    }
}
