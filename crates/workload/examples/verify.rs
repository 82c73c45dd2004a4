//! Compares recordings with the policy of their kernel, one line of JSON each.
//!
//! ```text
//! cargo run --release --example verify -- [--mode step|blind|free] [--policy NAME] [--explain N] [--class NAME] FILE…
//! ```

use std::error::Error;
use std::time::Instant;

use pageset_core::Policy;
use pageset_workload::{Class, ExplainRequest, Mode, VerifyOptions, verify};

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = VerifyOptions::default();
    let (mut number, mut class, mut files) = (None, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--mode" => options.mode = Mode::named(&value()?).ok_or("a mode is step, blind or free")?,
            "--policy" => options.policy = Some(*Policy::named(&value()?).ok_or("no such policy")?),
            "--explain" => number = Some(value()?.parse()?),
            "--class" => class = Some(Class::named(&value()?).ok_or("no such class")?),
            _ => files.push(argument),
        }
    }
    options.explain = number.map(|number| ExplainRequest { number, class });
    for file in files {
        let mut reader = pageset_trace::open(file.as_ref())?;
        let begin = Instant::now();
        let verification = verify(reader.as_mut(), &options, |_| ())?;
        let rate = verification.events as f64 / begin.elapsed().as_secs_f64() / 1e6;
        println!("{}", serde_json::to_string(&verification)?);
        eprintln!("{file}: {rate:.1} million events/s");
        if let Some(explained) = &verification.explained {
            println!("{}: {}", explained.class, explained.what);
            explained.events.iter().for_each(|line| println!("{line}"));
        }
    }
    Ok(())
}
