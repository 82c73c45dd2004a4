//! The common part of targets over one zone of this project's allocators: an arena, and an allocator of its
//! page numbers.

use pageset_core::{Config, ConfigError, NodeId, ZoneConfig, ZoneKind};

/// The most CPUs that an allocator serves.
const CPUS: usize = 2;

/// An allocator of one zone that spans `pages` pages.
pub(super) fn of_pages<A>(
    count: usize,
    new: impl FnOnce(Config<'_>) -> Result<A, ConfigError>,
) -> Result<A, String> {
    let span = 0..count as u64;
    let regions = [span.clone()];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span, regions: &regions }];
    new(Config::new(&zones, &[NodeId(0); CPUS])).map_err(|error| error.to_string())
}

/// The operations of a target with an `arena` and an allocator `pages`, which is called with a CPU number.
macro_rules! operations {
    () => {
        fn memory(&self) -> Option<*mut [u8]> {
            Some(self.arena.memory())
        }

        #[inline]
        fn alloc(&self, cpu: usize, order: u32) -> Option<Block> {
            let request = Request::new(Order::new(order as u8)?).movable();
            let pfn = self.pages.alloc(CpuId(cpu as u32), &request).ok()?;
            // SAFETY: the zone spans the arena's pages, and the allocator hands each out once.
            unsafe { self.arena.block(pfn.0 as usize) }
        }

        #[inline]
        fn free(&self, cpu: usize, block: Block, order: u32) {
            let pfn = Pfn(self.arena.page(block) as u64);
            let order = Order::new(order as u8).expect("it was allocated with this order");
            self.pages.free(CpuId(cpu as u32), pfn, order).expect("it is allocated");
        }

        #[inline]
        fn alloc_pages(&self, cpu: usize, pages: usize) -> Option<Block> {
            let request = Request::new(Order::ZERO).movable();
            let pfn = self.pages.alloc_exact(CpuId(cpu as u32), pages as u64, &request).ok()?;
            // SAFETY: the zone spans the arena's pages, and the allocator hands each out once.
            unsafe { self.arena.block(pfn.0 as usize) }
        }

        #[inline]
        fn free_pages(&self, cpu: usize, block: Block, pages: usize) {
            let first = self.arena.page(block) as u64;
            self.pages.free_range(CpuId(cpu as u32), first..first + pages as u64).expect("it is allocated");
        }
    };
}

/// Two targets of a crate with a `BlockAllocator` and `CpuArrays`: the allocator alone, called with a CPU
/// number, and the allocator with arrays for each thread.
macro_rules! block_targets {
    ($of:ident) => {
        use std::cell::Cell;
        use std::ptr;

        use pageset_core::{CpuId, Order, Pfn, Request};
        use $of::{BlockAllocator, CpuArrays, Tables};

        use super::Target;
        use super::arena::Arena;
        use super::block::Block;

        /// One zone over an arena.
        pub(super) struct Alone {
            arena: Arena,
            pages: BlockAllocator<'static>,
        }

        impl Target for Alone {
            type Block = Block;

            fn open(count: usize) -> Result<Self, String> {
                let pages = super::zone::of_pages(count, |config| {
                    BlockAllocator::new(&config, Tables::on_heap(&config)?)
                })?;
                Ok(Self { arena: Arena::new(count)?, pages })
            }

            super::zone::operations!();
        }

        thread_local! {
            /// The thread's arrays, found as a kernel's CPU finds its own data. Null before the thread
            /// attaches, and after it detaches.
            static ARRAYS: Cell<*mut CpuArrays<'static>> = const { Cell::new(ptr::null_mut()) };
        }

        /// The same zone, with arrays for each thread.
        pub(super) struct Arrays {
            /// The allocator, which lives as long as the process. A process has only one target.
            alone: &'static Alone,
        }

        impl Arrays {
            /// Calls `work` with the calling thread's arrays.
            #[inline]
            fn with<R>(work: impl FnOnce(&mut CpuArrays<'static>) -> R) -> R {
                // SAFETY: the box that `attach` made lives until the thread detaches, and is used here only:
                // by this thread, which knows it alone, and once at a time, since no `work` comes back here.
                let arrays = unsafe { ARRAYS.get().as_mut() };
                work(arrays.expect("the thread is attached"))
            }
        }

        impl Target for Arrays {
            type Block = Block;

            fn open(count: usize) -> Result<Self, String> {
                Ok(Self { alone: Box::leak(Box::new(Alone::open(count)?)) })
            }

            fn memory(&self) -> Option<*mut [u8]> {
                self.alone.memory()
            }

            fn attach(&self, cpu: usize) {
                let arrays = Box::new(CpuArrays::new(&self.alone.pages, CpuId(cpu as u32)));
                ARRAYS.set(Box::into_raw(arrays));
            }

            fn detach(&self, _: usize) {
                let arrays = ARRAYS.replace(ptr::null_mut());
                assert!(!arrays.is_null(), "the thread is attached");
                // SAFETY: `attach` made it of a box, and no other code can find it any more.
                drop(unsafe { Box::from_raw(arrays) });
            }

            #[inline]
            fn alloc(&self, _: usize, order: u32) -> Option<Block> {
                let request = Request::new(Order::new(order as u8)?).movable();
                let pfn = Self::with(|arrays| arrays.alloc(&request)).ok()?;
                // SAFETY: the zone spans the arena's pages, and the allocator hands each out once, since none
                // is freed twice.
                unsafe { self.alone.arena.block(pfn.0 as usize) }
            }

            #[inline]
            fn free(&self, _: usize, block: Block, order: u32) {
                let pfn = Pfn(self.alone.arena.page(block) as u64);
                let order = Order::new(order as u8).expect("it was allocated with this order");
                Self::with(|arrays| arrays.free(pfn, order)).expect("it is allocated");
            }

            #[inline]
            fn alloc_pages(&self, cpu: usize, pages: usize) -> Option<Block> {
                self.alone.alloc_pages(cpu, pages)
            }

            #[inline]
            fn free_pages(&self, cpu: usize, block: Block, pages: usize) {
                self.alone.free_pages(cpu, block, pages);
            }
        }
    };
}

pub(super) use {block_targets, operations};
