//! Configures an instance, and notes the events and facts that the instance cannot record.

use std::{io, path::PathBuf};

use rustix::io::Errno;

use crate::clock;
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::instance::Instance;
use crate::probes;
use crate::tracefs::{self, Tracefs};
use pageset_trace::EventKind;
use pageset_trace::raw::Decoder;
use pageset_trace::raw::EventFormat;
use pageset_trace::raw::PageLayout;
use pageset_trace::raw::Symbols;
use pageset_trace::raw::{Callers, Filter, Need, PROBES, SPINNING, TRACEPOINTS, Tracepoint};

/// A configured instance, ready to be switched on.
pub(crate) struct Setup {
    pub(crate) layout: PageLayout,
    pub(crate) decoder: Decoder,
    /// Directories of the enabled events, below the instance.
    pub(crate) directories: Vec<PathBuf>,
    /// Names of the enabled events.
    pub(crate) recorded: Vec<String>,
    /// Events and facts that the instance will not record. Each entry has the reason.
    pub(crate) not_recorded: Vec<String>,
}

/// The events that an instance should record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventChoice<'a> {
    /// The kinds of events that the instance should record. `None` stands for all kinds of a recording.
    pub(crate) only: Option<&'a [EventKind]>,
    /// Whether to include events that are recorded only on request.
    pub(crate) with_faults: bool,
    /// Whether to record the call chains of waits.
    pub(crate) with_call_chains: bool,
}

impl EventChoice<'_> {
    fn has(self, tracepoint: &Tracepoint) -> bool {
        match self.only {
            Some(kinds) => kinds.contains(&tracepoint.kind),
            None => tracepoint.need != Need::Asked || self.with_faults,
        }
    }
}

/// Sets clock, buffers, CPUs and events.
///
/// # Errors
/// An error if an event that a recording needs is missing, or if the kernel refuses a setting.
pub(crate) fn set_up(
    tracefs: &Tracefs,
    instance: &Instance,
    cpus: &CpuList,
    buffer_bytes: u64,
    wanted: EventChoice<'_>,
) -> Result<Setup, RecordError> {
    instance.set("trace_clock", clock::NAME)?;
    // If the ring is full, the oldest events are overwritten, and the next page records this loss.
    drop(instance.set("options/overwrite", "1"));
    instance.set("tracing_cpumask", &cpus.mask())?;
    set_buffers(instance, cpus, buffer_bytes)?;

    let symbols = Symbols::read();
    let mut not_recorded = Vec::new();
    let (mut events, mut directories) = (Vec::new(), Vec::new());
    for tracepoint in TRACEPOINTS.into_iter().filter(|tracepoint| wanted.has(tracepoint)) {
        let directory = PathBuf::from("events").join(tracepoint.system).join(tracepoint.name);
        match switch_on(tracefs, instance, directory.clone(), &tracepoint, &symbols) {
            Ok(format) => {
                events.push((tracepoint, format));
                // Events that the kernel always records have no directory in an instance.
                directories.extend((tracepoint.system != "ftrace").then_some(directory));
            }
            Err(Missing(problem)) if tracepoint.need == Need::Required || wanted.only.is_some() => {
                return Err(RecordError::Refused {
                    problem: format!("{} cannot be recorded: {problem}", label(&tracepoint)),
                    remedy: "record under a kernel that has it".to_owned(),
                });
            }
            Err(Missing(problem)) => not_recorded.push(format!("{}: {problem}", label(&tracepoint))),
        }
    }
    if wanted.only.is_none() {
        match probe(tracefs, instance, &symbols) {
            Ok(probes) => {
                let group = PathBuf::from("events").join(probes::group(instance.name()));
                directories.extend(probes.iter().map(|(probe, _)| group.join(probe.name)));
                events.extend(probes);
            }
            Err(problem) => not_recorded.push(format!("bulk allocations: {problem}")),
        }
    }

    let recorded = events.iter().map(|(tracepoint, _)| tracepoint.kind.name().to_owned()).collect();

    let (page, event) = (tracefs.path("events/header_page"), tracefs.path("events/header_event"));
    let layout = PageLayout::parse(&tracefs::read(&page)?, &tracefs::read(&event)?)
        .map_err(|problem| RecordError::unknown(page, problem))?;
    let unknown = |problem| RecordError::unknown(tracefs.path("events"), problem);
    let mut decoder = Decoder::new(&events, symbols).map_err(unknown)?;
    if wanted.with_call_chains {
        match record_call_chains(tracefs, instance) {
            Ok((format, callers)) => decoder = decoder.with_stacks(&format, callers).map_err(unknown)?,
            // If the caller wants only certain events, a missing event is an error.
            Err(error) if wanted.only.is_some() => return Err(error),
            Err(error) => not_recorded.push(error.to_string()),
        }
    }
    Ok(Setup { layout, decoder, directories, recorded, not_recorded })
}

