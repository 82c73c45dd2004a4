//! Lists the machines and workloads that can be simulated.

use anyhow::Result;
use pageset_report::Format;
use pageset_report::{Cell, Column, Row, Table, json_document};
use pageset_sim::MACHINES;
use pageset_study::load::{START_SPREAD_US, Workload};
use serde::Serialize;

use crate::options::OutputArgs;
use crate::output;

/// The JSON document with all machines and workloads.
#[derive(Debug, Serialize)]
struct Catalogue {
    machines: Table,
    workloads: Table,
    parameters: Table,
}

pub(super) fn print(args: &OutputArgs) -> Result<()> {
    let document = Catalogue { machines: machines(), workloads: workloads(), parameters: parameters() };
    let exporter = args.format().exporter();
    output::write(&args.target, |out| {
        if args.format() == Format::Json {
            return Ok(json_document(&document, out)?);
        }
        exporter.export(&document.machines, out)?;
        writeln!(out)?;
        exporter.export(&document.workloads, out)?;
        writeln!(out)?;
        Ok(exporter.export(&document.parameters, out)?)
    })
}

fn machines() -> Table {
    let columns = vec![
        Column::label("machine", "machine"),
        Column::count("cpus", "CPUs"),
        Column::count("nodes", "nodes"),
        Column::label("title", "what it is"),
    ];
    let mut table = Table::new("Machines", columns);
    for machine in MACHINES.iter().map(pageset_sim::machine::BundledMachine::parse) {
        let (cpus, nodes) = (u64::from(machine.cpus()), u64::from(machine.topology.nodes));
        table.push(Row::new([machine.name.into(), cpus.into(), nodes.into(), machine.title.into()]));
    }
    table
}

fn workloads() -> Table {
    let columns = vec![
        Column::label("workload", "workload"),
        Column::label("unit", "scored in"),
        Column::label("summary", "what it does"),
    ];
    let mut table = Table::new("Workloads", columns);
    for workload in Workload::ALL {
        table.push(Row::new([workload.name, workload.unit, workload.summary].map(Cell::from)));
    }
    table
}

fn parameters() -> Table {
    let columns = vec![
        Column::label("workload", "workload"),
        Column::label("parameter", "parameter"),
        Column::count("default", "default"),
        Column::label("meaning", "what it is"),
        Column::label("source", "where its default is from"),
    ];
    let mut table = Table::new("Parameters (--set KEY=VALUE)", columns);
    let of_workload =
        |workload: &'static Workload| workload.parameters.iter().map(|parameter| (workload.name, parameter));
    for (workload, parameter) in Workload::ALL.iter().flat_map(of_workload).chain([("all", &START_SPREAD_US)])
    {
        table.push(Row::new([
            workload.into(),
            parameter.key.into(),
            parameter.default.into(),
            parameter.meaning.into(),
            parameter.source.into(),
        ]));
    }
    table
}
