//! Finds two functions in a call chain. The waiter for a lock is the first function outside the lock code.
//! The call site of a page request is the first function outside the allocator.
//!
//! Source: names of functions in `/proc/kallsyms` of Linux 6.1 and 6.18, and recorded call chains of these
//! kernels. A compiler may inline a function into its caller, so some purposes of locking have two names.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
};

use super::kallsyms::{self, Symbol};
use crate::Caller;

/// Maximum number of functions. A kernel with all its modules has fewer functions.
const FUNCTIONS_MAX: usize = 1 << 20;

/// Functions that take a zone lock, with the purpose of taking it. The part of a name after a dot is not
/// compared, because the compiler adds it.
const KNOWN: [(&str, Caller); 28] = [
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
    // These functions lock each zone for a reader of /proc. The compiler inlines the code that takes the lock
    // into these functions.
    ("zoneinfo_show", Caller::Other),
    ("pagetypeinfo_show", Caller::Other),
    ("__setup_per_zone_wmarks", Caller::Other),
    ("split_free_frozen_page", Caller::Other),
];

/// First letters of the names of functions that allocate or free pages or slab objects for other code.
const ALLOCATES: [&str; 58] = [
    "alloc_pages",
    "__alloc_pages",
    "alloc_frozen_pages",
    "__alloc_frozen_pages",
    "alloc_page_interleave",
    "folio_alloc",
    "__folio_alloc",
    "vma_alloc_folio",
    "get_free_pages",
    "__get_free_page",
    "get_zeroed_page",
    "rmqueue",
    "__rmqueue",
    "get_page_from_freelist",
    "free_pages",
    "__free_pages",
    "___free_pages",
    "free_frozen_page",
    "__free_frozen_pages",
    "free_unref",
    "free_pcppages_bulk",
    "free_one_page",
    "__free_one_page",
    "folios_put",
    "__folio_put",
    "__put_page",
    "release_pages",
    "drain_pages",
    "drain_zone_pages",
    "decay_pcp_high",
    "alloc_slab_page",
    "allocate_slab",
    "new_slab",
    "___slab_alloc",
    "__slab_alloc",
    "slab_alloc",
    "kmem_cache_",
    "__kmem_cache_",
    "kmalloc",
    "__kmalloc",
    "___kmalloc",
    "krealloc",
    "kvmalloc",
    "__kvmalloc",
    "kfree",
    "kvfree",
    "free_large_kmalloc",
    "free_slab",
    "__free_slab",
    "discard_slab",
    "slab_free",
    "__slab_free",
    "free_to_partial_list",
    "__put_partials",
    "put_cpu_partial",
    "get_partial",
    "get_any_partial",
    "unfreeze_partials",
];

/// The meaning of a function in a call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    /// The function takes locks for other code, or traces. The function's caller shows the purpose of the
    /// lock.
    Lock,
    Known(Caller),
    /// The function allocates for other code, and does not itself take a zone lock.
    Allocates,
    /// Any other function.
    Foreign,
}

/// A named address of the kernel.
#[derive(Clone, Copy, Debug)]
struct Place<T> {
    address: u64,
    /// Offset of the symbol's name in `Callers::names`.
    name: u32,
    what: T,
}

/// A kernel's functions and variables, by address.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    /// All functions, by address.
    functions: Vec<Place<Function>>,
    /// Variables, by address. Variables of modules are not in the list.
    variables: Vec<Place<()>>,
    /// All names, each followed by a line feed.
    names: String,
}

/// The meaning of a wait's call chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStack {
    /// The purpose of taking the lock. `None` if all functions of the chain take locks for other code, or
    /// trace.
    pub caller: Option<Caller>,
    /// The call site; [`Callers::name`] returns its name. For a zone lock, the call site is the first
    /// function that neither takes locks nor allocates for other code. For another lock, the call site is the
    /// first function that does not take locks for other code.
    pub site: Option<u32>,
}

/// Maximum size of a variable that may contain a lock.
const VARIABLE_BYTES_MAX: u64 = 4096;

impl Callers {
    /// Reads the functions of the running kernel. `None` if `/proc/kallsyms` does not show the functions that
    /// refill and drain page sets, for example because this user may not see addresses.
    #[must_use]
    pub fn read() -> Option<Self> {
        let callers = Self::of(BufReader::new(File::open("/proc/kallsyms").ok()?)).ok()?;
        let knows = |caller| callers.functions.iter().any(|place| place.what == Function::Known(caller));
        (knows(Caller::Refill) && knows(Caller::Drain)).then_some(callers)
    }

