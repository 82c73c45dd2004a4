//! Measures how well a survey recognises waits for zone locks without call chains. The example surveys each
//! recording of `pageset record --stack` twice: with its call chains, and without its call chains.
//!
//! `cargo run --release -p pageset-replay --example callers -- FILE...`

use std::{error::Error, path::Path};

use pageset_replay::{SurveyOptions, ZoneLockWaits, survey};
use pageset_trace::{Event, EventKind, LostEvents, TraceError, TraceInfo, TraceReader, open};

/// A recording without its call chains.
struct WithoutChains(Box<dyn TraceReader>);

impl TraceReader for WithoutChains {
    fn info(&self) -> &TraceInfo {
        self.0.info()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        let read = self.0.read_block(events)?;
        let waits = events.iter_mut().filter(|event| event.kind == EventKind::ContentionBegin);
        waits.for_each(|event| event.order = 0);
        Ok(read)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.0.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.0.lost()
    }
}

fn zone_lock_waits(reader: &mut dyn TraceReader) -> Result<ZoneLockWaits, Box<dyn Error>> {
    let survey = survey(reader, &SurveyOptions::default(), |_| ())?;
    survey
        .kernel
        .zone_locks
        .waits
        .ok_or_else(|| "a recording does not have all events of `pageset record`".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| recording | waits by call chains | us | waits by what came next | us |");
    println!("|---|---:|---:|---:|---:|");
    for name in std::env::args().skip(1) {
        let path = Path::new(&name);
        let known = zone_lock_waits(open(path)?.as_mut())?;
        let inferred = zone_lock_waits(&mut WithoutChains(open(path)?))?;
        let us = |found: &ZoneLockWaits| found.wait_ns / 1000;
        let (known_us, inferred_us) = (us(&known), us(&inferred));
        println!("| {name} | {} | {known_us} | {} | {inferred_us} |", known.waits, inferred.waits);
    }
    Ok(())
}
