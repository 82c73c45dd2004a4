//! Metrics for programs that collect them.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use pageset_live::{Monitor, openmetrics, serve};

use super::TopArgs;
use super::signals::Signals;

pub(super) fn run(
    args: &TopArgs,
    address: SocketAddr,
    mut monitor: Monitor,
    signals: &Signals,
) -> Result<()> {
    let listener = TcpListener::bind(address).map_err(|error| {
        anyhow!("{address}: cannot listen: {error}; choose another address or port, 0 is any free one")
    })?;
    let address = listener.local_addr().context("the address is not known")?;
    if !signals.sleep(args.interval) {
        return Ok(());
    }
    let metrics = Arc::new(Mutex::new(openmetrics(&monitor.step()?)));
    let served = Arc::clone(&metrics);
    thread::spawn(move || {
        serve(&listener, || served.lock().unwrap_or_else(PoisonError::into_inner).clone());
    });
    let mut out = io::stdout().lock();
    writeln!(out, "metrics are at http://{address}/metrics")?;
    out.flush()?;
    while signals.sleep(args.interval) {
        let text = openmetrics(&monitor.step()?);
        *metrics.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
    Ok(())
}
