//! Shows the answer to a question of a sweep's plan, as a figure and as a table.

use anyhow::{Result, anyhow};
use pageset_report::plot::{Axis, Figure, Mark, Panel, Point, Scale, Series};
use pageset_report::{Cell, Column, Origin, Row, Table};
use pageset_reproduce::sweep::{LogAxis, Question};
use pageset_study::simulate::RunResult;
use serde_json::Value;

use super::table::{Flat, Shown, flattened, text};

/// Draws the answer to a question. A point shows the median and the range of all runs that differ only in
/// keys that the question does not name, such as the seed.
pub(crate) fn figure(question: &Question, runs: &[Shown]) -> Result<Figure> {
    let answer = Answer::of(question, runs)?;
    let mut figure = Figure::new(question.title.clone());
    for panel_value in &answer.panels {
        for y in question.y.values() {
            let title = panel_value.map_or_else(String::new, name);
            let mut panel = Panel::new(title, x_axis(question, &answer), y_axis(question, y));
            for curve in answer.curves.iter().filter(|curve| curve.panel == *panel_value && curve.y == y) {
                let series = curve.series.map_or_else(|| y.clone(), name);
                panel.push(Series::new(series, Origin::Simulated, Mark::Line, curve.points.clone()));
            }
            figure.push(panel);
        }
    }
    figure.note("Simulated. A point is the median of all runs with the same shown keys, and a whisker is the range of these runs.");
    Ok(figure)
}

/// The points of the figure for a question, as a table with one row for each point.
pub(crate) fn table(question: &Question, runs: &[Shown]) -> Result<Table> {
    let answer = Answer::of(question, runs)?;
    let keys = [question.panel.as_ref(), question.series.as_ref(), Some(&question.x)];
    let mut columns: Vec<Column> = Vec::new();
    for key in keys.into_iter().flatten() {
        if columns.iter().all(|column| column.key != *key) {
            columns.push(Column::label(key, &key.replace('_', " ")));
        }
    }
    let shown: Vec<String> = columns.iter().map(|column| column.key.clone()).collect();
    // If the question asks for one result, this result's name is the heading of the median's column.
    let is_many = question.y.values().len() > 1;
    columns.extend(is_many.then(|| Column::label("result", "result")));
    let median = question.y.values().iter().find(|_| !is_many).map_or("median", String::as_str);
    columns.extend([
        Column::measure("median", &median.replace('_', " ")),
        Column::measure("smallest", "smallest"),
        Column::measure("largest", "largest"),
    ]);
    let mut table = Table::new(question.title.clone(), columns);
    for curve in &answer.curves {
        for point in &curve.points {
            let key = |key: &String| match Some(key) {
                key if key == question.panel.as_ref() => curve.panel.map_or_else(String::new, name),
                key if key == question.series.as_ref() => curve.series.map_or_else(String::new, name),
                _ => answer.x_text(point.x),
            };
            let (smallest, largest) = point.range.unwrap_or((point.y, point.y));
            let decimals = if point.y.abs() < 100.0 { 2 } else { 0 };
            let values = [point.y, smallest, largest].map(|value| Cell::real(value, decimals));
            let result = is_many.then(|| curve.y.to_owned());
            let labels = shown.iter().map(key).chain(result).map(Cell::from);
            table.push(Row::new(labels.chain(values)));
        }
    }
    Ok(table)
}

/// The name of a key's value, for readers. If the value is the path of a policy file or machine file, returns
/// the file's name without the ending.
fn name(value: &Value) -> String {
    let text = text(value);
    let stem = text.strip_suffix(".toml").map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
    stem.unwrap_or(text)
}

/// The points of the figure that answers one question.
struct Answer<'a> {
    /// The values of the key that divides the figure into panels. The list has a single `None` if no key
    /// divides the figure.
    panels: Vec<Option<&'a Value>>,
    /// Values of the key on the x axis.
    names: Vec<&'a Value>,
    /// The points, sorted by panel, result and series.
    curves: Vec<Curve<'a>>,
}

