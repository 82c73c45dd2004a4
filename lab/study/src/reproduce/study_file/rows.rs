//! The rows of a table of a study's file: their published values, and their simulations.

use std::path::Path;

use pageset_replay::names_policy_file;
use pageset_sim::Machine;
use toml::Spanned;

use super::form::{ColumnForm, PrintedAs, RowForm, RunForm};
use super::lines::{Condition, column};
use super::mistake::{Mistake, Result};
use super::table::{Columns, Table, index_of};
use crate::load::Workload;
use crate::reproduce::published::{Published, PublishedRow};
use crate::reproduce::simulated::Case;
use crate::simulate::{RunSpec, machine_text, parse_machine, recording};

/// The parts that the rows of a table are made of.
pub(super) struct Rows<'a> {
    pub(super) table: &'a Table<'a>,
    pub(super) csv: &'a Published,
    pub(super) columns: &'a Columns,
    /// The condition on the lines of the table.
    pub(super) lines: Condition,
    /// The row of a table that has one for each line of the CSV.
    pub(super) only_row: [Spanned<RowForm>; 1],
}

/// One row: its form, the condition on its lines, and its base row, which may be the row itself.
struct Row<'a> {
    name: String,
    form: &'a Spanned<RowForm>,
    lines: Condition,
    base: Option<usize>,
}

