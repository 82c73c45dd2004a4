//! The end of an address space.

use alloc::vec::Vec;

use pageset_core::CpuId;

use super::AddressSpace;
use crate::atomic::Ordering;
use crate::pte::{Meaning, Pte};
use crate::table::TableId;
use crate::task::Local;
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// Frees every page and table. Nobody refers to the address space any more.
    fn tear_down(&self) {
        let mut local = Local::new(CpuId(self.last_cpu.load(Ordering::Relaxed)), 0, self.id);
        let (mut blocks, mut tables) = (Vec::new(), Vec::new());
        self.take_apart(&mut local, self.root, self.machine.geometry.root_level(), &mut blocks, &mut tables);
        self.machine.free_blocks(&mut local, &mut blocks);
        self.machine.free_tables(&mut local, &mut tables);
    }

    fn take_apart(
        &self,
        local: &mut Local,
        table: TableId,
        level: u8,
        blocks: &mut Vec<(pageset_core::Pfn, pageset_core::Order)>,
        tables: &mut Vec<TableId>,
    ) {
        for word in self.machine.tables.words_of(table) {
            let old = Pte::from_bits(word.swap(0, Ordering::AcqRel));
            match old.meaning(level) {
                Meaning::Table(below) => self.take_apart(local, below, level - 1, blocks, tables),
                Meaning::Page | Meaning::Reclaimed(_) => {
                    self.drop_page(local, old, blocks);
                }
                Meaning::Empty | Meaning::Busy => {}
            }
        }
        tables.push(table);
        self.machine.free_blocks(local, blocks);
    }
}

impl<W: World> Drop for AddressSpace<W> {
    fn drop(&mut self) {
        self.tear_down();
    }
}
