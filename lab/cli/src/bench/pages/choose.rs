//! `pageset bench pages --choose` finds the order, the instructions (`kernel`) and the neighbourhood that
//! clear and copy huge pages fastest on this machine.

use anyhow::Result;
use pageset_measure::calibrate::{Calibration, Choice, RESIDENT_MIB, calibrate};
use pageset_measure::host;
use pageset_report::{Cell, Column, Format, Provenance, Row, Table, json_document};
use serde::Serialize;

use crate::bench::args::BenchPagesArgs;
use crate::invocation::Invocation;
use crate::output;

pub(crate) fn choose(args: &BenchPagesArgs, invocation: &Invocation) -> Result<()> {
    // Count the CPUs before this thread is bound to one CPU, because the thread sees only this CPU
    // afterwards.
    let machine = host::line();
    let calibration = calibrate()?;
    let document =
        CalibrationDocument { calibration, provenance: Provenance { machine, ..invocation.provenance() } };
    output::write(&args.output.target, |out| match args.output.format() {
        Format::Json => Ok(json_document(&document, out)?),
        format => Ok(format.exporter().export(&document.table(), out)?),
    })
}

/// The JSON document with the whole result.
#[derive(Serialize)]
struct CalibrationDocument {
    #[serde(flatten)]
    calibration: Calibration,
    provenance: Provenance,
}

impl CalibrationDocument {
    fn table(&self) -> Table {
        let columns = vec![
            Column::label("order", "order"),
            Column::label("kernel", "kernel"),
            Column::count("neighbourhood_bytes", "neighbourhood").with_unit("bytes"),
            Column::measure("clear_us", "clear").with_unit("us"),
            Column::measure("copy_us", "copy").with_unit("us"),
            Column::measure("cost_us", "cost").with_unit("us"),
            Column::count("samples", "samples"),
        ];
        let mut table = Table::new("Clearing and copying 2 MiB, with a touch around the target", columns);
        for row in &self.calibration.rows {
            table.push(Row::new([
                row.method.order.into(),
                row.method.kernel.into(),
                (row.method.neighbourhood_bytes as u64).into(),
                Cell::real(row.clear_us, 1),
                Cell::real(row.copy_us, 1),
                Cell::real(row.cost_us, 1),
                (row.samples as u64).into(),
            ]));
        }
        let Choice { order, kernel, neighbourhood_bytes } = self.calibration.chosen;
        table.note(format!("Chosen: {order}, {kernel}, neighbourhood {neighbourhood_bytes} bytes."));
        table.note(format!(
            "In a program: Method::new(VisitOrder::named(\"{order}\")?, Kernel::new(Isa::named(\"{kernel}\")?)?, \
             {neighbourhood_bytes}).choose()"
        ));
        table.note(format!(
            "Took {:.2} s, including the time to make {RESIDENT_MIB} MiB resident.",
            self.calibration.seconds
        ));
        if !self.calibration.is_huge {
            table.note("The system backs the pages with base pages, so all times include TLB misses.");
        }
        table.with_provenance(self.provenance.clone())
    }
}