/// The points of one panel, result and series. A curve has at least one point.
struct Curve<'a> {
    panel: Option<&'a Value>,
    y: &'a str,
    series: Option<&'a Value>,
    points: Vec<Point>,
}

impl<'a> Answer<'a> {
    fn of(question: &'a Question, runs: &'a [Shown]) -> Result<Self> {
        let chosen: Vec<_> = runs.iter().filter(|run| is_chosen(question, &run.keys)).collect();
        if chosen.is_empty() {
            return Err(no_run(question));
        }
        let names = distinct(&chosen, &question.x, question)?;
        let panels = each(&chosen, question.panel.as_ref(), question)?;
        let all_series = each(&chosen, question.series.as_ref(), question)?;
        let mut answer = Self { panels, names, curves: Vec::new() };
        for &panel in &answer.panels {
            for y in question.y.values() {
                for &series in &all_series {
                    let runs = chosen.iter().copied().filter(|run| {
                        has(&run.keys, question.panel.as_ref(), panel)
                            && has(&run.keys, question.series.as_ref(), series)
                    });
                    let points = points(question, y, &answer.names, answer.is_named(), runs)?;
                    if !points.is_empty() {
                        answer.curves.push(Curve { panel, y, series, points });
                    }
                }
            }
        }
        Ok(answer)
    }

    /// Whether the values on the x axis are names.
    fn is_named(&self) -> bool {
        self.names.iter().any(|value| !value.is_number())
    }

    /// Returns the label of the point at `x` on the x axis.
    fn x_text(&self, x: f64) -> String {
        let at = if self.is_named() {
            self.names.get(x as usize)
        } else {
            self.names.iter().find(|value| value.as_f64() == Some(x))
        };
        at.map_or_else(String::new, |value| name(value))
    }
}

/// Checks before the runs that questions name keys and results of these runs. `runs` has the keys of each
/// run.
pub(crate) fn check(questions: &[Question], runs: impl Iterator<Item = Flat>) -> Result<()> {
    let Ok(Value::Object(results)) = serde_json::to_value(RunResult::default()) else { return Ok(()) };
    for question in questions {
        for y in question.y.values() {
            // Only runs of a recording have the result `played`.
            let field = y.split('.').next().unwrap_or(y);
            if field != "played" && !results.contains_key(field) {
                return Err(no_result(question, y, &flattened(&results)));
            }
        }
    }
    let mut has_runs = vec![false; questions.len()];
    for keys in runs {
        for (question, has_runs) in questions.iter().zip(&mut has_runs) {
            if is_chosen(question, &keys) {
                *has_runs = true;
                let named = [Some(&question.x), question.panel.as_ref(), question.series.as_ref()];
                named.into_iter().flatten().try_for_each(|key| of_key(&keys, key, question).map(drop))?;
            }
        }
    }
    match questions.iter().zip(has_runs).find(|(_, has_runs)| !has_runs) {
        Some((question, _)) => Err(no_run(question)),
        None => Ok(()),
    }
}

fn no_run(question: &Question) -> anyhow::Error {
    anyhow!("question `{}`: the condition `only` leaves no run", question.title)
}

fn no_result(question: &Question, y: &str, results: &Flat) -> anyhow::Error {
    let known = results.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    anyhow!("question `{}`: there is no result `{y}`; choose from: {known}", question.title)
}

/// A run's value of a key.
fn of_key<'a>(spec: &'a Flat, key: &str, question: &Question) -> Result<&'a Value> {
    let known = || spec.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    spec.get(key).ok_or_else(|| {
        anyhow!("question `{}`: a run has no key `{key}`; it has: {}", question.title, known())
    })
}

fn is_chosen(question: &Question, spec: &Flat) -> bool {
    question.only.iter().all(|(key, wanted)| {
        let wanted = serde_json::to_value(wanted).unwrap_or(Value::Null);
        let wanted = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted]);
        spec.get(key).is_some_and(|value| wanted.contains(value))
    })
}

