//! Events as the kernel writes them, for whoever reads them from the running kernel or from files of other recorders.
//!
//! `event_format` says where an event's fields lie, by the kernel's own description, `ring_page` takes a page of a CPU's ring
//! apart, `ring_counts` says what the kernel lost of it, `catalogue` names the events that a trace has a place for, `decode`
//! makes trace events of records, `symbols` knows the functions that events name by address, and `callers` those that wait for a
//! zone's lock, both by `kallsyms`.

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
