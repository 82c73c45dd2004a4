//! Reads events in the kernel's binary form, from the running kernel or from files of other recorders.
//!
//! `event_format` finds an event's fields with the kernel's own description. `ring_page` reads a page of a
//! CPU's ring, and `ring_counts` reads the kernel's counts of losses. `catalogue` lists the events that a
//! trace can hold, and `decode` turns records into events. `symbols` finds the functions whose addresses
//! events have. `callers` finds the waiter and the call site in a call chain. `kallsyms` parses the kernel's
//! table of functions for `symbols` and `callers`.

mod callers;
mod catalogue;
mod decode;
mod event_format;
mod kallsyms;
mod ring_counts;
mod ring_page;
mod symbols;

pub use callers::{CallStack, Callers};
pub use catalogue::{Filter, Need, PROBES, SPINNING, Slot, TRACEPOINTS, Tracepoint};
pub use decode::{Decoder, Waits};
pub use event_format::{EventFormat, Field};
pub use ring_counts::RingCounts;
pub use ring_page::{Damaged, Missed, PageLayout, Record, Records};
pub use symbols::Symbols;
