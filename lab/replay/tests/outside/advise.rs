//! Tests of advice on bundled recordings.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageset_replay::advise::examine;
use pageset_trace::{Event, LostEvents, TraceError, TraceInfo, TraceReader};

/// A reader that counts the events that it hands out.
struct Watched {
    reader: Box<dyn TraceReader>,
    handed_out: Arc<AtomicU64>,
}

impl TraceReader for Watched {
    fn info(&self) -> &TraceInfo {
        self.reader.info()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        let read = self.reader.read_block(events)?;
        self.handed_out.fetch_add(read as u64, Relaxed);
        Ok(read)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.reader.lost()
    }
}

#[test]
fn a_recording_is_read_once() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/k61_2c_unix_stream.pgtrace");
    let handed_out = Arc::new(AtomicU64::new(0));
    let open = || {
        let reader = pageset_trace::open(&path)?;
        Ok(Watched { reader, handed_out: Arc::clone(&handed_out) })
    };
    let examined = examine(open, |_, _, _, _| None, &mut ()).unwrap();
    let replayed = examined.replay.expect("it has all kinds of events");
    assert_eq!(handed_out.load(Relaxed), examined.survey.events);
    assert_eq!((replayed.events, replayed.lost), (examined.survey.events, examined.survey.lost));
    assert!(!examined.advice.forecasts.is_empty());
}
