//! Compares the cost of a page in C with its cost in Rust: `cargo run --profile dist -p pageset-capi
//! --example cost`. Needs a C compiler.
//!
//! In each round, one process measures four ways: two loops in Rust, C with libpageset.a, and C with
//! libpageset.so. The example prints the medians and quartiles of the rounds, in nanoseconds to allocate and
//! free a page. The example also prints the differences between C and Rust in the same round.
//!
//! In the row `Rust`, the pool is inlined into the loop. The row `Rust, called` calls functions that do not
//! know the order in advance. C cannot be faster than the row `Rust, called`.

use std::ffi::{CStr, CString, c_int, c_void};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use pageset::{Order, Pages, Pool, ReturnPolicy, Worker};

const ROUNDS: usize = 101;
/// The number of pages that one round allocates.
const PAGES: usize = 200_000;
/// The number of pages that a thread holds at a time, equal to `HELD` in cost.c.
const HELD: usize = 256;

type Run = extern "C" fn(*mut c_void, usize) -> c_int;

/// The C program, with one of the libraries.
struct Program {
    pool: *mut c_void,
    pairs: Run,
    held: Run,
    bulk: Run,
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let example = std::env::current_exe()?;
    let libraries = example.parent().and_then(Path::parent).ok_or("the example is in no directory")?;
    let made = tempfile::tempdir()?;
    let programs = [
        Program::load(made.path(), &libraries.join("deps/libpageset_capi.a"))?,
        Program::load(made.path(), &libraries.join("deps/libpageset_capi.so"))?,
    ];
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    let pool = Pool::builder().size(256 << 20).returns(returns).build()?;
    println!("restartable sequences: {}, {ROUNDS} rounds of {PAGES} pages", pool.uses_rseq());
    let c = |which: usize, run: fn(&Program) -> Run, count| {
        programs[which - 2].run(run(&programs[which - 2]), count)
    };
    table("one page at a time", |which| match which {
        0 => pairs(&pool),
        1 => called_pairs(&pool),
        _ => c(which, |program| program.pairs, PAGES),
    });
    table("256 pages at a time", |which| match which {
        0 => held(&pool),
        1 => called_held(&pool),
        _ => c(which, |program| program.held, PAGES / HELD),
    });
    table("256 pages by one call", |which| match which {
        0 => bulk(&pool),
        1 => called_bulk(&pool),
        _ => c(which, |program| program.bulk, PAGES / HELD),
    });
    Ok(())
}

impl Program {
    fn load(directory: &Path, library: &Path) -> Outcome<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = directory.join(library.extension().ok_or("a library has a kind")?);
        let status = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .arg(&program)
            .arg("-I")
            .arg(root.join("include"))
            .arg(root.join("examples/cost.c"))
            .arg(library)
            // With `--exclude-libs`, calls go directly to the static library, as in a program that is linked
            // with the static library.
            .args(["-Wl,--exclude-libs,ALL", "-lpthread", "-ldl", "-lm"])
            .status()?;
        if !status.success() {
            return Err(format!("cc: {status}").into());
        }
        let path = CString::new(program.into_os_string().into_encoded_bytes())?;
        // SAFETY: the path is a C string, and loading this library runs no code that could do harm.
        let loaded = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if loaded.is_null() {
            // SAFETY: the last call failed, so there is a message.
            let message = unsafe { libc::dlerror() };
            // SAFETY: the message is a C string until the next call.
            return Err(unsafe { CStr::from_ptr(message) }.to_string_lossy().into());
        }
        let symbol = |name: &CStr| {
            // SAFETY: the library is never closed, and the name is a C string.
            let symbol = unsafe { libc::dlsym(loaded, name.as_ptr()) };
            assert!(!symbol.is_null(), "{name:?} is in cost.c");
            symbol
        };
        // SAFETY: the function has this type in cost.c.
        let make: extern "C" fn() -> *mut c_void = unsafe { std::mem::transmute(symbol(c"cost_pool")) };
        // SAFETY: as above.
        let pairs: Run = unsafe { std::mem::transmute(symbol(c"cost_pairs")) };
        // SAFETY: as above.
        let held: Run = unsafe { std::mem::transmute(symbol(c"cost_held")) };
        // SAFETY: as above.
        let bulk: Run = unsafe { std::mem::transmute(symbol(c"cost_bulk")) };
        Ok(Self { pool: make(), pairs, held, bulk })
    }

    fn run(&self, what: Run, count: usize) -> f64 {
        let begun = Instant::now();
        assert_eq!(what(self.pool, count), 0, "no call fails");
        per_page(begun)
    }
}