    /// Reads a text in the format of `/proc/kallsyms`.
    ///
    /// # Errors
    /// An error if the text cannot be read.
    pub fn of(text: impl BufRead) -> io::Result<Self> {
        let mut callers = Self::default();
        kallsyms::read(text, |symbol| callers.note(&symbol))?;
        callers.functions.sort_by_key(|place| place.address);
        callers.functions.dedup_by(|later, earlier| {
            // If an address has several names, use the name with a known meaning.
            let is_same = later.address == earlier.address;
            if is_same && earlier.what == Function::Foreign {
                *earlier = *later;
            }
            is_same
        });
        callers.variables.sort_by_key(|place| place.address);
        Ok(callers)
    }

    fn note(&mut self, symbol: &Symbol<'_>) {
        let name = self.names.len() as u32;
        let Some(address) = symbol.address.filter(|_| self.functions.len() < FUNCTIONS_MAX) else { return };
        if symbol.is_code {
            self.functions.push(Place { address, name, what: function(symbol.name) });
        } else if symbol.is_data && !symbol.is_in_module && self.variables.len() < FUNCTIONS_MAX {
            self.variables.push(Place { address, name, what: () });
        } else {
            return;
        }
        self.names += symbol.name;
        self.names.push('\n');
    }

    /// Returns the meaning of a call chain. `chain` has the addresses of its functions, innermost first.
    pub fn stack(&self, chain: impl Iterator<Item = u64>) -> CallStack {
        let mut places = chain.filter_map(|address| self.at(address));
        let Some(first) = places.find(|place| place.what != Function::Lock) else {
            return CallStack::default();
        };
        match first.what {
            Function::Known(caller) => CallStack { caller: Some(caller), site: outside(places) },
            _ => CallStack { caller: Some(Caller::Elsewhere), site: Some(first.name) },
        }
    }

    /// Returns the call site of a chain of addresses that begins in the page allocator. The call site is the
    /// first function that neither takes locks nor allocates for other code.
    pub fn site(&self, chain: impl Iterator<Item = u64>) -> Option<u32> {
        outside(chain.filter_map(|address| self.at(address)))
    }

    /// The name of a call site, without the part after a dot that the compiler adds.
    #[must_use]
    pub fn name(&self, site: u32) -> &str {
        let rest = self.names.get(site as usize..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        line.split('.').next().unwrap_or(line)
    }

    /// The variable that probably contains the lock at this address: the last variable that begins at or
    /// before the address, less than 4 KiB away.
    #[must_use]
    pub fn variable(&self, address: u64) -> Option<&str> {
        let behind = self.variables.partition_point(|place| place.address <= address);
        // An address after the last variable gets no name, because its owner is not known.
        self.variables.get(behind)?;
        let place = self.variables.get(behind.checked_sub(1)?)?;
        (address - place.address < VARIABLE_BYTES_MAX).then(|| self.name(place.name))
    }

    fn at(&self, address: u64) -> Option<&Place<Function>> {
        let at = self.functions.partition_point(|place| place.address <= address);
        self.functions.get(at.checked_sub(1)?)
    }
}

fn outside<'a>(mut places: impl Iterator<Item = &'a Place<Function>>) -> Option<u32> {
    places.find(|place| place.what == Function::Foreign).map(|place| place.name)
}

fn function(name: &str) -> Function {
    let name = name.split('.').next().unwrap_or(name);
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    match known {
        Some((_, caller)) => Function::Known(*caller),
        None if takes_locks(name) => Function::Lock,
        None if ALLOCATES.iter().any(|start| name.starts_with(start)) => Function::Allocates,
        None => Function::Foreign,
    }
}

