//! Draws the answer to a question of the plan.

use anyhow::{Result, anyhow, bail};
use pageset_report::Origin;
use pageset_report::plot::{Axis, Figure, Mark, Panel, Point, Scale, Series};
use pageset_study::sweep::{LogAxis, Question};
use serde_json::Value;

use super::table::{Flat, Shown, text};

/// Draws a question. Runs that differ only in keys that the question does not name, such as the seed, become
/// one point: their median, with their range.
pub(crate) fn figure(question: &Question, runs: &[Shown]) -> Result<Figure> {
    let chosen: Vec<_> = runs.iter().filter(|run| is_chosen(question, &run.keys)).collect();
    if chosen.is_empty() {
        bail!("question `{}`: no run is left by `only`", question.title);
    }
    let names = distinct(&chosen, &question.x, question)?;
    let is_named = names.iter().any(|value| !value.is_number());
    let mut figure = Figure::new(question.title.clone());
    for panel_value in each(&chosen, question.panel.as_ref(), question)? {
        for y in question.y.values() {
            let title = panel_value.map_or_else(String::new, text);
            let mut panel = Panel::new(title, x_axis(question, &names, is_named), y_axis(question, y));
            for series_value in each(&chosen, question.series.as_ref(), question)? {
                let runs = chosen.iter().copied().filter(|run| {
                    has(&run.keys, question.panel.as_ref(), panel_value)
                        && has(&run.keys, question.series.as_ref(), series_value)
                });
                let points = points(question, y, &names, is_named, runs)?;
                if !points.is_empty() {
                    let name = series_value.map_or_else(|| y.clone(), text);
                    panel.push(Series::new(name, Origin::Simulated, Mark::Line, points));
                }
            }
            figure.push(panel);
        }
    }
    figure.note("Simulated. A point is the median of the runs that differ in nothing that is shown, a whisker their range.");
    Ok(figure)
}

fn is_chosen(question: &Question, spec: &Flat) -> bool {
    question.only.iter().all(|(key, wanted)| {
        let wanted = serde_json::to_value(wanted).unwrap_or(Value::Null);
        let wanted = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted]);
        spec.get(key).is_some_and(|value| wanted.contains(value))
    })
}

/// The values of a key, in order of appearance.
fn distinct<'a>(runs: &[&'a Shown], key: &str, question: &Question) -> Result<Vec<&'a Value>> {
    let mut values: Vec<&Value> = Vec::new();
    for Shown { keys: spec, .. } in runs {
        let known = || spec.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let value = spec.get(key).ok_or_else(|| {
            anyhow!("question `{}`: a run has no key `{key}`; it has: {}", question.title, known())
        })?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

/// The values of a key, or one `None` without key.
fn each<'a>(runs: &[&'a Shown], key: Option<&String>, question: &Question) -> Result<Vec<Option<&'a Value>>> {
    match key {
        None => Ok(vec![None]),
        Some(key) => Ok(distinct(runs, key, question)?.into_iter().map(Some).collect()),
    }
}

fn has(spec: &Flat, key: Option<&String>, value: Option<&Value>) -> bool {
    key.is_none_or(|key| spec.get(key) == value)
}

fn x_axis(question: &Question, names: &[&Value], is_named: bool) -> Axis {
    if is_named {
        return Axis::categories(question.x.clone(), names.iter().map(|value| text(value)));
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
        let known = || result.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let value = result.get(y).ok_or_else(|| {
            anyhow!("question `{}`: there is no result `{y}`; choose from: {}", question.title, known())
        })?;
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
    use pageset_study::sweep::Plan;
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
        // Two panels with two points and whiskers, and one swatch.
        assert_eq!(svg.matches("<circle").count(), 2 * 2 + 1);
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
            ("x = \"batch\"\ny = \"score\"\nonly = { seed = 9 }", "question `Q`: no run is left by `only`"),
        ] {
            assert_eq!(figure(&question(text), &runs()).unwrap_err().to_string(), message);
        }
    }
}
