//! Parses the text after an event's name. The text has the form that the kernel prints, or the raw fields
//! that `trace-cmd report -R` prints.
//!
//! Source of the formats: the `format` files that kernels publish below `/sys/kernel/tracing/events/`. The
//! kernel prints a hash in `page=`, so this field only shows whether there is a page.

use super::fields::{Fields, decimal, hexadecimal, number, signed};
use crate::{
    event::{Event, EventKind, Extfrag, PFN_NONE},
    gfp::gfp_bits,
};

/// The result of reading a payload.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// The event's fields are filled in.
    Filled,
    /// A `sched_switch` of a task other than kswapd.
    NotNeeded,
}

/// Reads payloads. Remembers the last allocation flags, because most lines have the same flags as the line
/// before.
#[derive(Default)]
pub(super) struct PayloadParser {
    gfp_text: Vec<u8>,
    gfp: (u32, u32),
    /// Number of unknown names of allocation flags so far.
    pub(super) unknown_gfp_names: u64,
}

impl PayloadParser {
    /// Fills `event`, whose kind is set, from `text`. The error is a sentence about the problem.
    pub(super) fn fill(&mut self, event: &mut Event, text: &[u8]) -> Result<Payload, String> {
        match event.kind {
            EventKind::MmPageAlloc
            | EventKind::MmPageFree
            | EventKind::MmPageFreeBatched
            | EventKind::MmPagePcpuDrain
            | EventKind::MmPagePcpuRefill
            | EventKind::MmPageAllocZoneLocked => self.page(event, text)?,
            EventKind::MmPageAllocExtfrag => extfrag(event, text)?,
            EventKind::ContentionBegin | EventKind::ContentionEnd | EventKind::ContendedRelease => {
                contention(event, text)?;
            }
            EventKind::WorkqueueExecuteStart | EventKind::WorkqueueExecuteEnd => work(event, text),
            EventKind::Marker => return Ok(Payload::NotNeeded),
            EventKind::PageFaultUser => {
                // Some kernels print a symbol's name instead of the address. If the line has a symbol's name,
                // the address is unknown.
                event.pfn = number(required(text, "address")?).unwrap_or(0);
            }
            EventKind::KswapdWake | EventKind::KswapdSleep => {
                event.pfn = number_of(text, "nid")?;
                if let Some(order) = Fields::find(text, b"order") {
                    event.order = narrow(order, "order")?;
                }
            }
            EventKind::DirectReclaimBegin => {
                event.order = narrow(required(text, "order")?, "order")?;
                if let Some(flags) = Fields::find(text, b"gfp_flags") {
                    event.gfp = self.gfp(flags);
                }
            }
            EventKind::DirectReclaimEnd => event.pfn = number_of(text, "nr_reclaimed")?,
            // The names of tasks may contain any text, so search for the last field from the end of the line.
            EventKind::SchedProcessFork => {
                let at = rfind(text, b"child_pid=").ok_or_else(|| missing("child_pid"))?;
                event.pfn = number_of(&text[at..], "child_pid")?;
            }
            EventKind::BulkAllocEntry => {
                event.pfn = number_of(text, "nr_pages")?;
                if let Some(flags) = Fields::find(text, b"gfp_flags") {
                    event.gfp = self.gfp(flags);
                }
            }
            EventKind::BulkAllocReturn => event.pfn = number_of(text, "ret")?,
            EventKind::KswapdSwitchedOut => return kswapd_switch(event, text),
        }
        Ok(Payload::Filled)
    }