impl Rows<'_> {
    /// The rows, from top to bottom.
    pub(super) fn cases(&self, is_quick: bool) -> Result<Vec<Case>> {
        let rows = self.rows()?;
        let kept = self.kept(&rows, is_quick)?;
        let mut cases: Vec<Case> = Vec::new();
        // Numbers of the rows that are kept.
        let mut numbers = vec![None; rows.len()];
        for (index, row) in rows.iter().enumerate().filter(|(index, _)| kept[*index]) {
            let base = match row.base {
                None => None,
                Some(base) => Some(numbers[base].ok_or_else(|| {
                    let (name, base) = (&row.name, &rows[base].name);
                    Mistake::at(
                        row.form,
                        format!("a quick run has row `{name}` and not its base row `{base}`"),
                    )
                })?),
            };
            numbers[index] = Some(cases.len());
            let of_base = row.base.map_or(row, |base| &rows[base]);
            let case = Case {
                name: row.name.clone(),
                base,
                run: self.run(row)?,
                published: self
                    .columns
                    .iter()
                    .map(|of| self.value(of, row, of_base))
                    .collect::<Result<_>>()?,
                variation_percent: self.variation_percent(row, of_base)?,
            };
            cases.push(case);
            self.measure(&mut cases)?;
        }
        Ok(cases)
    }

    /// The rows as they are written. With `each_line`, once for every line of the CSV.
    fn rows(&self) -> Result<Vec<Row<'_>>> {
        let form = self.table.form.get_ref();
        let only = form.each_line.as_ref().map_or(&[][..], |_| &self.only_row);
        let written = form.rows.as_deref().unwrap_or(only);
        for (key, name) in written.iter().flat_map(|row| &row.get_ref().printed) {
            index_of(self.columns, &Spanned::new(name.span(), key.clone()))?;
        }
        let mut rows: Vec<Row<'_>> = Vec::new();
        let Some(each) = &form.each_line else {
            for row in written {
                let name = row.get_ref().name.clone();
                let name = name.ok_or_else(|| Mistake::at(row, "this row has no `name`"))?;
                let mut lines = self.lines.clone().and(self.csv, &row.get_ref().only)?;
                if let Some(names) = &form.named_by {
                    lines = lines.and_text(column(self.csv, names)?, std::slice::from_ref(&name));
                }
                rows.push(Row { name, form: row, lines, base: (!rows.is_empty()).then_some(0) });
            }
            if rows.is_empty() {
                return Err(self.table.mistake("this table has no `rows`: write them, or `each_line`"));
            }
            return Ok(rows);
        };
        let names = column(self.csv, each)?;
        for line in self.lines.lines(self.csv) {
            let named = line.text(names)?;
            let first = rows.len();
            for (index, row) in written.iter().enumerate() {
                let name =
                    row.get_ref().name.iter().fold(named.to_owned(), |name, own| format!("{name} {own}"));
                let lines = self.lines.clone().and(self.csv, &row.get_ref().only)?;
                let lines = lines.and_text(names, &[named.to_owned()]);
                // One row for each line: then the first line is the base of all.
                let base = if written.len() > 1 { first } else { 0 };
                let is_base = if written.len() > 1 { index == 0 } else { rows.is_empty() };
                rows.push(Row { name, form: row, lines, base: (!is_base).then_some(base) });
            }
        }
        if rows.is_empty() {
            let problem = format!("{} has no line of the table: change `only`", self.csv.file());
            return Err(Mistake::at(each, problem));
        }
        Ok(rows)
    }

    /// Which rows the run has.
    fn kept(&self, rows: &[Row<'_>], is_quick: bool) -> Result<Vec<bool>> {
        for (index, row) in rows.iter().enumerate() {
            if rows[..index].iter().any(|other| other.name == row.name) {
                let problem = format!("two rows have the name `{}`: a name tells rows apart", row.name);
                return Err(Mistake::at(row.form, problem));
            }
        }
        let Some(quick) = &self.table.form.get_ref().quick_rows else { return Ok(vec![true; rows.len()]) };
        if let Some(name) = quick.get_ref().iter().find(|name| rows.iter().all(|row| row.name != **name)) {
            return Err(Mistake::at(quick, format!("no row has the name `{name}`")));
        }
        Ok(rows.iter().map(|row| !is_quick || quick.get_ref().contains(&row.name)).collect())
    }

    /// The line with a row's value in a column.
    fn line(&self, of: &Spanned<ColumnForm>, row: &Row<'_>) -> Result<PublishedRow<'_>> {
        let lines = row.lines.clone().and(self.csv, &of.get_ref().only)?;
        lines.line(self.csv).map_err(|problem| Mistake::at(row.form, problem))
    }

    /// The CSV's column with a row's value in a column.
    fn printed<'a>(&'a self, of: &'a Spanned<ColumnForm>, row: &'a Row<'_>) -> Result<&'a str> {
        let by_row = row.form.get_ref().printed.get(&of.get_ref().key);
        let printed = by_row.or(of.get_ref().printed.as_ref());
        let missing = "neither the column nor the row says `printed`: name the CSV's column";
        column(self.csv, printed.ok_or_else(|| Mistake::at(of, missing))?)
    }

    /// The number that is printed for a row in a column.
    fn number(&self, of: &Spanned<ColumnForm>, row: &Row<'_>) -> Result<Option<f64>> {
        let line = self.line(of, row)?;
        let ColumnForm { per, times, .. } = of.get_ref();
        let number = line.number(self.printed(of, row)?)?;
        let number = number.map(|number| times.map_or(number, |times| times * number));
        let Some(per) = per else { return Ok(number) };
        let divisor = line.number(column(self.csv, per)?)?;
        Ok(number.zip(divisor).map(|(number, divisor)| number / divisor))
    }

    /// The published value of a row in a column.
    fn value(&self, of: &Spanned<ColumnForm>, row: &Row<'_>, base: &Row<'_>) -> Result<Option<f64>> {
        Ok(match of.get_ref().printed_as {
            PrintedAs::Value => self.number(of, row)?,
            PrintedAs::ValueInPercentOfBase => {
                let both = self.number(of, row)?.zip(self.number(of, base)?);
                both.map(|(value, base)| 100.0 * value / base)
            }
            PrintedAs::Change if row.base.is_none() => Some(100.0),
            PrintedAs::Change => self.number(of, row)?.map(|change| 100.0 + change),
        })
    }

    /// The standard deviation that is printed for a row, in percent.
    fn variation_percent(&self, row: &Row<'_>, base: &Row<'_>) -> Result<Option<f64>> {
        let Some(first) = self.columns.first() else { return Ok(None) };
        if let Some(variation) = &row.form.get_ref().variation {
            return Ok(self.line(first, row)?.number(column(self.csv, variation)?)?);
        }
        let Some(texts) = &self.table.form.get_ref().deviation_line else { return Ok(None) };
        let lines = row.lines.clone().and(self.csv, &Some(texts.clone()))?.lines(self.csv);
        let [line] = lines[..] else { return Ok(None) };
        let deviation = line.number(self.printed(first, row)?)?;
        Ok(deviation.zip(self.number(first, base)?).map(|(deviation, mean)| deviation / mean * 100.0))
    }

    /// The simulation of a row.
    fn run(&self, row: &Row<'_>) -> Result<RunSpec> {
        let table = self.table.form.get_ref();
        let shared = table.run.as_ref().map(|run| run.get_ref().clone()).unwrap_or_default();
        let mut form = row.form.get_ref().run.over(&shared);
        for (key, name) in table.from_line.iter().flatten() {
            let line = row.lines.line(self.csv).map_err(|problem| Mistake::at(row.form, problem))?;
            let text = line.text(column(self.csv, name)?)?;
            self.set_from(&mut form, key, text).map_err(|problem| Mistake::at(name, problem))?;
        }
        let missing = |key| {
            let problem = format!("row `{}` has no `{key}` in its `run`, nor has its table", row.name);
            Mistake::at(row.form, problem)
        };
        let machine = form.machine.ok_or_else(|| missing("machine"))?;
        let workload = form.workload.ok_or_else(|| missing("workload"))?;
        let policy = form.policy.ok_or_else(|| missing("policy"))?;
        let (machine, policy) = (self.beside(machine), self.beside(policy));
        let workload = match recording(&workload).and_then(Path::to_str) {
            Some(path) if self.table.files.is_users() => format!("trace:{}", self.table.files.named(path)),
            _ => workload,
        };
        let run = RunSpec {
            cpus: form.cpus,
            batch: form.batch,
            high: form.high,
            kernel_of: form.kernel_of.map(|name| self.beside(name)),
            tick_phase: form.tick_phase,
            warmup_ms: form.warmup_ms,
            duration_ms: form.duration_ms,
            settings: form.set,
            ..RunSpec::new(&machine, &workload, &policy)
        };
        if self.table.files.is_users() {
            run.check().map_err(|error| Mistake::at(row.form, format!("row `{}`: {error:#}", row.name)))?;
        }
        Ok(run)
    }

    /// A file of the user is beside the study's file; other names stay as they are.
    fn beside(&self, name: String) -> String {
        if self.table.files.is_users() && names_policy_file(&name) {
            self.table.files.named(&name)
        } else {
            name
        }
    }

    /// Sets a part of the simulation by the text of a line of the CSV.
    fn set_from(&self, form: &mut RunForm, key: &str, text: &str) -> Result<(), String> {
        if key == "machine" {
            let machine = self.table.study.machines.get(text);
            form.machine = Some(machine.cloned().ok_or_else(|| {
                format!("no machine stands for `{text}`: add it to [machines], with the simulated one's name")
            })?);
            return Ok(());
        }
        let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
        let number: u64 = text[text.len() - digits..].parse().map_err(|_| {
            format!("`{text}` does not end with a number, which `{key}` needs: choose lines by `only`")
        })?;
        let small = u32::try_from(number).map_err(|_| format!("`{text}` is too large for `{key}`"));
        match key {
            "batch" => form.batch = Some(small?),
            "high" => form.high = Some(small?),
            "cpus" => form.cpus = Some(small?),
            _ => _ = form.set.insert(key.to_owned(), number),
        }
        Ok(())
    }

    /// Sets the times of the last row, as far as the table has rules for them.
    fn measure(&self, cases: &mut [Case]) -> Result<()> {
        let form = self.table.form.get_ref();
        let Some((case, above)) = cases.split_last_mut() else { return Ok(()) };
        if form.warmup.is_none() && form.cpu_ms_min.is_none() {
            return Ok(());
        }
        let cpus = machine(&case.run.machine)?.cpus();
        if let Some(warmup) = &form.warmup {
            let base = case.base.map_or(&*case, |base| &above[base]);
            let warmup = warmup.get_ref();
            let score = base.published[index_of(self.columns, &warmup.score)?];
            let work = 1000.0 * warmup.rounds * warmup.units as f64 * f64::from(cpus);
            case.run.warmup_ms = score.map(|score| (work / score).round() as u64);
        }
        if let Some(cpu_ms) = form.cpu_ms_min {
            let own = Workload::named(&case.run.workload).map_or(0, |workload| workload.duration_ms.1);
            case.run.duration_ms = Some((cpu_ms / u64::from(cpus)).max(own));
        }
        Ok(())
    }
}

fn machine(name: &str) -> anyhow::Result<Machine> {
    parse_machine(&machine_text(name)?, name)
}
