//! The counted operations. Each is a function that is never inlined, so that its name can be found.

use std::hint::black_box;

use pageset::{FastPath, Order, Pages, Pool, ReturnPolicy, Worker};
use pageset_bench::{CPU, Host, machine, machine_of_blocks};
use pageset_blocks::{BlockAllocator, CpuArrays};
use pageset_core::{PageAllocator, Request, policy};

/// One operation that is counted.
pub(crate) struct Entry {
    /// The name of the entry in the golden file.
    pub(crate) name: &'static str,
    /// The function that does it.
    pub(crate) function: &'static str,
    /// How often [`run`] performs it.
    pub(crate) operations: u64,
    /// Whether the entry's fast path is a restartable sequence.
    pub(crate) is_sequence: bool,
}

const fn sequence(name: &'static str, function: &'static str) -> Entry {
    Entry { name, function, operations: 0, is_sequence: true }
}

const fn counted(name: &'static str, function: &'static str, operations: u64) -> Entry {
    Entry { name, function, operations, is_sequence: false }
}

/// Number of pairs under valgrind.
const PAIRS: u64 = 1000;
/// Pages of the bulk entries: many times the size of an array.
const BULK: u64 = 10_000;

/// All entries.
pub(crate) const ENTRIES: &[Entry] = &[
    sequence("sequence alloc order 0", "sequence_alloc_0"),
    sequence("sequence alloc order 3", "sequence_alloc_3"),
    sequence("sequence alloc order 9", "sequence_alloc_9"),
    sequence("sequence alloc any order", "sequence_alloc_any"),
    sequence("sequence free any order", "sequence_free"),
    counted("lock pair order 0", "lock_pair_0", PAIRS),
    counted("lock pair order 3", "lock_pair_3", PAIRS),
    counted("lock pair order 9", "lock_pair_9", PAIRS),
    counted("lock bulk alloc order 0", "lock_bulk_alloc", BULK),
    counted("lock bulk free order 0", "lock_bulk_free", BULK),
    counted("core pair order 0", "core_pair_0", PAIRS),
    counted("core pair order 3", "core_pair_3", PAIRS),
    counted("core pair order 9", "core_pair_9", PAIRS),
    counted("blocks pair order 0", "blocks_pair_0", PAIRS),
    counted("blocks pair order 3", "blocks_pair_3", PAIRS),
    counted("blocks pair order 9", "blocks_pair_9", PAIRS),
    counted("blocks with arrays pair order 0", "arrays_pair_0", PAIRS),
    counted("blocks with arrays pair order 3", "arrays_pair_3", PAIRS),
    counted("blocks with arrays pair order 9", "arrays_pair_9", PAIRS),
];

const ORDER_0: Order = Order::ZERO;
const ORDER_3: Order = Order::new(3).unwrap();
const ORDER_9: Order = Order::THP;

