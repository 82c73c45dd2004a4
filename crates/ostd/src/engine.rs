//! Which allocator it is, and what it asks of OSTD.

use ostd::cpu::PinCurrentCpu;
use ostd::irq::{self, DisabledLocalIrqGuard};
use ostd::task::{DisabledPreemptGuard, disable_preempt};
use pageset_blocks::BlockAllocator;
use pageset_core::{Config, ConfigError, FrameAllocator, PageAllocator, Platform};

use crate::SpinLock;

/// A page-frame allocator that can be OSTD's.
pub trait Engine: FrameAllocator + Send + Sync + Sized + 'static {
    /// Its own memory.
    type Tables;
    /// What keeps a task on its CPU, and the world away from it, during an operation.
    type Pin: PinCurrentCpu;

    /// Takes its tables from the heap.
    ///
    /// # Errors
    /// If a zone spans too many frames.
    fn tables(config: &Config<'_>) -> Result<Self::Tables, ConfigError>;

    /// Builds it.
    ///
    /// # Errors
    /// If the configuration contradicts itself.
    fn build(config: &Config<'_>, tables: Self::Tables) -> Result<Self, ConfigError>;

    /// Begins an operation.
    fn pin() -> Self::Pin;
}

// ANCHOR: platform
/// What OSTD supplies to the core: a spin lock, and nobody who listens to events.
#[derive(Debug)]
pub struct Ostd;

impl Platform for Ostd {
    type RawLock = SpinLock;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}
// ANCHOR_END: platform

/// Linux's allocator has locks, which an interrupt must not find taken by its own CPU: interrupts are off.
impl Engine for PageAllocator<'static, Ostd> {
    type Tables = pageset_core::Tables<'static, Ostd>;
    type Pin = DisabledLocalIrqGuard;

    fn tables(config: &Config<'_>) -> Result<Self::Tables, ConfigError> {
        Self::Tables::on_heap(config)
    }

    fn build(config: &Config<'_>, tables: Self::Tables) -> Result<Self, ConfigError> {
        Self::new(Ostd, config, tables)
    }

    // ANCHOR: pin_linux
    #[inline]
    fn pin() -> Self::Pin {
        irq::disable_local()
    }
    // ANCHOR_END: pin_linux
}

/// Ours has no lock, so interrupts stay on; only the task must not move.
impl Engine for BlockAllocator<'static> {
    type Tables = pageset_blocks::Tables<'static>;
    type Pin = DisabledPreemptGuard;

    fn tables(config: &Config<'_>) -> Result<Self::Tables, ConfigError> {
        Self::Tables::on_heap(config)
    }

    fn build(config: &Config<'_>, tables: Self::Tables) -> Result<Self, ConfigError> {
        Self::new(config, tables)
    }

    // ANCHOR: pin_own
    #[inline]
    fn pin() -> Self::Pin {
        disable_preempt()
    }
    // ANCHOR_END: pin_own
}
