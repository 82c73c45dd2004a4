//! Who waits for a lock: the first function of a call chain that is no lock's.
//!
//! Source: names of functions in `/proc/kallsyms` of Linux 6.1 and 6.18, and call chains recorded there. A compiler may put a
//! function into its caller, so some have two names for one purpose.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
};

use super::kallsyms::{self, Symbol};
use crate::Caller;

/// Functions at most; a kernel with all its modules has fewer.
const FUNCTIONS_MAX: usize = 1 << 20;

/// What functions take a zone's lock for. What follows a dot in a name is the compiler's.
const KNOWN: [(&str, Caller); 26] = [
    ("rmqueue_bulk", Caller::Refill),
    ("__rmqueue_pcplist", Caller::Refill),
    ("free_pcppages_bulk", Caller::Drain),
    ("rmqueue", Caller::Alloc),
    ("rmqueue_buddy", Caller::Alloc),
    ("get_page_from_freelist", Caller::Alloc),
    ("free_one_page", Caller::Free),
    ("__free_pages_ok", Caller::Free),
    ("free_unref_page", Caller::Free),
    ("__free_frozen_pages", Caller::Free),
    ("free_unref_folios", Caller::Free),
    ("reserve_highatomic_pageblock", Caller::Other),
    ("unreserve_highatomic_pageblock", Caller::Other),
    ("set_migratetype_isolate", Caller::Other),
    ("unset_migratetype_isolate", Caller::Other),
    ("take_page_off_buddy", Caller::Other),
    ("put_page_back_buddy", Caller::Other),
    ("isolate_freepages_block", Caller::Other),
    ("isolate_freepages", Caller::Other),
    ("fast_isolate_freepages", Caller::Other),
    ("compaction_alloc", Caller::Other),
    ("__isolate_free_page", Caller::Other),
    ("walk_zones_in_node", Caller::Other),
    ("frag_show_print", Caller::Other),
    ("__setup_per_zone_wmarks", Caller::Other),
    ("split_free_frozen_page", Caller::Other),
];

/// What a function in a call chain says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    /// It takes locks for others, or traces: whoever called it says more.
    Lock,
    Known(Caller),
    /// None of the page allocator's.
    Foreign,
}

/// Knows the functions of a kernel by their addresses.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    /// By address; neighbours that say the same are one.
    functions: Vec<(u64, Function)>,
}

impl Callers {
    /// Of the running kernel; `None` if this user may not see its addresses.
    #[must_use]
    pub fn read() -> Option<Self> {
        let callers = Self::of(BufReader::new(File::open("/proc/kallsyms").ok()?)).ok()?;
        let knows = |caller| callers.functions.iter().any(|(_, known)| *known == Function::Known(caller));
        (knows(Caller::Refill) && knows(Caller::Drain)).then_some(callers)
    }

    /// Of a text in the format of `/proc/kallsyms`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(text: impl BufRead) -> io::Result<Self> {
        let mut functions = Vec::new();
        kallsyms::read(text, |symbol| {
            if functions.len() < FUNCTIONS_MAX {
                functions.extend(function(&symbol));
            }
        })?;
        functions.sort_by_key(|(address, _)| *address);
        functions.dedup_by(|later, earlier| {
            // Of several names for one address, the one that says something counts.
            if later.0 == earlier.0 && earlier.1 == Function::Foreign {
                earlier.1 = later.1;
            }
            later.0 == earlier.0
        });
        functions.dedup_by_key(|(_, function)| *function);
        Ok(Self { functions })
    }

    /// Who is at the end of a call chain of addresses, the innermost first; `None` if all of it takes locks.
    pub fn caller(&self, chain: impl Iterator<Item = u64>) -> Option<Caller> {
        let mut functions = chain.filter_map(|address| {
            let at = self.functions.partition_point(|(start, _)| *start <= address);
            Some(self.functions.get(at.checked_sub(1)?)?.1)
        });
        functions.find_map(|function| match function {
            Function::Lock => None,
            Function::Known(caller) => Some(caller),
            Function::Foreign => Some(Caller::Elsewhere),
        })
    }
}

fn function(symbol: &Symbol<'_>) -> Option<(u64, Function)> {
    let address = symbol.address.filter(|_| symbol.is_code)?;
    let name = symbol.name.split('.').next().unwrap_or(symbol.name);
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    let function = match known {
        Some((_, caller)) => Function::Known(*caller),
        None if takes_locks(name) => Function::Lock,
        None => Function::Foreign,
    };
    Some((address, function))
}

fn takes_locks(name: &str) -> bool {
    ["spin_lock", "lock_slowpath", "spin_trylock"].iter().any(|part| name.contains(part))
        || ["trace_", "__traceiter_", "event_trigger", "stacktrace_"]
            .iter()
            .any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
        ffffffff81000100 T native_queued_spin_lock_slowpath\n\
        ffffffff81000200 T _raw_spin_lock_irqsave\n\
        ffffffff81000300 t free_pcppages_bulk\n\
        ffffffff81000400 t drain_pages_zone\n\
        ffffffff81000500 T rmqueue_bulk.isra.0\n\
        ffffffff81000600 t get_page_from_freelist\n\
        ffffffff81000600 t an_alias_of_it\n\
        ffffffff81000700 D some_data\n\
        0000000000000000 t free_one_page\n\
        nonsense\n";

    fn caller(chain: &[u64]) -> Option<Caller> {
        let callers = Callers::of(KALLSYMS.as_bytes()).unwrap();
        callers.caller(chain.iter().map(|offset| 0xffff_ffff_8100_0000 + offset))
    }

    #[test]
    fn the_first_function_that_is_no_locks_decides() {
        assert_eq!(caller(&[0x123, 0x205, 0x310, 0x450]), Some(Caller::Drain));
        assert_eq!(caller(&[0x100, 0x205, 0x5ff, 0x610]), Some(Caller::Refill));
        assert_eq!(caller(&[0x205, 0x610]), Some(Caller::Alloc));
        assert_eq!(caller(&[0x205, 0x4aa, 0x310]), Some(Caller::Elsewhere));
    }

    #[test]
    fn chains_that_say_nothing_are_not_known() {
        assert_eq!(caller(&[]), None);
        assert_eq!(caller(&[0x100, 0x210]), None);
        assert_eq!(Callers::default().caller([1, 2].into_iter()), None);
        let callers = Callers::of(KALLSYMS.as_bytes()).unwrap();
        assert_eq!(callers.caller([5].into_iter()), None, "below all functions");
    }
}
