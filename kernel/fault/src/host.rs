//! A world made of a lock type, an allocator and a memory. Use a [`Host`] for real threads if the engine need
//! not measure times.

use core::marker::PhantomData;

use pageset_core::Platform;
use pageset_core::lock_api::RawMutex;

use crate::frames::FrameSource;
use crate::world::{Memory, World};

/// A platform for the allocator of `pageset-core`, with locks of type `R` and without events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Locks<R>(PhantomData<fn() -> R>);

impl<R> Locks<R> {
    /// Makes the platform.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<R: RawMutex> Platform for Locks<R> {
    type RawLock = R;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

/// A world with locks of type `R`, frames from an `F`, and page contents in an `M`.
///
/// ```
/// use pageset_fault::{Bump, Geometry, Host, Engine, EngineConfig, NoMemory};
///
/// let host = Host::<parking_lot::RawMutex, _, _>::new(Bump::new(0..4096), NoMemory);
/// let engine = Engine::new(host, &EngineConfig::new(Geometry::PAGES_4K, 2, 4096));
/// assert_eq!(engine.cpus(), 2);
/// ```
#[derive(Debug)]
pub struct Host<R, F, M> {
    frames: F,
    memory: M,
    locks: Locks<R>,
}

impl<R, F, M> Host<R, F, M> {
    /// Builds a world from a frame source and a memory.
    #[must_use]
    pub const fn new(frames: F, memory: M) -> Self {
        Self { frames, memory, locks: Locks::new() }
    }
}

impl<R: RawMutex, F: Sync, M: Sync> Platform for Host<R, F, M> {
    type RawLock = R;
    type Events = ();

    fn events(&self) -> &() {
        self.locks.events()
    }
}

impl<R: RawMutex, F: FrameSource + Sync, M: Memory + Sync> World for Host<R, F, M> {
    type Frames = F;
    type Memory = M;

    #[inline]
    fn frames(&self) -> &F {
        &self.frames
    }

    #[inline]
    fn memory(&self) -> &M {
        &self.memory
    }
}
