//! Decodes the records of a ring into events of the trace.

use crate::{Event, EventKind, MIGRATETYPE_NONE};

use super::callers::{CallStack, Callers};
use super::catalogue::{Slot, Tracepoint};
use super::event_format::{EventFormat, Field};
use super::ring_page::Record;
use super::symbols::Symbols;

/// The upper byte of the mark before a sample, and the upper byte of the mark after the sample.
const MARKS: [u64; 2] = [0x5a, 0x5b];
/// First letters of the names of tasks whose switches are kept.
const KSWAPD: &[u8] = b"kswapd";
/// Maximum number of locks that one CPU waits for at once: one lock in a task, and one at each level of
/// interrupts.
const WAITS_MAX: usize = 4;

/// Fields that every record has.
#[derive(Clone, Copy, Debug)]
struct Heading {
    id: Field,
    irq_flags: Field,
    preempt: Field,
    pid: Field,
}

/// How the decoder reads records of one kind of event.
#[derive(Clone, Debug)]
struct Plan {
    kind: EventKind,
    fields: Vec<(Slot, Field)>,
    /// Whether the kernel's events lack the field that says whether a page set could hold the block. Without
    /// this field, a page set could hold a block if the block has order 0.
    refills_order_0: bool,
    /// The field with the name of the task that is switched out. Only switches of kswapd are kept.
    switched_out: Option<Field>,
}

/// Decodes the events of a tracing instance, by their ids.
#[derive(Clone, Debug)]
pub struct Decoder {
    heading: Heading,
    plans: Vec<Option<Plan>>,
    symbols: Symbols,
    stacks: Option<Stacks>,
}

/// The form of the call chains that the kernel writes when a wait begins.
#[derive(Clone, Debug)]
struct Stacks {
    id: u16,
    /// Number of bytes in the record before the call chain's first address.
    offset: usize,
    callers: Callers,
}

/// Facts about a CPU's earlier records: the locks of waits that have begun.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    locks: Vec<u64>,
    keeps_all: bool,
}

impl Decoder {
    /// Makes a decoder for these events with their formats. `events` must not be empty.
    ///
    /// # Errors
    /// A sentence about the missing field.
    pub fn new(events: &[(Tracepoint, EventFormat)], symbols: Symbols) -> Result<Self, String> {
        let mut heading = None;
        let mut plans: Vec<Option<Plan>> = Vec::new();
        for (tracepoint, format) in events {
            heading = Some(Heading {
                id: required(format, tracepoint, "common_type")?,
                irq_flags: required(format, tracepoint, "common_flags")?,
                preempt: required(format, tracepoint, "common_preempt_count")?,
                pid: required(format, tracepoint, "common_pid")?,
            });
            let plan = Plan::new(tracepoint, format)?;
            let id = usize::from(format.id);
            plans.resize(plans.len().max(id + 1), None);
            plans[id] = Some(plan);
        }
        Ok(Self { heading: heading.ok_or("there is no event")?, plans, symbols, stacks: None })
    }

    /// Makes the decoder also read call chains with this format, and find functions in `callers`.
    ///
    /// # Errors
    /// A sentence about the missing field.
    pub fn with_stacks(mut self, format: &EventFormat, callers: Callers) -> Result<Self, String> {
        let field = format.field("caller").ok_or("kernel_stack has no field called caller")?;
        self.stacks = Some(Stacks { id: format.id, offset: field.offset, callers });
        Ok(self)
    }

    /// The meaning of a call chain. `None` if the record is not a call chain.
    #[inline]
    pub fn stack(&self, record: &Record<'_>) -> Option<CallStack> {
        let stacks = self.stacks.as_ref()?;
        if self.heading.id.read(record.bytes)? != u64::from(stacks.id) {
            return None;
        }
        let addresses = record.bytes.get(stacks.offset..).unwrap_or_default().as_chunks::<8>().0.iter();
        Some(stacks.callers.stack(addresses.map(|address| u64::from_ne_bytes(*address))))
    }

    /// The functions of call chains, if the decoder reads call chains.
    #[must_use]
    pub fn callers(&self) -> Option<&Callers> {
        self.stacks.as_ref().map(|stacks| &stacks.callers)
    }