    /// Parses `page=… pfn=… order=… migratetype=… gfp_flags=… percpu_refill=…`, in any order. Some kinds of
    /// events lack some of the fields.
    fn page(&mut self, event: &mut Event, text: &[u8]) -> Result<(), String> {
        let (mut pfn, mut has_null_page) = (None, false);
        let (mut has_order, mut has_type, mut has_gfp, mut has_refill) = (false, false, false, false);
        for (key, value) in Fields::new(text) {
            match key {
                b"pfn" => pfn = Some(number(value).ok_or_else(|| not_a_number("pfn", value))?),
                b"order" => {
                    event.order = narrow(value, "order")?;
                    has_order = true;
                }
                b"migratetype" => {
                    event.migratetype = signed(value)
                        .and_then(|value| i8::try_from(value).ok())
                        .ok_or_else(|| not_a_number("migratetype", value))?;
                    has_type = true;
                }
                b"gfp_flags" => {
                    event.gfp = self.gfp(value);
                    has_gfp = true;
                }
                b"percpu_refill" => {
                    event.refill = narrow(value, "percpu_refill")?;
                    has_refill = true;
                }
                b"page" => has_null_page = is_null(value),
                _ => {}
            }
        }
        event.pfn = pfn.ok_or_else(|| missing("pfn"))?;
        let (is_alloc, has_no_order) =
            (event.kind == EventKind::MmPageAlloc, event.kind == EventKind::MmPageFreeBatched);
        if !has_order && !has_no_order {
            return Err(missing("order"));
        }
        if !has_type && !matches!(event.kind, EventKind::MmPageFree | EventKind::MmPageFreeBatched) {
            return Err(missing("migratetype"));
        }
        if is_alloc && !has_gfp {
            return Err(missing("gfp_flags"));
        }
        // Raw reports of old kernels lack the field `percpu_refill`. The text of old kernels shows `order ==
        // 0` in place of this field.
        if event.kind == EventKind::MmPageAllocZoneLocked && !has_refill {
            event.refill = u8::from(event.order == 0);
        }
        // A failed allocation has no page, and the kernel prints frame 0 for the missing page.
        if is_alloc && event.pfn == 0 && has_null_page {
            event.pfn = PFN_NONE;
        }
        Ok(())
    }

    fn gfp(&mut self, text: &[u8]) -> u32 {
        if self.gfp_text != text {
            self.gfp = gfp_bits(text);
            self.gfp_text.clear();
            self.gfp_text.extend(text);
        }
        self.unknown_gfp_names += u64::from(self.gfp.1);
        self.gfp.0
    }
}

fn extfrag(event: &mut Event, text: &[u8]) -> Result<(), String> {
    let migratetype = |key: &str| {
        let value = required(text, key)?;
        signed(value).and_then(|value| i8::try_from(value).ok()).ok_or_else(|| not_a_number(key, value))
    };
    event.pfn = number_of(text, "pfn")?;
    event.set_extfrag(Extfrag {
        alloc_order: narrow(required(text, "alloc_order")?, "alloc_order")?,
        fallback_order: narrow(required(text, "fallback_order")?, "fallback_order")?,
        alloc_migratetype: migratetype("alloc_migratetype")?,
        fallback_migratetype: migratetype("fallback_migratetype")?,
        change_ownership: number_of(text, "change_ownership")? != 0,
    });
    Ok(())
}

/// Parses `00000000f9a7a80d (flags=SPIN)`, `00000000f9a7a80d (ret=0)`, or raw `lock_addr=… flags=…`.
fn contention(event: &mut Event, text: &[u8]) -> Result<(), String> {
    event.pfn = match Fields::find(text, b"lock_addr") {
        Some(address) => number(address).ok_or_else(|| not_a_number("lock_addr", address))?,
        None => {
            let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
            let address = text[..end].strip_prefix(b"0x").unwrap_or(&text[..end]);
            hexadecimal(address).ok_or_else(|| not_a_number("the lock's address", address))?
        }
    };
    match event.kind {
        EventKind::ContentionBegin => event.gfp = lock_flags(required(text, "flags")?),
        EventKind::ContentionEnd => {
            let value = required(text, "ret")?;
            let ret = signed(value).and_then(|value| i32::try_from(value).ok());
            event.gfp = ret.ok_or_else(|| not_a_number("ret", value))? as u32;
        }
        _ => {}
    }
    Ok(())
}

/// Source: `/sys/kernel/tracing/events/lock/contention_begin/format`.
fn lock_flags(text: &[u8]) -> u32 {
    text.split(|byte| *byte == b'|').fold(0, |bits, name| {
        bits | match name {
            b"SPIN" => 1,
            b"READ" => 2,
            b"WRITE" => 4,
            b"RT" => 8,
            b"PERCPU" => 16,
            b"MUTEX" => 32,
            other => number(other).and_then(|value| u32::try_from(value).ok()).unwrap_or(0),
        }
    })
}

