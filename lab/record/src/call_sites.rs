//! Numbers the call sites of waits, because an event has room only for a number. Looks up the names of call
//! sites and locks when the recording ends.

use std::collections::HashMap;

use pageset_trace::raw::{CallStack, Callers};
use pageset_trace::{CallSites, Event, NamedLock};

/// Maximum number of locks that are looked up. A kernel has fewer contended locks than this number.
const LOCKS_MAX: usize = 16 << 10;

/// The call sites that occurred so far.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    numbers: HashMap<u32, u16>,
    /// The ids that [`Callers`] has for call sites, by number.
    sites: Vec<u32>,
    /// Whether the lock at an address is a variable of the kernel.
    locks: HashMap<u64, bool>,
}

impl Sites {
    /// Stores the meaning of a call chain in the event that begins the wait.
    pub(crate) fn put(&mut self, event: &mut Event, stack: CallStack, callers: &Callers) {
        if let Some(caller) = stack.caller {
            event.order = caller.code();
        }
        if let Some(number) = stack.site.and_then(|site| self.number(site)) {
            event.set_call_site(number);
        }
        let is_of_zone = stack.caller.is_some_and(|caller| caller.is_of_zone());
        if !is_of_zone && self.locks.len() < LOCKS_MAX {
            self.locks.entry(event.pfn).or_insert_with(|| callers.variable(event.pfn).is_some());
        }
    }

    fn number(&mut self, site: u32) -> Option<u16> {
        if let Some(number) = self.numbers.get(&site) {
            return Some(*number);
        }
        let number = u16::try_from(self.sites.len()).ok().filter(|number| *number < Event::CALL_SITES_MAX)?;
        self.numbers.insert(site, number);
        self.sites.push(site);
        Some(number)
    }

    /// Returns the names of all call sites, and of the locks that are variables of the kernel.
    pub(crate) fn names(&self, callers: &Callers) -> CallSites {
        let variables = self.locks.iter().filter(|(_, is_variable)| **is_variable);
        let named = |address: &u64| {
            let name = callers.variable(*address)?.to_owned();
            Some(NamedLock { address: *address, name })
        };
        let mut locks: Vec<_> = variables.filter_map(|(address, _)| named(address)).collect();
        locks.sort_unstable_by_key(|lock| lock.address);
        CallSites { functions: self.sites.iter().map(|site| callers.name(*site).to_owned()).collect(), locks }
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::{Caller, EventKind, LockName};

    use super::*;

    const KALLSYMS: &str = "ffffffff81000100 t first\nffffffff81000200 t second\n\
        ffffffff81000300 b lock\nffffffff81000400 b last\n";

    #[test]
    fn events_have_numbers_and_the_description_has_names() {
        let callers = Callers::of(KALLSYMS.as_bytes()).unwrap();
        let mut sites = Sites::default();
        let mut begin = |lock: u64, at: u64| {
            let mut event = Event { pfn: lock, ..Event::new(EventKind::ContentionBegin, 1, 0) };
            sites.put(&mut event, callers.stack([at].into_iter()), &callers);
            event
        };
        let events = [
            begin(0xffff_ffff_8100_0300, 0xffff_ffff_8100_0210),
            begin(7, 0xffff_ffff_8100_0110),
            begin(8, 0xffff_ffff_8100_0220),
            begin(9, 1),
        ];
        assert_eq!(events.map(|event| event.call_site()), [Some(0), Some(1), Some(0), None]);
        assert_eq!(events[0].caller(), Some(Caller::Elsewhere));
        let names = sites.names(&callers);
        let lock = |event: Event| names.lock(event.pfn, event.call_site());
        assert_eq!(lock(events[0]), LockName::Variable("lock".to_owned()));
        assert_eq!(lock(events[1]), LockName::TakenIn("first".to_owned()));
        assert_eq!(lock(events[2]), LockName::TakenIn("second".to_owned()));
        assert_eq!(lock(events[3]), LockName::Unknown);
    }
}