/// The different values of a key, in the order of the runs.
fn distinct<'a>(runs: &[&'a Shown], key: &str, question: &Question) -> Result<Vec<&'a Value>> {
    let mut values: Vec<&Value> = Vec::new();
    for Shown { keys: spec, .. } in runs {
        let value = of_key(spec, key, question)?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

/// The different values of a key. If the question names no key, returns a single `None`.
fn each<'a>(runs: &[&'a Shown], key: Option<&String>, question: &Question) -> Result<Vec<Option<&'a Value>>> {
    match key {
        None => Ok(vec![None]),
        Some(key) => Ok(distinct(runs, key, question)?.into_iter().map(Some).collect()),
    }
}

fn has(spec: &Flat, key: Option<&String>, value: Option<&Value>) -> bool {
    key.is_none_or(|key| spec.get(key) == value)
}

fn x_axis(question: &Question, answer: &Answer<'_>) -> Axis {
    if answer.is_named() {
        return Axis::categories(question.x.clone(), answer.names.iter().map(|value| name(value)));
    }
    let scale = if question.log.contains(&LogAxis::X) { Scale::Log } else { Scale::Linear };
    Axis::new(question.x.clone(), "", scale)
}

fn y_axis(question: &Question, y: &str) -> Axis {
    let scale = if question.log.contains(&LogAxis::Y) { Scale::Log } else { Scale::FromZero };
    Axis::new(y, "", scale)
}

fn points<'a>(
    question: &Question,
    y: &str,
    names: &[&Value],
    is_named: bool,
    runs: impl Iterator<Item = &'a Shown>,
) -> Result<Vec<Point>> {
    let mut values: Vec<(f64, Vec<f64>)> = Vec::new();
    for Shown { keys: spec, results: result } in runs {
        let value = result.get(y).ok_or_else(|| no_result(question, y, result))?;
        // A run may lack a result, such as a latency if there was no allocation.
        let Some(value) = value.as_f64() else { continue };
        let position = names.iter().position(|name| spec.get(&question.x) == Some(*name)).unwrap_or(0) as f64;
        let x = spec[&question.x].as_f64().filter(|_| !is_named).unwrap_or(position);
        match values.iter_mut().find(|(known, _)| *known == x) {
            Some((_, values)) => values.push(value),
            None => values.push((x, vec![value])),
        }
    }
    values.sort_by(|left, right| left.0.total_cmp(&right.0));
    let point = |(x, values): (f64, Vec<f64>)| {
        let spread = pageset_report::Spread::of(&values)?;
        let range = (spread.runs > 1).then_some((spread.min, spread.max));
        Some(Point { x, y: spread.median, range })
    };
    Ok(values.into_iter().filter_map(point).collect())
}

#[cfg(test)]
mod tests {
    use pageset_reproduce::sweep::Plan;
    use serde_json::json;

    use super::*;

    fn runs() -> Vec<Shown> {
        let mut runs = Vec::new();
        for machine in ["a", "b"] {
            for batch in [31, 63] {
                for seed in [1, 2, 3] {
                    let spec = json!({"machine": machine, "batch": batch, "seed": seed});
                    let result = json!({"score": f64::from(batch * seed), "digest": "x"});
                    let object = |value: Value| value.as_object().unwrap().clone();
                    runs.push(Shown { keys: object(spec), results: object(result) });
                }
            }
        }
        runs
    }

    fn question(text: &str) -> Question {
        let grid = "[[grid]]\nmachine = \"m\"\nworkload = \"w\"\npolicy = \"p\"";
        let question = format!("[[question]]\ntitle = \"Q\"\nfile = \"q\"\n{text}");
        let mut plan = Plan::parse(&format!("title = \"t\"\n{grid}\n{question}")).unwrap();
        plan.questions.remove(0)
    }