/// Makes the kernel write a call chain after the beginning of each wait for a spinning lock. Source: the
/// kernel's documentation "Event Tracing", section "Event triggers".
fn record_call_chains(tracefs: &Tracefs, instance: &Instance) -> Result<(EventFormat, Callers), RecordError> {
    let refused = |problem: &str, remedy: &str| RecordError::Refused {
        problem: format!("call chains cannot be recorded: {problem}"),
        remedy: remedy.to_owned(),
    };
    let callers = Callers::read().ok_or_else(|| {
        refused(
            "addresses of functions are hidden",
            "run `sysctl kernel.kptr_restrict=1`, and record as root",
        )
    })?;
    let text = tracefs::read(&tracefs.path("events/ftrace/kernel_stack/format"))?;
    let format = EventFormat::parse(&text)
        .map_err(|problem| RecordError::unknown(tracefs.path("events/ftrace/kernel_stack"), problem))?;
    instance
        .set("events/lock/contention_begin/trigger", &format!("stacktrace if {SPINNING}"))
        .map_err(|error| refused(&error.to_string(), "record without them"))?;
    Ok((format, callers))
}

fn set_buffers(instance: &Instance, cpus: &CpuList, bytes: u64) -> Result<(), RecordError> {
    let kibibytes = bytes.div_ceil(1024).max(1);
    for cpu in cpus.iter() {
        let path = instance.path(format!("per_cpu/cpu{cpu}/buffer_size_kb"));
        tracefs::write(&path, &kibibytes.to_string()).map_err(|error| match &error {
            RecordError::Io { source, .. } if is_too_large(source) => RecordError::Refused {
                problem: format!("the kernel has not {} for the buffer of each CPU", amount(kibibytes)),
                remedy: "make --buffer smaller".to_owned(),
            },
            _ => error,
        })?;
    }
    Ok(())
}

/// An amount of memory in the largest unit that divides it.
fn amount(kibibytes: u64) -> String {
    match kibibytes {
        _ if kibibytes.is_multiple_of(1 << 20) => format!("{} GiB", kibibytes >> 20),
        _ if kibibytes.is_multiple_of(1 << 10) => format!("{} MiB", kibibytes >> 10),
        _ => format!("{kibibytes} KiB"),
    }
}

fn is_too_large(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::NOMEM | Errno::INVAL | Errno::OVERFLOW | Errno::RANGE))
}

/// The reason why an event is not recorded.
struct Missing(String);

/// Enables an event. Returns the format of its records.
fn switch_on(
    tracefs: &Tracefs,
    instance: &Instance,
    directory: PathBuf,
    tracepoint: &Tracepoint,
    symbols: &Symbols,
) -> Result<EventFormat, Missing> {
    // The formats of events that the kernel always records are only in the main tracing directory.
    let text = std::fs::read_to_string(tracefs.path(directory.join("format"))).map_err(|error| {
        Missing(match error.kind() {
            io::ErrorKind::NotFound => "this kernel does not have it".to_owned(),
            _ => format!("its format cannot be read: {error}"),
        })
    })?;
    let format = EventFormat::parse(&text).map_err(Missing)?;
    if let Some(filter) = condition(tracepoint.filter, symbols)? {
        instance.set(directory.join("filter"), &filter).map_err(|error| Missing(error.to_string()))?;
    }
    // An event that the kernel always records need not be enabled.
    if tracepoint.system != "ftrace" {
        instance.set(directory.join("enable"), "1").map_err(|error| Missing(error.to_string()))?;
    }
    Ok(format)
}

fn condition(filter: Filter, symbols: &Symbols) -> Result<Option<String>, Missing> {
    match filter {
        Filter::All => Ok(None),
        Filter::Where(condition) => Ok(Some(condition.to_owned())),
        Filter::PageSetWork => {
            let known = [symbols.vmstat_update, symbols.lru_add_drain_per_cpu].into_iter().flatten();
            let conditions: Vec<_> = known.map(|function| format!("function == {function:#x}")).collect();
            if conditions.is_empty() {
                return Err(Missing("addresses of functions are hidden (kernel.kptr_restrict)".to_owned()));
            }
            Ok(Some(conditions.join(" || ")))
        }
    }
}

fn probe(
    tracefs: &Tracefs,
    instance: &Instance,
    symbols: &Symbols,
) -> Result<Vec<(Tracepoint, EventFormat)>, String> {
    let function = symbols.bulk_allocator.ok_or("the function is not in /proc/kallsyms")?;
    probes::make(tracefs, instance.name(), function)?;
    let group = PathBuf::from("events").join(probes::group(instance.name()));
    let switch_on = |probe: Tracepoint| {
        let format = switch_on(tracefs, instance, group.join(probe.name), &probe, symbols);
        format.map(|format| (probe, format)).map_err(|Missing(problem)| problem)
    };
    PROBES.into_iter().map(switch_on).collect()
}

fn label(tracepoint: &Tracepoint) -> String {
    format!("{}:{}", tracepoint.system, tracepoint.name)
}