fn takes_locks(name: &str) -> bool {
    ["raw_spin_", "spin_lock", "lock_slowpath", "spin_trylock"].iter().any(|part| name.contains(part))
        || ["trace_", "__traceiter_", "event_trigger", "stacktrace_", "perf_trace_", "perf_tp_"]
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
        ffffffff81000700 t __kmalloc_noprof\n\
        ffffffff81000800 t do_anonymous_page.constprop.0\n\
        ffffffff81000900 t folio_lruvec_lock_irqsave\n\
        ffffffff81100700 D some_data\n\
        ffffffff81100720 b some_lock\n\
        ffffffff81100740 R constant\n\
        ffffffff81109000 B last\n\
        ffffffffc0000700 b lock_of_module\t[module]\n\
        0000000000000000 t free_one_page\n\
        nonsense\n";

    fn caller(chain: &[u64]) -> Option<Caller> {
        let callers = Callers::of(KALLSYMS.as_bytes()).unwrap();
        callers.stack(chain.iter().map(|offset| 0xffff_ffff_8100_0000 + offset)).caller
    }

    /// Returns the call site of a wait with this call chain, and the call site of a visit with this call
    /// chain.
    fn sites(chain: &[u64]) -> [Option<String>; 2] {
        let callers = Callers::of(KALLSYMS.as_bytes()).unwrap();
        let chain = || chain.iter().map(|offset| 0xffff_ffff_8100_0000 + offset);
        let name = |site: Option<u32>| site.map(|site| callers.name(site).to_owned());
        [name(callers.stack(chain()).site), name(callers.site(chain()))]
    }

    #[test]
    fn the_first_function_that_is_no_locks_decides() {
        assert_eq!(caller(&[0x123, 0x205, 0x310, 0x450]), Some(Caller::Drain));
        assert_eq!(caller(&[0x100, 0x205, 0x5ff, 0x610]), Some(Caller::Refill));
        assert_eq!(caller(&[0x205, 0x610]), Some(Caller::Alloc));
        assert_eq!(caller(&[0x205, 0x4aa, 0x310]), Some(Caller::Elsewhere));
    }

    #[test]
    fn a_call_site_is_outside_the_allocator_and_a_lock_is_named_after_the_function_that_takes_it() {
        let name = |name: &str| Some(name.to_owned());
        // The chain is a page fault, a refill and a zone lock.
        assert_eq!(sites(&[0x100, 0x205, 0x510, 0x610, 0x810]), [(); 2].map(|()| name("do_anonymous_page")));
        // A slab function is not a call site, because its caller is more informative.
        assert_eq!(sites(&[0x510, 0x610, 0x710, 0x810]), [(); 2].map(|()| name("do_anonymous_page")));
        assert_eq!(sites(&[0x100, 0x205, 0x910, 0x810])[0], name("folio_lruvec_lock_irqsave"));
        // The lock of a slab is not a zone lock. The call site of a wait for a slab's lock is the slab's
        // function.
        assert_eq!(sites(&[0x100, 0x205, 0x710, 0x810])[0], name("__kmalloc_noprof"));
        assert_eq!(sites(&[0x100, 0x205, 0x510, 0x610]), [None, None], "the chain is cut off");
        assert_eq!(sites(&[]), [None, None]);
    }

    #[test]
    fn a_lock_that_is_a_variable_has_its_name() {
        let callers = Callers::of(KALLSYMS.as_bytes()).unwrap();
        let variable = |offset: u64| callers.variable(0xffff_ffff_8100_0000 + offset);
        assert_eq!((variable(0x10_0720), variable(0x10_0724)), (Some("some_lock"), Some("some_lock")));
        assert_eq!(variable(0x10_0700), Some("some_data"));
        assert_eq!(variable(0x10_8000), None, "an address too far behind a variable has no name");
        assert_eq!(variable(0x10_9000), None, "an address behind the last variable has no name");
        assert_eq!((callers.variable(5), callers.variable(0xffff_8880_0000_1000)), (None, None));
        assert_eq!(callers.variable(0xffff_ffff_c000_0700), None, "a module's");
    }

    #[test]
    fn readers_of_proc_wait_for_zone_locks() {
        let text = "ffffffff81000100 t zoneinfo_show\nffffffff81000200 t pagetypeinfo_show\n\
            ffffffff81000300 t seq_read_iter\nffffffff81000400 t _raw_spin_rq_lock_irqsave\n";
        let callers = Callers::of(text.as_bytes()).unwrap();
        let stack = |chain: [u64; 2]| callers.stack(chain.map(|at| 0xffff_ffff_8100_0000 + at).into_iter());
        for function in [0x110, 0x210] {
            let stack = stack([function, 0x310]);
            assert_eq!(stack.caller, Some(Caller::Other));
            assert_eq!(stack.site.map(|site| callers.name(site)), Some("seq_read_iter"));
        }
        assert_eq!(stack([0x410, 0x310]).site.map(|site| callers.name(site)), Some("seq_read_iter"));
    }

    #[test]
    fn chains_that_say_nothing_are_not_known() {
        assert_eq!(caller(&[]), None);
        assert_eq!(caller(&[0x100, 0x210]), None);
        assert_eq!(Callers::default().stack([1, 2].into_iter()), CallStack::default());
        let callers = Callers::of(KALLSYMS.as_bytes()).unwrap();
        assert_eq!(callers.stack([5].into_iter()), CallStack::default(), "below all functions");
    }
}
