//! Compares orders: sequences for clearing or copying the base pages of a huge page. The tables show the
//! published effects of a change of the order beside the effects of this change in a model of the published
//! machines' caches. The published values are in `data/tables/huge-copy`.

use anyhow::{Context as _, Result, ensure};
use pageset_pageops::VisitOrder;
use pageset_report::comparison::{Comparison, Pair, Quantity};
use pageset_report::{Cell, Column, Origin, Row, Table};
use pageset_study::huge_copy::{Chip, PARTS, PageOperation, Played, Walk, play};
use pageset_study::jobs::Stage;

use super::chip::chip_named;
use crate::published::{PublishedRow, published};

/// A change from one order of copying or clearing to another, and the published effects of this change.
struct Change {
    name: String,
    chip: Chip,
    operation: PageOperation,
    walk: Walk,
    base: (VisitOrder, Option<usize>),
    order: (VisitOrder, Option<usize>),
    /// The published effects of the change, in percent.
    throughput: Option<f64>,
    user: Option<f64>,
    system: Option<f64>,
    ipc: Option<f64>,
    /// Whether the model's cost of a jump was computed from the published effects of this change.
    is_given: bool,
}

/// A change of the order, and the model's results for both orders.
pub(super) struct Modelled {
    change: Change,
    base: Played,
    changed: Played,
}

/// Number of changes of the order that [`model`] simulates.
pub(super) const CHANGES: usize = 11;