    #[test]
    fn runs_that_differ_in_the_seed_are_one_point() {
        let question = question("x = \"batch\"\ny = \"score\"\npanel = \"machine\"\nlog = [\"x\"]");
        let svg = figure(&question, &runs()).unwrap().to_svg().unwrap();
        // The figure has two panels. Each panel has two points with whiskers, and the legend has one swatch.
        assert_eq!(svg.matches("<circle").count(), 2 * 2 + 1);
        let answer = table(&question, &runs()).unwrap();
        assert_eq!(answer.columns()[2].heading, "score");
        let keys: Vec<_> = answer.columns().iter().map(|column| column.key.as_str()).collect();
        assert_eq!(keys, ["machine", "batch", "median", "smallest", "largest"]);
        assert_eq!(answer.rows().len(), 2 * 2);
        let cells = &answer.rows()[3].cells;
        assert_eq!(cells[..2], ["b", "63"].map(Cell::from));
        assert_eq!([2, 3, 4].map(|at: usize| cells[at].number()), [126.0, 63.0, 189.0].map(Some));
        let all = runs();
        let points = points(&question, "score", &[&json!(31)], false, all[..3].iter()).unwrap();
        assert_eq!(points, [Point { x: 31.0, y: 62.0, range: Some((31.0, 93.0)) }]);
    }

    #[test]
    fn names_become_categories_and_only_chooses() {
        let question = question(
            "x = \"machine\"\ny = \"score\"\nseries = \"batch\"\nonly = { seed = 2, batch = [31, 63] }",
        );
        let svg = figure(&question, &runs()).unwrap().to_svg().unwrap();
        assert!(svg.contains("31 (simulated)") && svg.contains("63 (simulated)"));
        let answer = table(&question, &runs()).unwrap();
        let first: Vec<_> = answer.rows().iter().map(|row| row.cells[..2].to_vec()).collect();
        let row = |batch: &str, machine: &str| vec![Cell::from(batch), Cell::from(machine)];
        assert_eq!(first, [row("31", "a"), row("31", "b"), row("63", "a"), row("63", "b")]);
    }

    #[test]
    fn a_policy_file_has_its_short_name() {
        assert_eq!(name(&json!("studies/mine/half-drain.toml")), "half-drain");
        assert_eq!([name(&json!("linux-6.12")), name(&json!(63))], ["linux-6.12", "63"]);
    }

    #[test]
    fn unknown_names_are_told_with_the_known_ones() {
        for (text, message) in [
            (
                "x = \"cpus\"\ny = \"score\"",
                "question `Q`: a run has no key `cpus`; it has: batch, machine, seed",
            ),
            (
                "x = \"batch\"\ny = \"speed\"",
                "question `Q`: there is no result `speed`; choose from: digest, score",
            ),
            (
                "x = \"batch\"\ny = \"score\"\nonly = { seed = 9 }",
                "question `Q`: the condition `only` leaves no run",
            ),
        ] {
            assert_eq!(figure(&question(text), &runs()).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn questions_are_checked_before_the_runs() {
        let checked = |text: &str| {
            let keys = runs().into_iter().map(|run| run.keys);
            check(&[question(text)], keys).map_err(|error| error.to_string())
        };
        assert_eq!(checked("x = \"batch\"\ny = [\"score_per_s\", \"played.events\"]"), Ok(()));
        for (text, message) in [
            ("x = \"bach\"\ny = \"score_per_s\"", "a run has no key `bach`; it has: batch, machine, seed"),
            ("x = \"batch\"\ny = \"unit\"\npanel = \"cpus\"", "a run has no key `cpus`"),
            ("x = \"batch\"\ny = \"speed\"", "there is no result `speed`; choose from: "),
            ("x = \"batch\"\ny = \"unit\"\nonly = { seed = 9 }", "`only` leaves no run"),
        ] {
            let error = checked(text).unwrap_err();
            assert!(error.starts_with("question `Q`: ") && error.contains(message), "{error}");
        }
    }
}
