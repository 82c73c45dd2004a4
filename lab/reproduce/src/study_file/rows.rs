//! Makes the rows of a table: their published values and their simulations.

use std::path::Path;

use anyhow::{Context as _, Result};
use pageset_replay::names_policy_file;
use pageset_study::load::Workload;
use pageset_study::simulate::{RunSpec, machine_text, parse_machine, recording};
use toml::Spanned;

use super::form::{ColumnForm, PrintedAs, RowForm, RunForm};
use super::lines::{Condition, column};
use super::mistake::{At as _, mistake};
use super::table::{Columns, Table, index_of};
use crate::published::{Published, PublishedRow};
use crate::simulated::Case;

/// The inputs for the rows of a table.
pub(super) struct Rows<'a> {
    pub(super) table: &'a Table<'a>,
    pub(super) csv: &'a Published,
    pub(super) columns: &'a Columns,
    /// The condition that selects the lines of the CSV that belong to the table.
    pub(super) lines: Condition,
}

/// One row of a table: its entry in the study's file, the condition on its CSV lines, and the index of its
/// base row. `base` is `None` if the row itself is a base row.
struct Row {
    name: String,
    form: Spanned<RowForm>,
    lines: Condition,
    base: Option<usize>,
}

impl Rows<'_> {
    /// Makes the rows of the table, from top to bottom.
    pub(super) fn cases(&self, is_quick: bool) -> Result<Vec<Case>> {
        let rows = self.rows()?;
        let mut cases: Vec<Case> = Vec::new();
        for row in self.kept(&rows, is_quick)? {
            let of_base = row.base.map_or(row, |base| &rows[base]);
            let base = cases.iter().position(|case| case.name == of_base.name);
            if base.is_none() && row.base.is_some() {
                let (name, base) = (&row.name, &of_base.name);
                let problem = format!("a quick run has row `{name}` and not its base row `{base}`");
                return Err(mistake(&row.form, problem));
            }
            let published = self.columns.iter().map(|of| self.value(of, row, of_base));
            let published = published.collect::<Result<Vec<_>>>()?;
            let run = self.run(row)?;
            let variation_percent = self.variation_percent(row, of_base)?;
            cases.push(Case { name: row.name.clone(), base, run, published, variation_percent });
            self.measure(&mut cases)?;
        }
        Ok(cases)
    }

    /// Returns the rows that the study's file lists. With `each_line`, repeats the list for every line of the
    /// CSV that belongs to the table.
    fn rows(&self) -> Result<Vec<Row>> {
        let form = self.table.form.get_ref();
        let each = form.each_line.as_ref();
        let written = match &form.rows {
            Some(rows) => rows.clone(),
            // Each line of the CSV is one row. The key `run` of the table describes the simulations of all
            // rows.
            None if each.is_some() => vec![Spanned::new(self.table.run_span(), RowForm::default())],
            None => Vec::new(),
        };
        for (key, name) in written.iter().flat_map(|row| &row.get_ref().printed) {
            index_of(self.columns, &Spanned::new(name.span(), key.clone()))?;
        }
        let mut lines = vec![None];
        if let Some(each) = each {
            let names = column(self.csv, each)?;
            let texts = self.lines.lines(self.csv).into_iter().map(|line| line.text(names).map(Some));
            lines = texts.collect::<Result<_>>()?;
            if lines.is_empty() {
                let problem = format!("{} has no line of the table: change `only`", self.csv.file());
                return Err(mistake(each, problem));
            }
        }
        let mut rows: Vec<Row> = Vec::new();
        for line in lines {
            // If each line of the CSV is one row, the row of the first line is the base row of all rows.
            let first = if line.is_some() && written.len() == 1 { 0 } else { rows.len() };
            for form in &written {
                let name = match (line, &form.get_ref().name) {
                    (Some(line), Some(own)) => format!("{line} {own}"),
                    (Some(line), None) => line.to_owned(),
                    (None, Some(own)) => own.clone(),
                    (None, None) => return Err(mistake(form, "this row has no `name`")),
                };
                let mut lines = self.lines.clone().and(self.csv, &form.get_ref().only)?;
                let text = line.unwrap_or(&name).to_owned();
                if let Some(names) = each.or(self.table.form.get_ref().named_by.as_ref()) {
                    lines = lines.and_text(column(self.csv, names)?, &[text]);
                }
                let base = (rows.len() > first).then_some(first);
                rows.push(Row { name, form: form.clone(), lines, base });
            }
        }
        if rows.is_empty() {
            return Err(self.table.mistake("this table has no `rows`: write them, or `each_line`"));
        }
        Ok(rows)
    }

    /// Returns the rows that a quick run or a full run includes.
    fn kept<'r>(&self, rows: &'r [Row], is_quick: bool) -> Result<Vec<&'r Row>> {
        for (index, row) in rows.iter().enumerate() {
            if rows[..index].iter().any(|other| other.name == row.name) {
                let problem = format!("two rows have the name `{}`: a name tells rows apart", row.name);
                return Err(mistake(&row.form, problem));
            }
        }
        let Some(quick) = &self.table.form.get_ref().quick_rows else { return Ok(rows.iter().collect()) };
        if let Some(name) = quick.get_ref().iter().find(|name| rows.iter().all(|row| row.name != **name)) {
            return Err(mistake(quick, format!("no row has the name `{name}`")));
        }
        Ok(rows.iter().filter(|row| !is_quick || quick.get_ref().contains(&row.name)).collect())
    }

    /// Returns the CSV line that has a row's value in a column of the table.
    fn line(&self, of: &Spanned<ColumnForm>, row: &Row) -> Result<PublishedRow<'_>> {
        row.lines.clone().and(self.csv, &of.get_ref().only)?.line(self.csv).at(&row.form)
    }

    /// Returns the CSV column that has a row's value in a column of the table.
    fn printed<'a>(&'a self, of: &'a Spanned<ColumnForm>, row: &'a Row) -> Result<&'a str> {
        let by_row = row.form.get_ref().printed.get(&of.get_ref().key);
        let printed = by_row.or(of.get_ref().printed.as_ref());
        let missing = "neither the column nor the row says `printed`: name the CSV's column";
        column(self.csv, printed.ok_or_else(|| mistake(of, missing))?)
    }

    /// Returns the number that the CSV has for a row in a column of the table.
    fn number(&self, of: &Spanned<ColumnForm>, row: &Row) -> Result<Option<f64>> {
        let line = self.line(of, row)?;
        let ColumnForm { per, times, .. } = of.get_ref();
        let number = line.number(self.printed(of, row)?)?.map(|number| times.unwrap_or(1.0) * number);
        let Some(per) = per else { return Ok(number) };
        let divisor = line.number(column(self.csv, per)?)?;
        Ok(number.zip(divisor).map(|(number, divisor)| number / divisor))
    }

    /// Computes the published value of a row in a column from the numbers of the CSV.
    fn value(&self, of: &Spanned<ColumnForm>, row: &Row, base: &Row) -> Result<Option<f64>> {
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

    /// Returns the published standard deviation of a row, in percent.
    fn variation_percent(&self, row: &Row, base: &Row) -> Result<Option<f64>> {
        let Some(first) = self.columns.first() else { return Ok(None) };
        if let Some(variation) = &row.form.get_ref().variation {
            return self.line(first, row)?.number(column(self.csv, variation)?);
        }
        let Some(texts) = &self.table.form.get_ref().deviation_line else { return Ok(None) };
        let lines = row.lines.clone().and(self.csv, &Some(texts.clone()))?.lines(self.csv);
        let [line] = lines[..] else { return Ok(None) };
        let deviation = line.number(self.printed(first, row)?)?;
        Ok(deviation.zip(self.number(first, base)?).map(|(deviation, mean)| deviation / mean * 100.0))
    }

    /// Returns the simulation of a row.
    fn run(&self, row: &Row) -> Result<RunSpec> {
        let table = self.table.form.get_ref();
        let shared = table.run.as_ref().map(|run| run.get_ref().clone()).unwrap_or_default();
        let mut form = row.form.get_ref().run.over(&shared);
        for (key, name) in table.from_line.iter().flatten() {
            let line = row.lines.line(self.csv).at(&row.form)?;
            self.set_from(&mut form, key, line.text(column(self.csv, name)?)?).at(name)?;
        }
        let needed = |key: &str, value: Option<String>| {
            let problem = || format!("neither row `{}` nor its table has `{key}` in `run`", row.name);
            value.with_context(problem).at(&row.form)
        };
        let machine = self.beside(needed("machine", form.machine)?);
        let mut workload = needed("workload", form.workload)?;
        let policy = self.beside(needed("policy", form.policy)?);
        if let Some(path) = recording(&workload).and_then(Path::to_str)
            && self.table.files.is_users()
        {
            workload = format!("trace:{}", self.table.files.beside(path));
        }
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
            run.check().with_context(|| format!("row `{}`", row.name)).at(&row.form)?;
        }
        Ok(run)
    }

    /// Returns the path of a policy file or machine file that a user's study names. If `name` is not the name
    /// of a file, returns `name` unchanged.
    fn beside(&self, name: String) -> String {
        let is_file = self.table.files.is_users() && names_policy_file(&name);
        if is_file { self.table.files.beside(&name) } else { name }
    }

    /// Sets the setting `key` of the simulation to the value `text` from the CSV.
    fn set_from(&self, form: &mut RunForm, key: &str, text: &str) -> Result<()> {
        if key == "machine" {
            let machine = self.table.study.machines.get(text);
            form.machine = Some(machine.cloned().with_context(|| {
                format!("no machine stands for `{text}`: add it to [machines], with the machine to simulate")
            })?);
            return Ok(());
        }
        let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
        let number: u64 = text[text.len() - digits..].parse().ok().with_context(|| {
            format!("`{text}` does not end with a number, which `{key}` needs: choose lines by `only`")
        })?;
        let small = u32::try_from(number).ok().with_context(|| format!("`{text}` is too large for `{key}`"));
        match key {
            "batch" => form.batch = Some(small?),
            "high" => form.high = Some(small?),
            "cpus" => form.cpus = Some(small?),
            _ => _ = form.set.insert(key.to_owned(), number),
        }
        Ok(())
    }

    /// Sets the warm-up and the measured time of the last row in `cases`, if the table has rules for these
    /// times.
    fn measure(&self, cases: &mut [Case]) -> Result<()> {
        let form = self.table.form.get_ref();
        let Some((case, above)) = cases.split_last_mut() else { return Ok(()) };
        if form.warmup.is_none() && form.cpu_ms_min.is_none() {
            return Ok(());
        }
        let cpus = parse_machine(&machine_text(&case.run.machine)?, &case.run.machine)?.cpus();
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