/// A changed assumption of the model: the name of the variant, and a function that changes the chip.
type Variant = (&'static str, fn(&mut Chip));

/// Variants of the row `2018 Haswell copy`. Each variant changes at least one assumption of the model.
const VARIANTS: [Variant; 4] = [
    ("  36 on one socket", |chip| chip.processes = 36),
    ("  a source for each", |chip| chip.shares_source = false),
    ("  random eviction", |chip| chip.ways = 1),
    ("  both of these", |chip| (chip.shares_source, chip.ways) = (false, 1)),
];
/// The row of `orders.csv` that has the variants.
const VARIED: &str = "2018 Haswell copy";
/// Name of the row for the machine that runs this program.
pub(super) const HERE: &str = "copy, 2-CPU guest";

impl Change {
    fn read(row: PublishedRow<'_>) -> Result<Self> {
        let order = |order, target| -> Result<_> {
            let name = row.text(order)?;
            let order = VisitOrder::named(name).with_context(|| format!("no order is `{name}`"))?;
            Ok((order, row.number(target)?.map(|target| target as usize)))
        };
        let ratio = match (row.number("ipc_before")?, row.number("ipc_after")?) {
            (Some(before), Some(after)) => Some((after / before - 1.0) * 100.0),
            _ => None,
        };
        let of_wall = row.number("wall_percent")?.map(|wall| (100.0 / (100.0 + wall) - 1.0) * 100.0);
        let chip = row.text("chip")?;
        Ok(Self {
            name: row.text("row")?.to_owned(),
            chip: chip_named(chip)?,
            operation: if row.text("operation")? == "copy" {
                PageOperation::Copy
            } else {
                PageOperation::Clear
            },
            walk: if row.text("walk")? == "down" { Walk::Down } else { Walk::Up },
            base: order("base", "base_target")?,
            order: order("order", "order_target")?,
            throughput: row.number("throughput_percent")?.or(of_wall),
            user: row.number("user_percent")?,
            system: row.number("system_percent")?,
            ipc: ratio,
            is_given: chip == "genoa-1",
        })
    }

    /// Returns a change from page-by-page copying to the order of 2018 that has no published effects.
    fn unpublished(name: &str, chip: Chip) -> Self {
        Self {
            name: name.to_owned(),
            chip,
            operation: PageOperation::Copy,
            walk: Walk::Up,
            base: (VisitOrder::PageByPage, Some(0)),
            order: (VisitOrder::Converge2018, Some(0)),
            throughput: None,
            user: None,
            system: None,
            ipc: None,
            is_given: false,
        }
    }

    fn all() -> Result<Vec<Self>> {
        let mut changes = Vec::new();
        for row in published!("huge-copy/orders.csv")?.rows() {
            let change = Self::read(row)?;
            let chip = change.chip.clone();
            let is_varied = change.name == VARIED;
            changes.push(change);
            for (name, vary) in VARIANTS.iter().filter(|_| is_varied) {
                let mut chip = chip.clone();
                vary(&mut chip);
                changes.push(Self::unpublished(name, chip));
            }
        }
        changes.push(Self::unpublished(HERE, chip_named("genoa-guest-2")?));
        ensure!(changes.len() == CHANGES, "data/tables/huge-copy/orders.csv must have six rows");
        Ok(changes)
    }
}

/// Simulates each change from one order of copying to another: the order before the change, and the order
/// after it.
pub(super) fn model(stage: &mut Stage<'_>) -> Result<Vec<Modelled>> {
    let mut all = Vec::new();
    for change in Change::all()? {
        let played = |(order, target)| play(&change.chip, change.operation, order, target, change.walk);
        let (base, changed) = (played(change.base), played(change.order));
        all.push(Modelled { change, base, changed });
        stage.step()?;
    }
    Ok(all)
}

impl Modelled {
    /// Returns the size of the caches that one process can use, in MiB.
    fn share_mib(&self) -> f64 {
        let chip = &self.change.chip;
        (chip.shared_kib as f64 / chip.processes as f64 + chip.own_kib as f64) / 1024.0
    }

    fn throughput(&self) -> f64 {
        self.base.page_us() / self.changed.page_us() * 100.0
    }
}

/// Makes the table that compares the published effects of each change with the model's effects.
pub(super) fn comparison(all: &[Modelled]) -> Comparison {
    let quantities = ["throughput", "user time", "system time", "IPC"];
    let quantity = |name: &str| Quantity::relative(&name.replace(' ', "_"), name, "old order = 100", 0);
    let mut table = Comparison::new(
        "caches",
        "Effect of another order, published and in the model",
        "a model of the caches, data/tables/huge-copy/caches.csv",
        quantities.map(quantity).to_vec(),
    );
    table.fitted_on("time to write a word, on the user time of 2023 Milan with the old order");
    table.fitted_on("price of a jump, on 2026 Genoa");
    for one in all.iter().filter(|one| one.change.published().iter().any(Option::is_some)) {
        let change = &one.change;
        let origin = if change.is_given { Origin::Fitted } else { Origin::Simulated };
        let base = change.published().map(|value| Pair::new(value.map(|_| 100.0), Some(100.0), origin));
        let base = table.push_base(format!("{}, {}", change.name, change.base.0.name()), base.to_vec());
        let of = |changed: f64, base: f64| changed / base * 100.0;
        let ours = [
            one.throughput(),
            of(one.changed.user_us, one.base.user_us),
            of(one.changed.system_us, one.base.system_us),
            one.throughput(),
        ];
        let pairs = std::iter::zip(change.published(), ours);
        let pairs =
            pairs.map(|(value, ours)| Pair::new(value.map(|value| 100.0 + value), Some(ours), origin));
        table.push(format!("  {}", change.order.0.name()), base, pairs.collect());
    }
    table
}

impl Change {
    fn published(&self) -> [Option<f64>; 4] {
        [self.throughput, self.user, self.system, self.ipc]
    }
}

/// Makes a table with a row for each change from one visit order to another. A row shows how the change
/// affects throughput. `measured_percent` is the measured change of the throughput on this machine.
pub(super) fn winners(all: &[Modelled], measured_percent: f64) -> Table {
    let mut table = Table::new(
        "Which order wins: change of the throughput in percent",
        vec![
            Column::label("cache", ""),
            Column::label("new_order", "new order"),
            Column::ratio("share_mib", "cache each").with_unit("MiB"),
            Column::ratio("old_hits_percent", "hits, old").with_unit("%"),
            Column::ratio("new_hits_percent", "hits, new").with_unit("%"),
            Column::ratio("published", "printed"),
            Column::ratio("model", "model"),
            Column::ratio("measured", "measured"),
        ],
    );
    for one in all {
        let (change, is_here) = (&one.change, one.change.name == HERE);
        let order = change.order.0.name().split('-').next().unwrap_or_default();
        table.push(Row::new([
            change.name.as_str().into(),
            order.into(),
            Cell::real(one.share_mib(), 2),
            Cell::real(one.base.hit_share() * 100.0, 0),
            Cell::real(one.changed.hit_share() * 100.0, 0),
            Cell::real(change.throughput, 1),
            Cell::real(one.throughput() - 100.0, 1),
            Cell::real(is_here.then_some(measured_percent), 1),
        ]));
    }
    table.note(
        "Cache each: size of the caches that one process can use. Hits: base pages that a cache still has when the program \
         writes them, with the old and the new order.",
    );
    table.note(
        "Page: page-by-page. Converge: converge-2018. The old order of Broadwell is converge-2018 with a wrong target: \
         the program writes from the end, and the kernel expects the begin.",
    );
    table
}

/// Makes a table of the cache hits of the program's writes, for two orders of the writes, on the processor of
/// 2018.
pub(super) fn hits() -> Result<Table> {
    let mut columns = vec![Column::label("order", "")];
    columns.extend((1..=PARTS).map(|part| {
        let heading = format!("{part}/{PARTS}");
        Column::ratio(&format!("part_{part}"), &heading).with_unit("%")
    }));
    let mut table =
        Table::new("Hits of the writes to a cleared page, by their order (haswell-ep-36)", columns);
    let chip = chip_named("haswell-ep-36")?;
    for (walk, name) in [(Walk::Up, "from begin to end"), (Walk::Mixed, "mixed")] {
        for order in VisitOrder::ALL {
            let played = play(&chip, PageOperation::Clear, order, walk.pages().first().copied(), walk);
            let hits = played.hits.map(|hits| Cell::real(hits * 100.0, 0));
            let name = Cell::from(format!("{}, {name}", order.name()));
            table.push(Row::new([name].into_iter().chain(hits)));
        }
    }
    Ok(table)
}

/// Makes a table of the cache hits of the program's writes, on the processor of 2018 with several sizes of
/// the last-level cache.
pub(super) fn rooms() -> Result<Table> {
    let mut table = Table::new(
        "Cache of a process, and hits of the writes to a cleared page (as haswell-ep-18)",
        vec![
            Column::ratio("room_pages", "cache each").with_unit("huge pages"),
            Column::ratio("page_by_page_percent", "page-by-page").with_unit("% hits"),
            Column::ratio("converge_2018_percent", "converge-2018").with_unit("% hits"),
            Column::ratio("throughput_percent", "throughput").with_unit("change, %"),
        ],
    );
    let chip = chip_named("haswell-ep-18")?;
    for room in [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0] {
        let shared_kib = (room * 2048.0 * chip.processes as f64) as usize;
        let chip = Chip { shared_kib, ..chip.clone() };
        let [base, changed] = [VisitOrder::PageByPage, VisitOrder::Converge2018]
            .map(|order| play(&chip, PageOperation::Clear, order, Some(0), Walk::Up));
        table.push(Row::new([
            Cell::real(room, 2),
            Cell::real(base.hit_share() * 100.0, 0),
            Cell::real(changed.hit_share() * 100.0, 0),
            Cell::real((base.page_us() / changed.page_us() - 1.0) * 100.0, 1),
        ]));
    }
    Ok(table)
}