/// Parses `work struct 0000000012345678: function vmstat_update`, or raw `work=… function=…`.
fn work(event: &mut Event, text: &[u8]) {
    if let Some(address) = Fields::find(text, b"function").and_then(number) {
        event.pfn = address;
        return;
    }
    let name = rfind(text, b"function ").map_or(&b""[..], |at| text[at + 9..].trim_ascii());
    event.order = match name {
        b"vmstat_update" => 1,
        b"lru_add_drain_per_cpu" => 2,
        _ => 0,
    };
}

/// Parses `prev_comm=kswapd0 prev_pid=51 prev_prio=120 prev_state=S ==> next_comm=…`.
fn kswapd_switch(event: &mut Event, text: &[u8]) -> Result<Payload, String> {
    if !Fields::find(text, b"prev_comm").is_some_and(|name| name.starts_with(b"kswapd")) {
        return Ok(Payload::NotNeeded);
    }
    let state = required(text, "prev_state")?;
    event.pfn = match state {
        b"R" => 0,
        b"S" => 1,
        b"D" => 2,
        b"R+" => 256,
        other => number(other).ok_or_else(|| not_a_number("prev_state", other))?,
    };
    Ok(Payload::Filled)
}

fn is_null(page: &[u8]) -> bool {
    matches!(page, b"(null)" | b"(nil)" | b"NULL")
        || page.strip_prefix(b"0x").unwrap_or(page).iter().all(|byte| *byte == b'0')
}

fn required<'text>(text: &'text [u8], key: &str) -> Result<&'text [u8], String> {
    Fields::find(text, key.as_bytes()).ok_or_else(|| missing(key))
}

fn number_of(text: &[u8], key: &str) -> Result<u64, String> {
    let value = required(text, key)?;
    number(value).ok_or_else(|| not_a_number(key, value))
}

/// Parses a number from 0 to 255.
fn narrow(value: &[u8], key: &str) -> Result<u8, String> {
    let number = if value.len() > 3 { number(value) } else { decimal(value).or_else(|| number(value)) };
    number.and_then(|number| u8::try_from(number).ok()).ok_or_else(|| not_a_number(key, value))
}

fn missing(key: &str) -> String {
    format!("there is no {key}=")
}

fn not_a_number(key: &str, value: &[u8]) -> String {
    let shown: String = value.iter().take(24).flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
    format!("{key} is not a number that fits: {shown:?}")
}

