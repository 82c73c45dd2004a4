//! Converts a recording's events to record batches.
//!
//! An event has the columns below. A column is null if the event's kind does not have the value.
//!
//! | column | type | what it is |
//! |---|---|---|
//! | `ts_ns` | u64 | when, in nanoseconds of the recording's clock |
//! | `kind` | text, by number | the kernel's name of the tracepoint |
//! | `cpu` | u16 | the CPU |
//! | `pid` | u32 | the thread that ran; 0 is the idle task |
//! | `pfn` | u64 | the page frame; null for a failed allocation |
//! | `order` | u8 | the block has 2^order frames |
//! | `migratetype` | i8 | the kernel's number |
//! | `gfp` | u32 | allocation flags in the recorded kernel's numbering |
//! | `value` | u64 | another value, by kind: a lock, function or fault address, frames, a pid, a node, a mark, a state |
//! | `fits_page_set` | bool | for a block that left a zone: whether page sets hold such blocks |
//! | `fallback_order`, `fallback_migratetype` | u8, i8 | the free block that served a request of another type |
//! | `caller` | text, by number | the waiter for a lock, if call chains were recorded |
//! | `irq_flags`, `preempt` | u8 | interrupt state, depth of disabled preemption |

use std::sync::{Arc, LazyLock};

use anyhow::Result;
use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::{Int8Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, RecordBatch, RecordBatchReader, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pageset_trace::{Caller, Event, EventKind, MIGRATETYPE_NONE, TraceReader};

/// The batches of a recording. Each batch has at most [`BLOCK_EVENTS_MAX`](pageset_trace::BLOCK_EVENTS_MAX)
/// events. The iterator ends after an error.
pub struct Batches<R> {
    reader: R,
    events: Vec<Event>,
    has_ended: bool,
}

impl<R: TraceReader> Batches<R> {
    /// Makes batches of the remaining events of the reader.
    pub const fn new(reader: R) -> Self {
        Self { reader, events: Vec::new(), has_ended: false }
    }
}

impl<R: TraceReader> Iterator for Batches<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.reader.read_block(&mut self.events);
        self.has_ended = !matches!(read, Ok(1..));
        let batch = match read {
            Ok(0) => return None,
            Ok(_) => batch(&self.events),
            Err(error) => Err(error.into()),
        };
        Some(batch.map_err(|error| ArrowError::ExternalError(error.into())))
    }
}

impl<R: TraceReader> RecordBatchReader for Batches<R> {
    fn schema(&self) -> SchemaRef {
        schema()
    }
}

/// The columns of every recording.
#[must_use]
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let name = || DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8));
        Arc::new(Schema::new(vec![
            Field::new("ts_ns", DataType::UInt64, false),
            Field::new("kind", name(), false),
            Field::new("cpu", DataType::UInt16, false),
            Field::new("pid", DataType::UInt32, false),
            Field::new("pfn", DataType::UInt64, true),
            Field::new("order", DataType::UInt8, true),
            Field::new("migratetype", DataType::Int8, true),
            Field::new("gfp", DataType::UInt32, true),
            Field::new("value", DataType::UInt64, true),
            Field::new("fits_page_set", DataType::Boolean, true),
            Field::new("fallback_order", DataType::UInt8, true),
            Field::new("fallback_migratetype", DataType::Int8, true),
            Field::new("caller", name(), true),
            Field::new("irq_flags", DataType::UInt8, false),
            Field::new("preempt", DataType::UInt8, false),
        ]))
    });
    Arc::clone(&SCHEMA)
}

/// Converts events to columns, in O(events).
///
/// # Errors
///
/// An error of Arrow. No such error is known to occur.
pub fn batch(events: &[Event]) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = vec![
        all::<UInt64Type>(events, |event| event.ts_ns),
        named(events, EventKind::ALL.map(EventKind::name), |event| Some(event.kind.index() as u8))?,
        all::<UInt16Type>(events, |event| event.cpu),
        all::<UInt32Type>(events, |event| event.pid),
        some::<UInt64Type>(events, |event| event.frame().map(|pfn| pfn.0)),
        some::<UInt8Type>(events, order),
        some::<Int8Type>(events, |event| {
            // In an event that begins a wait, the field `migratetype` is a part of the call site.
            let has_type = event.migratetype != MIGRATETYPE_NONE && event.kind != EventKind::ContentionBegin;
            has_type.then_some(event.migratetype)
        }),
        some::<UInt32Type>(events, gfp),
        some::<UInt64Type>(events, |event| (!event.kind.has_frame()).then_some(event.pfn)),
        Arc::new(events.iter().map(fits_page_set).collect::<BooleanArray>()),
        some::<UInt8Type>(events, |event| event.extfrag().map(|extfrag| extfrag.fallback_order)),
        some::<Int8Type>(events, |event| event.extfrag().map(|extfrag| extfrag.fallback_migratetype)),
        named(events, Caller::ALL.map(Caller::name), |event| event.caller().map(|caller| caller.code() - 1))?,
        all::<UInt8Type>(events, |event| event.irq_flags),
        all::<UInt8Type>(events, |event| event.preempt),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}

