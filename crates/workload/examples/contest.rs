//! Every recording named, on Linux's allocators and ours: `cargo run --release -p pageset-workload --example contest -- FILES`.

use std::path::Path;

use pageset_core::policy::{LINUX_6_12, LINUX_6_18, LINUX_6_19};
use pageset_workload::contest::{Entrant, Script};
use pageset_workload::guess_layout;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let entrants = [LINUX_6_12, LINUX_6_18, LINUX_6_19]
        .map(|policy| Entrant::Linux(Box::new(policy)))
        .into_iter()
        .chain([Entrant::OwnedBlocks]);
    let entrants: Vec<_> = entrants.collect();
    println!(
        "recording,entrant,allocs,failures,visits,fallbacks,held_mean,at_hand,held_peak,held_idle,whole_end,whole_gone"
    );
    for path in std::env::args().skip(1) {
        let mut reader = pageset_trace::open(Path::new(&path))?;
        let machine = match reader.info().machine.clone() {
            Some(machine) => machine,
            None => guess_layout(&mut *reader)?,
        };
        let script = Script::read(&mut *reader, |_| ())?;
        for entrant in &entrants {
            let s = script.play(&machine, entrant)?;
            let name = Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            println!(
                "{name},{},{},{},{},{},{:.0},{:.0},{},{},{},{}",
                s.entrant,
                s.allocs,
                s.failures,
                s.shared_visits,
                s.fallbacks,
                s.held_mean,
                s.at_hand_mean,
                s.held_peak,
                s.held_idle,
                s.whole_at_end,
                s.whole_when_gone
            );
        }
    }
    Ok(())
}
