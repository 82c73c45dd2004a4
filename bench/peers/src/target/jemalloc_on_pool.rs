//! jemalloc whose extents come from a pool, by the hooks of `pool/capi/examples/jemalloc_hooks.c`.

use std::ffi::{CString, c_int, c_void};
use std::ptr;

use pageset_capi::Config;
use tikv_jemalloc_sys::extent_hooks_t;

use super::block::Block;
use super::jemalloc::Jemalloc;
use super::{Target, bytes};

unsafe extern "C" {
    /// Defined in build.rs: hooks for a pool, which live as long as the process. Null if there are none.
    fn peers_pool_hooks(pool: *mut c_void) -> *mut extent_hooks_t;
}

/// As many arenas over a pool as there are CPUs. Each thread uses the arena of its CPU, through jemalloc's
/// own caches, as with the target `jemalloc`.
#[derive(Debug)]
pub(super) struct JemallocOnPool {
    jemalloc: Jemalloc,
    arenas: Vec<u32>,
}

impl Target for JemallocOnPool {
    type Block = Block;

    fn open(pages: usize) -> Result<Self, String> {
        // jemalloc splits extents, so it needs more addresses than pages. They cost only address space.
        let config = Config { bytes: 2 * pages * bytes(0) + (256 << 20), ..Config::default() };
        let mut pool = std::mem::MaybeUninit::new(ptr::null_mut());
        said("pageset_create", pageset_capi::pageset_create(&raw const config, Some(&mut pool)))?;
        // SAFETY: written by the call, and null before it.
        let pool = unsafe { pool.assume_init() };
        // SAFETY: the function of build.rs, which takes any pool.
        let mut hooks = unsafe { peers_pool_hooks(pool.cast()) };
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut arenas = vec![0_u32; cpus];
        for arena in &mut arenas {
            control("arenas.create", Some(arena), Some(&mut hooks))?;
            // The largest block of a pool.
            let mut limit = 4_usize << 20;
            control::<u32, _>(&format!("arena.{arena}.retain_grow_limit"), None, Some(&mut limit))?;
        }
        Ok(Self { jemalloc: Jemalloc::open(pages)?, arenas })
    }

    fn attach(&self, cpu: usize) {
        let mut arena = self.arenas[cpu % self.arenas.len()];
        let outcome = control::<u32, _>("thread.arena", None, Some(&mut arena));
        outcome.expect("the arena is there");
    }

    #[inline]
    fn alloc(&self, cpu: usize, order: u32) -> Option<Block> {
        self.jemalloc.alloc(cpu, order)
    }

    #[inline]
    fn free(&self, cpu: usize, block: Block, order: u32) {
        self.jemalloc.free(cpu, block, order);
    }
}

/// `mallctl`: reads the old value, writes the new one.
fn control<O, N>(name: &str, old: Option<&mut O>, new: Option<&mut N>) -> Result<(), String> {
    let c_name = CString::new(name).map_err(|error| error.to_string())?;
    let mut old_bytes = size_of::<O>();
    let (old, old_bytes) = match old {
        Some(old) => (ptr::from_mut(old).cast::<c_void>(), &raw mut old_bytes),
        None => (ptr::null_mut(), ptr::null_mut()),
    };
    let (new, new_bytes) = match new {
        Some(new) => (ptr::from_mut(new).cast::<c_void>(), size_of::<N>()),
        None => (ptr::null_mut(), 0),
    };
    // SAFETY: a name, and variables with their sizes, which jemalloc compares with those that it expects.
    let error = unsafe { tikv_jemalloc_sys::mallctl(c_name.as_ptr(), old, old_bytes, new, new_bytes) };
    said(name, error)
}

fn said(what: &str, error: c_int) -> Result<(), String> {
    match error {
        0 => Ok(()),
        error => Err(format!("{what}: {}", std::io::Error::from_raw_os_error(error))),
    }
}