/// Defines functions that can be found by their names.
macro_rules! entries {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => {
        $(#[inline(never)] fn $name($($argument: $type),*) $(-> $result)? $body)*
    };
}

entries! {
    sequence_alloc_0(pool: &Pool) -> Option<Pages<'_>> { pool.alloc(ORDER_0).ok() }
    sequence_alloc_3(pool: &Pool) -> Option<Pages<'_>> { pool.alloc(ORDER_3).ok() }
    sequence_alloc_9(pool: &Pool) -> Option<Pages<'_>> { pool.alloc(ORDER_9).ok() }
    sequence_alloc_any(pool: &Pool, order: Order) -> Option<Pages<'_>> { pool.alloc(order).ok() }
    sequence_free(pages: Pages<'_>) { drop(pages); }
    lock_pair_0(pool: &Pool) { pair(pool, ORDER_0); }
    lock_pair_3(pool: &Pool) { pair(pool, ORDER_3); }
    lock_pair_9(pool: &Pool) { pair(pool, ORDER_9); }
    lock_bulk_alloc(pool: &'static Pool, pages: &mut Vec<Pages<'static>>) {
        for _ in 0..BULK {
            pages.extend(pool.alloc(ORDER_0));
        }
    }
    lock_bulk_free(pages: &mut Vec<Pages<'_>>) { pages.clear(); }
    core_pair_0(core: &PageAllocator<'static, Host>) { core_pair(core, ORDER_0); }
    core_pair_3(core: &PageAllocator<'static, Host>) { core_pair(core, ORDER_3); }
    core_pair_9(core: &PageAllocator<'static, Host>) { core_pair(core, ORDER_9); }
    blocks_pair_0(blocks: &BlockAllocator<'static>) { blocks_pair(blocks, ORDER_0); }
    blocks_pair_3(blocks: &BlockAllocator<'static>) { blocks_pair(blocks, ORDER_3); }
    blocks_pair_9(blocks: &BlockAllocator<'static>) { blocks_pair(blocks, ORDER_9); }
    arrays_pair_0(arrays: &mut CpuArrays<'_>) { arrays_pair(arrays, ORDER_0); }
    arrays_pair_3(arrays: &mut CpuArrays<'_>) { arrays_pair(arrays, ORDER_3); }
    arrays_pair_9(arrays: &mut CpuArrays<'_>) { arrays_pair(arrays, ORDER_9); }
}

#[inline(always)]
fn pair(pool: &Pool, order: Order) {
    if let Ok(pages) = pool.alloc(order) {
        black_box(pages.as_ptr());
    }
}

#[inline(always)]
fn core_pair(core: &PageAllocator<'static, Host>, order: Order) {
    if let Ok(pfn) = core.alloc(CPU, &Request::new(order).movable()) {
        let _ = core.free(CPU, black_box(pfn), order);
    }
}

#[inline(always)]
fn blocks_pair(blocks: &BlockAllocator<'static>, order: Order) {
    if let Ok(pfn) = blocks.alloc(CPU, &Request::new(order).movable()) {
        let _ = blocks.free(CPU, black_box(pfn), order);
    }
}

#[inline(always)]
fn arrays_pair(arrays: &mut CpuArrays<'_>, order: Order) {
    if let Ok(pfn) = arrays.alloc(&Request::new(order).movable()) {
        let _ = arrays.free(black_box(pfn), order);
    }
}

fn pool(fast_path: FastPath) -> Result<&'static Pool, String> {
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    let builder = Pool::builder().size(256 << 20).fast_path(fast_path).returns(returns);
    builder.build().map(|pool| &*Box::leak(Box::new(pool))).map_err(|error| error.to_string())
}

/// Runs one entry for valgrind. Work in other functions before it is not counted.
pub(crate) fn run(name: &str) -> Result<(), String> {
    let repeat = |operation: &dyn Fn()| (0..PAIRS).for_each(|_| operation());
    let locks = |order: Order, operation: fn(&Pool)| {
        let pool = pool(FastPath::Locks)?;
        pair(black_box(pool), order);
        repeat(&|| operation(pool));
        Ok(())
    };
    let core = |order: Order, operation: fn(&PageAllocator<'static, Host>)| {
        let core = machine(policy::LINUX_6_18);
        core_pair(&core, order);
        repeat(&|| operation(&core));
        Ok(())
    };
    let blocks = |order: Order, operation: fn(&BlockAllocator<'static>)| {
        let blocks = machine_of_blocks();
        blocks_pair(&blocks, order);
        repeat(&|| operation(&blocks));
        Ok(())
    };
    let arrays = |order: Order, operation: fn(&mut CpuArrays<'_>)| {
        let blocks = machine_of_blocks();
        let mut arrays = CpuArrays::new(&blocks, CPU);
        arrays_pair(&mut arrays, order);
        (0..PAIRS).for_each(|_| operation(&mut arrays));
        Ok(())
    };
    match name {
        "lock pair order 0" => locks(ORDER_0, lock_pair_0),
        "lock pair order 3" => locks(ORDER_3, lock_pair_3),
        "lock pair order 9" => locks(ORDER_9, lock_pair_9),
        "core pair order 0" => core(ORDER_0, core_pair_0),
        "core pair order 3" => core(ORDER_3, core_pair_3),
        "core pair order 9" => core(ORDER_9, core_pair_9),
        "blocks pair order 0" => blocks(ORDER_0, blocks_pair_0),
        "blocks pair order 3" => blocks(ORDER_3, blocks_pair_3),
        "blocks pair order 9" => blocks(ORDER_9, blocks_pair_9),
        "blocks with arrays pair order 0" => arrays(ORDER_0, arrays_pair_0),
        "blocks with arrays pair order 3" => arrays(ORDER_3, arrays_pair_3),
        "blocks with arrays pair order 9" => arrays(ORDER_9, arrays_pair_9),
        "lock bulk alloc order 0" | "lock bulk free order 0" => {
            let pool = pool(FastPath::Locks)?;
            let mut pages = Vec::with_capacity(BULK as usize);
            // On first use, memory is known to be zero and takes another path. So use it once before.
            pages.extend((0..BULK).flat_map(|_| pool.alloc(ORDER_0)));
            pages.drain(..).for_each(drop);
            lock_bulk_alloc(pool, &mut pages);
            lock_bulk_free(&mut pages);
            Ok(())
        }
        // The program does not run sequences to count them. This call makes the sequences part of the
        // program.
        _ if name.starts_with("sequence") => sequences(),
        _ => Err(format!("no entry `{name}`")),
    }
}

fn sequences() -> Result<(), String> {
    let pool = pool(FastPath::Auto)?;
    let held = [sequence_alloc_0(pool), sequence_alloc_3(pool), sequence_alloc_9(pool)];
    held.into_iter().flatten().for_each(sequence_free);
    sequence_alloc_any(pool, black_box(ORDER_3)).into_iter().for_each(sequence_free);
    Ok(())
}