fn pairs(pool: &Pool) -> f64 {
    let begun = Instant::now();
    for _ in 0..PAGES {
        black_box(pool.alloc(Order::ZERO).expect("memory").as_ptr());
    }
    per_page(begun)
}

#[inline(never)]
fn call_alloc(pool: &Pool, order: Order) -> Pages<'_> {
    pool.alloc(order).expect("memory")
}

#[inline(never)]
fn call_free(pages: Pages<'_>) {
    drop(pages);
}

fn called_pairs(pool: &Pool) -> f64 {
    let order = black_box(Order::ZERO);
    let begun = Instant::now();
    for _ in 0..PAGES {
        call_free(call_alloc(pool, order));
    }
    per_page(begun)
}

fn called_held(pool: &Pool) -> f64 {
    let order = black_box(Order::ZERO);
    let mut pages: Vec<Pages<'_>> = Vec::with_capacity(HELD);
    let begun = Instant::now();
    for _ in 0..PAGES / HELD {
        pages.extend((0..HELD).map(|_| call_alloc(pool, order)));
        black_box(&mut pages).drain(..).for_each(call_free);
    }
    per_page(begun)
}

fn held(pool: &Pool) -> f64 {
    let mut pages: Vec<Pages<'_>> = Vec::with_capacity(HELD);
    let begun = Instant::now();
    for _ in 0..PAGES / HELD {
        pages.extend((0..HELD).map(|_| pool.alloc(Order::ZERO).expect("memory")));
        black_box(&mut pages).clear();
    }
    per_page(begun)
}

fn bulk(pool: &Pool) -> f64 {
    let mut pages: Vec<Pages<'_>> = Vec::with_capacity(HELD);
    let begun = Instant::now();
    for _ in 0..PAGES / HELD {
        pool.alloc_bulk(HELD, &mut pages).expect("memory");
        black_box(&mut pages).clear();
    }
    per_page(begun)
}

fn called_bulk(pool: &Pool) -> f64 {
    let mut pages: Vec<Pages<'_>> = Vec::with_capacity(HELD);
    let begun = Instant::now();
    for _ in 0..PAGES / HELD {
        pool.alloc_bulk(HELD, &mut pages).expect("memory");
        black_box(&mut pages).drain(..).for_each(call_free);
    }
    per_page(begun)
}

fn per_page(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e9 / PAGES as f64
}

/// In each round, measures the four ways one after the other. After all rounds, prints a table of their
/// times.
fn table(name: &str, mut run: impl FnMut(usize) -> f64) {
    (0..4).map(&mut run).for_each(drop);
    let rounds: Vec<_> = (0..ROUNDS).map(|_| [run(0), run(1), run(2), run(3)]).collect();
    println!("{name:22}  median  quartiles  more than Rust");
    for (which, who) in
        ["Rust", "Rust, called", "C, libpageset.a", "C, libpageset.so"].into_iter().enumerate()
    {
        let [low, middle, high] = quartiles(rounds.iter().map(|round| round[which]));
        let [less, more, most] = quartiles(rounds.iter().map(|round| round[which] - round[0]));
        println!("  {who:20} {middle:7.2}  {low:.2}-{high:.2}  {more:5.2} ({less:.2} to {most:.2})");
    }
}

fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}
