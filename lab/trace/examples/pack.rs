//! Converts a trace of any known format to a native file, and measures the speed of reading the trace and the
//! native file.
//!
//! ```text
//! cargo run --release -p pageset-trace --example pack -- IN OUT.pgtrace [LEVEL]
//! ```
//! Prints the sizes of the trace and of the native file. Opens and reads each file five times, and prints the
//! events per second of the fastest reading. During these readings, the files are in the page cache.

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::BufWriter,
    path::{Path, PathBuf},
    time::Instant,
};

use pageset_trace::{TraceError, WriteOptions, convert, open};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: pack IN OUT.pgtrace [LEVEL]".into());
    };
    let level = arguments.next().and_then(|level| level.to_str()?.parse().ok()).unwrap_or(19);
    let mut reader = open(&from)?;
    let out = BufWriter::new(File::create(&to)?);
    let summary = convert(reader.as_mut(), out, WriteOptions::new().level(level), |_| ())?;
    println!("{}: {} events, lost {:?}", to.display(), summary.events, summary.lost);
    for path in [&from, &to] {
        let best = (0..5).map(|_| events_per_second(path)).collect::<Result<Vec<_>, _>>()?;
        let best = best.into_iter().fold(0.0, f64::max);
        println!("{:9} bytes, {:6.1} M events/s  {}", fs::metadata(path)?.len(), best / 1e6, path.display());
    }
    Ok(())
}

/// Opens and reads the whole trace. Returns the number of events read per second.
fn events_per_second(path: &Path) -> Result<f64, TraceError> {
    let start = Instant::now();
    let mut reader = open(path)?;
    let mut events = Vec::new();
    let mut count = 0;
    while reader.read_block(&mut events)? > 0 {
        count += events.len();
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}