    /// Decodes a record. `None` if the record's event is not needed, for example because the event was not
    /// requested.
    #[inline]
    pub fn event(&self, record: &Record<'_>, cpu: u16, waits: &mut Waits) -> Option<Event> {
        let id = self.heading.id.read(record.bytes)?;
        let plan = self.plans.get(id as usize)?.as_ref()?;
        if let Some(name) = plan.switched_out
            && !record.bytes.get(name.offset..)?.starts_with(KSWAPD)
        {
            return None;
        }
        let mut event = Event::new(plan.kind, record.ts_ns, cpu);
        event.irq_flags = self.heading.irq_flags.read(record.bytes)? as u8;
        // The upper half of the byte is the depth of disabled migration.
        event.preempt = self.heading.preempt.read(record.bytes)? as u8 & 0xf;
        event.pid = self.heading.pid.read(record.bytes)? as u32;
        for (slot, field) in &plan.fields {
            self.put(&mut event, *slot, field.read(record.bytes)?);
        }
        if plan.refills_order_0 {
            event.refill = u8::from(event.order == 0);
        }
        let is_wanted = match event.kind {
            EventKind::Marker => MARKS.contains(&(event.pfn >> 24)),
            EventKind::ContentionBegin => waits.begin(event.pfn),
            EventKind::ContentionEnd => waits.end(event.pfn),
            _ => true,
        };
        is_wanted.then_some(event)
    }

    #[inline]
    fn put(&self, event: &mut Event, slot: Slot, value: u64) {
        match slot {
            Slot::Pfn => event.pfn = value,
            Slot::Gfp => event.gfp = value as u32,
            Slot::Order => event.order = narrow(value),
            Slot::Migratetype => event.migratetype = i8::try_from(value as i64).unwrap_or(MIGRATETYPE_NONE),
            Slot::Refill => event.refill = narrow(value),
            Slot::FallbackType => event.gfp |= value as u32 & 0xff,
            Slot::Ownership => event.gfp |= u32::from(value != 0) << 8,
            Slot::Function => {
                event.pfn = value;
                event.order = match Some(value) {
                    function if function == self.symbols.vmstat_update => 1,
                    function if function == self.symbols.lru_add_drain_per_cpu => 2,
                    _ => 0,
                };
            }
        }
    }
}

impl Plan {
    fn new(tracepoint: &Tracepoint, format: &EventFormat) -> Result<Self, String> {
        let may_miss = |slot| slot == Slot::Refill && tracepoint.kind == EventKind::MmPageAllocZoneLocked;
        let mut fields = Vec::new();
        let mut refills_order_0 = false;
        for (name, slot) in tracepoint.fields {
            match format.field(name) {
                None if may_miss(*slot) => refills_order_0 = true,
                _ => fields.push((*slot, required(format, tracepoint, name)?)),
            }
        }
        let switched_out = match tracepoint.kind {
            EventKind::KswapdSwitchedOut => {
                let name = format.field("prev_comm");
                Some(name.ok_or_else(|| format!("{} has no prev_comm", tracepoint.name))?)
            }
            _ => None,
        };
        Ok(Self { kind: tracepoint.kind, fields, refills_order_0, switched_out })
    }
}

fn required(format: &EventFormat, tracepoint: &Tracepoint, name: &str) -> Result<Field, String> {
    let field = format.field(name).filter(|field| [1, 2, 4, 8].contains(&field.size));
    field.ok_or_else(|| format!("{} has no number called {name}", tracepoint.name))
}

/// Converts a value to a byte. A value that does not fit becomes 255, which is invalid too.
fn narrow(value: u64) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

impl Waits {
    /// Keeps the end of every wait. Use this function for recordings whose events another program chose.
    #[must_use]
    pub const fn keeping_all() -> Self {
        Self { locks: Vec::new(), keeps_all: true }
    }

    fn begin(&mut self, lock: u64) -> bool {
        if self.locks.len() == WAITS_MAX {
            self.locks.remove(0);
        }
        self.locks.push(lock);
        true
    }

