//! The page-fault comparison on an Altix with 512 CPUs, September 2005: Hugh Dickins' page locking, Christoph
//! Lameter's atomic operations, and these with deltas for the counters.
//!
//! `printed` has the published text's rows, `runs` simulates, `fit` chooses the one fitted number, `tables`
//! puts our values beside the printed ones. `threads` asks the printed rows how many threads ran. `deltas`
//! tests the published text's explanation of the loss by deltas, `predictions` T1 to T5 of the specification.
//! `matrix` is a table that no text has, `ahead` has the published text's promises, `figures` draws.

mod ahead;
mod deltas;
mod figures;
mod fit;
mod matrix;
mod predictions;
mod printed;
mod runs;
mod tables;
mod threads;

use anyhow::{Context as _, Result};
use pageset_report::Progress;
use pageset_sim::Machine;

use super::study::{Findings, Options, Study};
use printed::{MACHINE, THREADS_OF_LISTING};
use runs::Runs;

/// The study.
#[derive(Debug)]
pub(crate) struct PageFault;

impl Study for PageFault {
    fn name(&self) -> &'static str {
        "page-fault"
    }

    fn summary(&self) -> &'static str {
        "page locking, atomic operations and deltas on 512 CPUs, 2005"
    }

    fn figures(&self) -> Vec<&'static str> {
        figures::NAMES.to_vec()
    }

    fn has_seeds(&self) -> bool {
        false
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let machine = Machine::named(MACHINE).context("the machine is bundled")?;
        let rows = printed::rows()?;
        let fault_ns = fit::fault_ns(&machine, &rows)?;
        let mut keys = tables::keys(&rows);
        keys.extend(predictions::keys(options.is_quick));
        keys.extend(matrix::keys(options.is_quick));
        keys.extend(deltas::keys(&rows, options.is_quick));
        keys.extend(ahead::keys(options.is_quick));
        let runs = Runs::all(&machine, fault_ns, keys, options.jobs, progress)?;
        let matrix = matrix::Matrix::new(&runs, options.is_quick)?;
        let deltas = deltas::Deltas::new(&rows, &runs, options.is_quick)?;
        let promises = ahead::Promises::new(&runs, options.is_quick)?;
        let score = tables::Score::new(&rows, &runs)?;
        let mut explanations = score.sentences();
        explanations.extend(predictions::sentences(&runs, options.is_quick)?);
        explanations.extend(matrix.sentences());
        explanations.push(deltas.sentence());
        explanations.push(promises.sentence());
        explanations.extend(options.reasons(&EXPLANATIONS));
        Ok(Findings {
            tables: tables::comparisons(&rows, &runs, fault_ns)?,
            more: [threads::table(&rows), deltas.table(), matrix.table()]
                .into_iter()
                .chain(promises.tables())
                .collect(),
            timeline: None,
            figures: figures::all(&rows, &runs, &matrix, &promises)?,
            notes: notes(fault_ns),
            explanations,
            machine: format!("{}: {}", machine.name, machine.title),
            policies: Vec::new(),
            seeds: None,
        })
    }
}

/// The meaning of the simulated parts.
fn notes(fault_ns: f64) -> Vec<String> {
    vec![
        "Rows are numbers of threads. All of ours is simulated: the fault engine, on the allocator of this project, in \
         virtual time, with the costs of machines/altix-512.toml, most of which are guesses."
            .to_owned(),
        format!(
            "One number is fitted, on the row of 1 thread: the private time of a fault, {fault_ns:.0} ns. Nothing is \
             fitted on any other row."
        ),
        "Page locking is P1,V1,R1, atomic operations P2,V1,R1, deltas P2,V1,R2. The counters are on mmap_sem's line \
         (R1 of the specification), and so is what the address space remembers of the area used last, which until Linux \
         3.15 each fault of another thread overwrote; that it is on this line is a guess."
            .to_owned(),
        "Each thread touches a few thousand pages on a machine that is as much smaller, so that as much memory is \
         remote; touching and teardown are multiplied by what was left out."
            .to_owned(),
        format!(
            "A row `n, {THREADS_OF_LISTING} run` supposes that only {THREADS_OF_LISTING} threads ran, each with its \
             n-th part of the memory, and that the number of faults was computed all the same."
        ),
    ]
}

/// Explanations that the tables do not show themselves.
const EXPLANATIONS: [&str; 6] = [
    "Bandwidth is not charged. Two CPUs of a node that did nothing but clear as fast as the machine file says would read \
     and write 8.2 GB/s, and the bus that they share has 6.4 GB/s (general knowledge of the Itanium 2); they clear for half \
     of their time at most, so a little is missing in rows of 2 to 16 threads, and nothing where all wait for one line. Nor \
     are the atomics of teardown charged: one thread is left then, which has the line to itself.",
    "From 128 to 512 threads the text has both linear scaling and a constant number of busy CPUs. A line that all threads \
     write cannot scale; threads that do not wait for it would be busy. Nothing in the model gives both, unless no more \
     than 128 threads ran: see the table of that name.",
    "Peak at 16: there 16 private times take as long as what all threads write to one line, in one brick. From \
     then on the line decides: each further router on its way makes it slower.",
    "Busy CPUs: threads that wait for a line are busy; the last thread, which gives everything back, is alone. So the \
     share of busy CPUs is that of touching in the whole. That is the residue of about 1 us a page in the specification: \
     the allocator's own cost of a free and a frame's metadata coming from another node give two thirds of it here.",
    "Starting threads is nearly free here: 40 us each, a guess. The User column says otherwise: if threads are created one after the other and \
     spin until all are there, what it has beyond the rows of few threads is 4 to 7 ms for each thread, most of a second \
     for 128, 5 % of the wall time of 64 GB with 128 threads and more where it is shorter. It is not in the model, since it \
     would be fitted on the rows it explains.",
    "Deltas: with the counters on mmap_sem's line they take two of five writes of that line away, so faults become faster. \
     With a line of their own the counters do not matter, since nobody waits for them. Nor is the printed loss a loss of CPU \
     time alone: with 64 threads CPU time per fault rises by half; with 512 it falls while wall time rises, and User time is 9 \
     times as long. No wait for a line or a link gives both. We cannot explain it.",
];