fn rfind(text: &[u8], word: &[u8]) -> Option<usize> {
    memchr::memmem::rfind(text, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(kind: EventKind, text: &str) -> Result<(Event, Payload), String> {
        let mut event = Event::new(kind, 0, 0);
        let payload = PayloadParser::default().fill(&mut event, text.as_bytes())?;
        Ok((event, payload))
    }

    #[track_caller]
    fn event(kind: EventKind, text: &str) -> Event {
        let (event, payload) = parse(kind, text).expect(text);
        assert_eq!(payload, Payload::Filled);
        event
    }

    #[test]
    fn page_events_in_every_spelling() {
        for text in [
            "page=000000004f55aec4 pfn=0x121c27 order=3 migratetype=1 gfp_flags=GFP_KERNEL|__GFP_COMP",
            "page=ffffea0004870 pfn=1186855 order=3 migratetype=1 gfp_flags=GFP_KERNEL|__GFP_COMP",
            "pfn=0x121c27 order=3 gfp_flags=0x40cc0 migratetype=1",
        ] {
            let event = event(EventKind::MmPageAlloc, text);
            assert_eq!((event.pfn, event.order, event.migratetype), (0x12_1c27, 3, 1), "{text}");
            assert_eq!(event.gfp, 0x4_0cc0, "{text}");
        }
        assert_eq!(event(EventKind::MmPageFreeBatched, "page=1 pfn=512 order=0 cold=0").pfn, 512);
        assert_eq!(event(EventKind::MmPageFreeBatched, "pfn=0xc1ae").pfn, 0xc1ae);
        let refill = event(EventKind::MmPageAllocZoneLocked, "pfn=1 order=0 migratetype=2 percpu_refill=1");
        assert!(refill.is_pcp_refill());
        assert!(event(EventKind::MmPageAllocZoneLocked, "pfn=1 order=0 migratetype=2").is_pcp_refill());
        let refilled =
            event(EventKind::MmPagePcpuRefill, "page=000000004f55aec4 pfn=0x21 order=0 migratetype=1");
        assert_eq!((refilled.pfn, refilled.migratetype), (0x21, 1));
    }

    #[test]
    fn failed_allocations_in_every_spelling() {
        for text in [
            "page=(null) pfn=0x0 order=9 migratetype=0 gfp_flags=GFP_NOWAIT",
            "page=0000000000000000 pfn=0x0 order=9 migratetype=0 gfp_flags=GFP_NOWAIT",
            "page=(nil) pfn=0 order=9 migratetype=0 gfp_flags=GFP_NOWAIT",
            "pfn=0xffffffffffffffff order=9 gfp_flags=0x2800 migratetype=0",
        ] {
            assert!(event(EventKind::MmPageAlloc, text).is_failed_allocation(), "{text}");
        }
    }

    #[test]
    fn the_other_kinds() {
        let text = "page=1 pfn=0x4c00 alloc_order=0 fallback_order=10 pageblock_order=9 alloc_migratetype=0 \
                    fallback_migratetype=1 fragmenting=0 change_ownership=1";
        assert_eq!(event(EventKind::MmPageAllocExtfrag, text).gfp, 257);
        let begin = event(EventKind::ContentionBegin, "00000000f9a7a80d (flags=SPIN|MUTEX)");
        assert_eq!((begin.pfn, begin.gfp), (0xf9a7_a80d, 33));
        let end = event(EventKind::ContentionEnd, "0xffff8881 (ret=-4)");
        assert_eq!((end.pfn, end.gfp), (0xffff_8881, (-4_i32) as u32));
        assert_eq!(event(EventKind::ContendedRelease, "0xffff8881").pfn, 0xffff_8881);
        assert_eq!(event(EventKind::ContentionBegin, "lock_addr=0x12 flags=0x1").gfp, 1);
        let work = event(EventKind::WorkqueueExecuteStart, "work struct 00000000a: function vmstat_update");
        assert_eq!(work.work(), Some(crate::Work::VmstatUpdate));
        assert_eq!(event(EventKind::WorkqueueExecuteEnd, "work=0x1 function=0xff").pfn, 0xff);
        assert_eq!(event(EventKind::PageFaultUser, "address=0x7f01 ip=0x1 error_code=0x6").pfn, 0x7f01);
        assert_eq!(event(EventKind::KswapdWake, "nid=1 order=3").order, 3);
        assert_eq!(event(EventKind::DirectReclaimEnd, "nr_reclaimed=64").pfn, 64);
        let fork = "comm=child_pid=7 x pid=1 child_comm=child_pid=7 x child_pid=2";
        assert_eq!(event(EventKind::SchedProcessFork, fork).pfn, 2);
        assert_eq!(event(EventKind::BulkAllocEntry, "(f+0x0/0x1) nr_pages=4").pfn, 4);
    }

    #[test]
    fn only_kswapd_switches_are_needed() {
        let text = "prev_comm=kswapd0 prev_pid=51 prev_prio=120 prev_state=R+ ==> next_comm=x next_pid=1";
        assert_eq!(event(EventKind::KswapdSwitchedOut, text).pfn, 256);
        let other = parse(EventKind::KswapdSwitchedOut, &text.replace("kswapd0", "bash"));
        assert_eq!(other.unwrap().1, Payload::NotNeeded);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (text, word) in [
            ("order=0 migratetype=0 gfp_flags=GFP_KERNEL", "pfn="),
            ("pfn=0x1 migratetype=0 gfp_flags=GFP_KERNEL", "order="),
            ("pfn=0x1 order=0 gfp_flags=GFP_KERNEL", "migratetype="),
            ("pfn=0x1 order=0 migratetype=0", "gfp_flags="),
            ("pfn=0xzz order=0 migratetype=0 gfp_flags=GFP_KERNEL", "0xzz"),
            ("pfn=0x1 order=300 migratetype=0 gfp_flags=GFP_KERNEL", "300"),
            ("pfn=0x1 order=0 migratetype=500 gfp_flags=GFP_KERNEL", "500"),
        ] {
            let error = parse(EventKind::MmPageAlloc, text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
