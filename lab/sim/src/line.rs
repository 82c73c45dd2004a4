//! A cache line that several CPUs write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::cpu::VirtualCpu;
use crate::engine::Engine;
use crate::link::Link;

/// The value of `SharedLine::last` if no CPU has written the line yet.
const NOBODY: u32 = u32::MAX;

/// Models the cost of a cache line that several CPUs change by atomic operations. Each operation moves the
/// line to the CPU that does the operation. The time of a move grows with the distance between the previous
/// CPU and the next CPU of the line. Operations on the line happen one after another. The line holds no data.
#[derive(Debug)]
pub struct SharedLine {
    last: AtomicU32,
    free_at: AtomicU64,
    /// The link that carries the line between bricks (groups of nodes). Without a link, the time of a move
    /// depends only on the distance between the previous CPU and the next CPU of the line.
    link: Option<Arc<Link>>,
}

impl SharedLine {
    /// Makes a line that no CPU has fetched yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: AtomicU32::new(NOBODY), free_at: AtomicU64::new(0), link: None }
    }

    /// Makes a line that no CPU has fetched yet. If `link` is not `None`, the line moves over this link
    /// between bricks.
    #[must_use]
    pub fn over(link: Option<Arc<Link>>) -> Self {
        Self { link, ..Self::new() }
    }

    /// Does an atomic read-modify-write on the line. The running CPU waits for earlier operations on the
    /// line.
    pub fn rmw(&self, cpu: &VirtualCpu) {
        self.rmw_by(cpu.engine());
    }

    /// Does an atomic read-modify-write like [`rmw`](Self::rmw), for the virtual CPU that runs on this OS
    /// thread now. Outside a simulation, this function does nothing.
    pub fn rmw_here(&self) {
        crate::engine::current::with(|engine| {
            if let Some(engine) = engine {
                self.rmw_by(engine);
            }
        });
    }

    pub(crate) fn rmw_by(&self, engine: &Engine) {
        engine.sync();
        let (me, clock) = (engine.cpu_index(), &engine.cpu().clock);
        let last = self.last.swap(me, Relaxed);
        let line = if last == NOBODY { 0 } else { engine.line(last, me) };
        let now = clock.get();
        let line = match (&self.link, &engine.prices.planes) {
            (Some(link), Some(planes)) if last != NOBODY && engine.is_between_bricks(last, me) => {
                line.max(planes.busy(link.waiting(now)))
            }
            _ => line,
        };
        let done = now.max(self.free_at.load(Relaxed)) + engine.prices.atomic + line;
        self.free_at.store(done, Relaxed);
        if let Some(link) = &self.link {
            link.waits_until(done);
        }
        clock.set(done);
        engine.note(done);
    }
}

impl Default for SharedLine {
    fn default() -> Self {
        Self::new()
    }
}
