//! The study of page faults on an Altix with 512 CPUs, published in September 2005. The study compares Hugh
//! Dickins' page locking, Christoph Lameter's atomic operations, and atomic operations with per-task counts
//! (*deltas*).
//!
//! `printed` has the rows of the published text. `runs` does the simulations. `fit` chooses the only fitted
//! number. `tables` compares simulated values with printed values. `threads` estimates how many threads ran
//! when the rows were measured. `deltas` tests the published explanation of why deltas made the kernel
//! slower. `predictions` tests the predictions T1 to T5 of the specification. `matrix` makes a table that was
//! not published. `ahead` tests promises of the published text. `figures` draws the figures.

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

/// Returns notes on the simulation of the values.
fn notes(fault_ns: f64) -> Vec<String> {
    vec![
        "The study shows how the rates of page faults change with the number of threads. It does not show \
         measurements of a machine."
            .to_owned(),
        "A row is a number of threads. All of our values are simulated: the fault engine runs on the \
         allocator of this project in virtual time. The costs are in machines/altix-512.toml, and most of \
         these costs are guesses."
            .to_owned(),
        format!(
            "One number is fitted: the time of a fault without any wait, {fault_ns:.0} ns, on the row of 1 \
             thread. No number is fitted on any other row."
        ),
        "Page locking is P1,V1,R1, atomic operations P2,V1,R1, deltas P2,V1,R2. The counters are on the \
         cache line of mmap_sem (R1 of the specification). The address space also remembers the area that \
         was used last. Until Linux 3.15 each fault of another thread overwrote the remembered area. Guess: \
         the remembered area is on the cache line of mmap_sem too."
            .to_owned(),
        "Each thread touches a few thousand pages. The simulated machine's memory is smaller in the same \
         proportion, so that the same part of the pages is on other nodes. The times of touching and \
         teardown are scaled up to all pages."
            .to_owned(),
        format!(
            "A row `n, {THREADS_OF_LISTING} run` assumes that only {THREADS_OF_LISTING} threads ran, each with 1/n of \
             the memory, and that the program computed the number of faults as if n threads had run."
        ),
    ]
}

/// Explanations of the differences between simulated and printed values.
const EXPLANATIONS: [&str; 6] = [
    "The simulation does not limit bandwidth. If two CPUs of a node only clear pages, as fast as the machine \
     file says, the two CPUs need 8.2 GB/s. The bus of a node has 6.4 GB/s (general knowledge of the Itanium \
     2). CPUs clear for at most half of the time. So our values are slightly too fast in rows of 2 to 16 \
     threads, and not in rows where all threads wait for one line. In the simulation, the atomic operations \
     of teardown cost nothing, because only one thread is left when memory is torn down.",
    "From 128 to 512 threads the published text has both linear scaling and a constant number of busy CPUs. \
     If all threads write one line, the rate cannot scale. If the threads do not wait for a line, more CPUs \
     would be busy. The model shows linear scaling and a constant number of busy CPUs only if no more than \
     128 threads ran; a table compares both numbers of threads.",
    "Peak at 16 threads: 16 threads of one brick (a group of nodes) fault as fast as the cache line that all \
     threads write can move. With more threads this line limits the rate, and each further router on the way \
     makes the line slower.",
    "Busy CPUs: threads that wait for a cache line count as busy. The last thread tears down the memory \
     alone. So the number of busy CPUs tells what share of the time the threads touched pages. The time of \
     teardown is what the specification calls the residue: about 1 us for each page. The simulation explains \
     two thirds of the residue: the allocator's cost of a free, and fetching a frame's metadata from another \
     node.",
    "In the simulation, starting a thread takes only 40 us, a guess. The published User column shows more: \
     if threads are created one after the other and spin until all exist, the User time beyond that of rows \
     with few threads is 4 to 7 ms for each thread. With 128 threads, all threads together spend most of a \
     second in this way, which is 5 % of the wall time of 64 GB. The share is larger if the wall time is \
     shorter. The model leaves the time to start threads out, because this time would have to be fitted on \
     the rows that it explains.",
    "Deltas: if the counters are on the line of mmap_sem, deltas remove two of five writes of that line, so \
     faults become faster. If the counters have a line of their own, deltas change nothing, because no \
     thread waits for the line of the counters. The printed loss is not only a loss of CPU time: with 64 \
     threads, CPU time per fault rises by half. With 512 threads, CPU time per fault falls while wall time \
     rises, and User time is 9 times as long. Waits for a cache line or a link do not explain both changes \
     of CPU time. The cause of this loss is not known.",
];