    /// Whether to keep the end of a wait. The end of a wait does not show the kind of lock, so the end is
    /// kept if the beginning of the wait was kept.
    fn end(&mut self, lock: u64) -> bool {
        if self.keeps_all {
            return true;
        }
        let begun = self.locks.iter().rposition(|waiting| *waiting == lock);
        if let Some(at) = begun {
            self.locks.truncate(at);
        }
        begun.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{PageLayout, Records, TRACEPOINTS};

    const HEAD: &str = "ID: 7\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

    /// Makes a decoder for events of `kind`, without the field `leave_out`. Each field has four bytes, and
    /// the fields are in the catalogue's order.
    fn decoder(kind: EventKind, leave_out: &str) -> Result<Decoder, String> {
        let tracepoint = TRACEPOINTS.into_iter().find(|tracepoint| tracepoint.kind == kind).unwrap();
        let mut text = HEAD.to_owned();
        for (at, (name, _)) in tracepoint.fields.iter().enumerate() {
            if *name != leave_out {
                text += &format!("\tfield:int {name};\toffset:{};\tsize:4;\tsigned:1;\n", 8 + at * 4);
            }
        }
        let symbols =
            Symbols { vmstat_update: Some(11), lru_add_drain_per_cpu: Some(12), bulk_allocator: None };
        Decoder::new(&[(tracepoint, EventFormat::parse(&text).unwrap())], symbols)
    }

    fn event(decoder: &Decoder, waits: &mut Waits, fields: &[i32]) -> Option<Event> {
        let mut bytes = vec![7, 0, 0x11, 0x23];
        bytes.extend(99_i32.to_ne_bytes());
        bytes.extend(fields.iter().flat_map(|field| field.to_ne_bytes()));
        decoder.event(&Record { ts_ns: 5, bytes: &bytes }, 3, waits)
    }

    fn one(kind: EventKind, fields: &[i32]) -> Event {
        event(&decoder(kind, "").unwrap(), &mut Waits::default(), fields).unwrap()
    }

    #[test]
    fn fields_go_where_the_trace_has_them() {
        let alloc = one(EventKind::MmPageAlloc, &[0x1234, 2, 0xcc0, 1]);
        let expected = Event {
            pfn: 0x1234,
            gfp: 0xcc0,
            pid: 99,
            order: 2,
            migratetype: 1,
            irq_flags: 0x11,
            preempt: 3,
            ..Event::new(EventKind::MmPageAlloc, 5, 3)
        };
        assert_eq!(alloc, expected);
        assert!(one(EventKind::MmPageAlloc, &[-1, 0, 0, 1]).is_failed_allocation());
        assert_eq!(one(EventKind::MmPageFree, &[1, 70_000]).order, u8::MAX);
        assert_eq!(one(EventKind::MmPagePcpuDrain, &[1, 0, 70_000]).migratetype, MIGRATETYPE_NONE);
        assert_eq!(one(EventKind::WorkqueueExecuteStart, &[11]).order, 1);
        assert_eq!(one(EventKind::WorkqueueExecuteEnd, &[12]).order, 2);
        assert_eq!(one(EventKind::WorkqueueExecuteStart, &[13]).order, 0);
    }

    #[test]
    fn a_fallback_has_all_its_fields() {
        let extfrag = one(EventKind::MmPageAllocExtfrag, &[1, 0, 9, 0, 1, 1]).extfrag().unwrap();
        let expected = crate::Extfrag {
            alloc_order: 0,
            fallback_order: 9,
            alloc_migratetype: 0,
            fallback_migratetype: 1,
            change_ownership: true,
        };
        assert_eq!(extfrag, expected);
    }

    #[test]
    fn old_kernels_do_not_say_what_is_a_refill() {
        let decoder = decoder(EventKind::MmPageAllocZoneLocked, "percpu_refill").unwrap();
        let refill = |order| event(&decoder, &mut Waits::default(), &[1, order, 0]).unwrap().refill;
        assert_eq!((refill(0), refill(1)), (1, 0));
    }

    #[test]
    fn a_missing_field_is_named() {
        let error = decoder(EventKind::MmPageAlloc, "pfn").unwrap_err();
        assert_eq!(error, "mm_page_alloc has no number called pfn");
    }

    #[test]
    fn only_waits_that_began_end() {
        let decoder = decoder(EventKind::ContentionEnd, "").unwrap();
        let mut waits = Waits::default();
        assert_eq!(event(&decoder, &mut waits, &[5, 0]), None);
        (1..10).for_each(|lock| assert!(waits.begin(lock)));
        assert_eq!(
            event(&decoder, &mut waits, &[5, 0]),
            None,
            "expected the end to be left out, because other waits have replaced the beginning of this wait"
        );
        assert!(event(&decoder, &mut waits, &[8, -4]).is_some_and(|event| event.gfp == -4_i32 as u32));
        assert!(waits.end(7) && !waits.end(7) && waits.locks.len() <= WAITS_MAX);
    }

    #[test]
    fn records_cut_off_and_events_unknown_are_no_events() {
        let decoder = decoder(EventKind::MmPageFree, "").unwrap();
        assert_eq!(event(&decoder, &mut Waits::default(), &[1]), None);
        let unknown = Record { ts_ns: 5, bytes: &[200, 200, 0, 0, 0, 0, 0, 0] };
        assert_eq!(decoder.event(&unknown, 0, &mut Waits::default()), None);
    }

    #[test]
    fn a_page_of_the_kernel_becomes_events() {
        let format = EventFormat::parse(include_str!("../../tests/kernel/mm_page_alloc.format")).unwrap();
        let decoder = Decoder::new(&[(TRACEPOINTS[0], format)], Symbols::default()).unwrap();
        let (page, event) =
            (include_str!("../../tests/kernel/header_page"), include_str!("../../tests/kernel/header_event"));
        let layout = PageLayout::parse(page, event).unwrap();
        let records = Records::of(&layout, include_bytes!("../../tests/kernel/ring_page.bin")).unwrap();
        let waits = &mut Waits::default();
        let events: Vec<_> = records.filter_map(|record| decoder.event(&record.unwrap(), 0, waits)).collect();
        assert!(events.len() > 10);
        for event in events {
            assert!(event.kind == EventKind::MmPageAlloc && event.order <= 10 && event.frame().is_some());
            assert!(event.block_type().is_some() && event.gfp != 0 && event.pid != 0, "{event:?}");
        }
    }
}
