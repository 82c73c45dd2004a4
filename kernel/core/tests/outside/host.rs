//! The host of the tests: parking_lot locks, any event sink, tables on the heap.

use pageset_core::{Config, EventSink, Order, PageAllocator, Platform, Tables};

/// A host whose events go to `E`.
#[derive(Debug, Default)]
pub(crate) struct Host<E = ()>(pub(crate) E);

impl<E: EventSink> Platform for Host<E> {
    type RawLock = parking_lot::RawMutex;
    type Events = E;

    fn events(&self) -> &E {
        &self.0
    }
}

/// An allocator of the tests.
pub(crate) type Allocator<E = ()> = PageAllocator<'static, Host<E>>;

/// An allocator for `config`, with its tables on the heap.
#[track_caller]
pub(crate) fn build<E: EventSink + Default>(config: &Config<'_>) -> Allocator<E> {
    let tables = Tables::on_heap(config).expect("spans of a sensible size");
    PageAllocator::new(Host::default(), config, tables).expect("a configuration without contradictions")
}

/// The order with this number.
#[track_caller]
pub(crate) fn order(order: u8) -> Order {
    Order::new(order).expect("an order")
}