/// A column that every event has.
fn all<T: ArrowPrimitiveType>(events: &[Event], value: impl Fn(&Event) -> T::Native) -> ArrayRef {
    let mut column = PrimitiveBuilder::<T>::with_capacity(events.len());
    events.iter().for_each(|event| column.append_value(value(event)));
    Arc::new(column.finish())
}

/// A column that some events have.
fn some<T: ArrowPrimitiveType>(events: &[Event], value: impl Fn(&Event) -> Option<T::Native>) -> ArrayRef {
    let mut column = PrimitiveBuilder::<T>::with_capacity(events.len());
    events.iter().for_each(|event| column.append_option(value(event)));
    Arc::new(column.finish())
}

/// A column of names. The batch stores each name once.
fn named<const N: usize>(
    events: &[Event],
    names: [&'static str; N],
    index: impl Fn(&Event) -> Option<u8>,
) -> Result<ArrayRef> {
    let indices = events.iter().map(index).collect();
    Ok(Arc::new(DictionaryArray::<UInt8Type>::try_new(indices, Arc::new(StringArray::from(names.to_vec())))?))
}

fn order(event: &Event) -> Option<u8> {
    let has_order = match event.kind {
        EventKind::MmPageFreeBatched => false,
        EventKind::KswapdWake | EventKind::DirectReclaimBegin => true,
        kind => kind.has_frame(),
    };
    has_order.then_some(event.order)
}

fn gfp(event: &Event) -> Option<u32> {
    let has_flags = matches!(
        event.kind,
        EventKind::MmPageAlloc | EventKind::DirectReclaimBegin | EventKind::BulkAllocEntry
    );
    has_flags.then_some(event.gfp)
}

fn fits_page_set(event: &Event) -> Option<bool> {
    matches!(event.kind, EventKind::MmPageAllocZoneLocked).then(|| event.is_pcp_refill())
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use pageset_trace::{Extfrag, PFN_NONE};

    use super::*;

    fn column<'b, T: ArrowPrimitiveType>(
        batch: &'b RecordBatch,
        name: &str,
    ) -> &'b arrow_array::PrimitiveArray<T> {
        batch[name].as_primitive::<T>()
    }

    #[test]
    fn a_kind_has_the_columns_that_it_says_something_about() {
        let mut failed = Event::new(EventKind::MmPageAlloc, 1, 2);
        (failed.pfn, failed.order, failed.gfp) = (PFN_NONE, 3, 9);
        let mut wait = Event::new(EventKind::ContentionBegin, 2, 0);
        (wait.pfn, wait.order) = (0xffff, Caller::Drain.code());
        let mut other = Event::new(EventKind::MmPageAllocExtfrag, 3, 0);
        other.set_extfrag(Extfrag {
            alloc_order: 0,
            fallback_order: 10,
            alloc_migratetype: 2,
            fallback_migratetype: 1,
            change_ownership: true,
        });
        let mut left = Event::new(EventKind::MmPageAllocZoneLocked, 4, 0);
        (left.pfn, left.refill) = (7, 1);
        let batch = batch(&[failed, wait, other, left]).unwrap();

        assert_eq!(
            column::<UInt64Type>(&batch, "pfn").iter().collect::<Vec<_>>(),
            [None, None, Some(0), Some(7)]
        );
        assert_eq!(
            column::<UInt64Type>(&batch, "value").iter().collect::<Vec<_>>(),
            [None, Some(0xffff), None, None]
        );
        assert_eq!(
            column::<UInt8Type>(&batch, "order").iter().collect::<Vec<_>>(),
            [Some(3), None, Some(0), Some(0)]
        );
        assert_eq!(
            column::<UInt32Type>(&batch, "gfp").iter().collect::<Vec<_>>(),
            [Some(9), None, None, None]
        );
        assert_eq!(
            column::<Int8Type>(&batch, "migratetype").iter().collect::<Vec<_>>(),
            [None, None, Some(2), None]
        );
        assert_eq!(column::<UInt8Type>(&batch, "fallback_order").value(2), 10);
        let fits = batch["fits_page_set"].as_boolean();
        assert!(fits.is_null(0) && fits.value(3));
        let names = batch["kind"].as_dictionary::<UInt8Type>().downcast_dict::<StringArray>().unwrap();
        let names: Vec<_> = names.into_iter().flatten().collect();
        assert_eq!(
            names,
            ["mm_page_alloc", "contention_begin", "mm_page_alloc_extfrag", "mm_page_alloc_zone_locked"]
        );
        let callers = batch["caller"].as_dictionary::<UInt8Type>().downcast_dict::<StringArray>().unwrap();
        let callers: Vec<_> = callers.into_iter().collect();
        assert_eq!(callers, [None, Some("drain"), None, None]);
    }
}
