//! The page cache, and the inodes of its files. When memory is needed, the file that was used longest ago
//! leaves the cache first.

use std::collections::VecDeque;

use super::random::Random;
use super::slots::{Chain, Slot, Slots};

/// Cached files.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Files in the cache, in the order of their last use. The first file was used longest ago.
    cached: VecDeque<File>,
    inodes: Vec<InodeSlab>,
    unused: Vec<u32>,
    /// The block of inodes that still has room for new inodes.
    open: Option<u32>,
}

/// A file: its cached pages, if there are any, and the block that contains its inode.
#[derive(Debug)]
struct File {
    pages: Chain,
    slab: u32,
}

/// A block of inodes. The block becomes free when its last inode is freed.
#[derive(Debug)]
struct InodeSlab {
    block: Chain,
    inodes: u32,
}

impl Files {
    /// Adds a file. If no block has room for the file's inode, calls `block` to allocate a new block.
    pub(super) fn add(&mut self, pages: Chain, inodes_in_slab: u32, block: impl FnOnce(&mut Chain)) {
        let slab = self.open.unwrap_or_else(|| {
            let slab = self.unused.pop().unwrap_or_else(|| {
                self.inodes.push(InodeSlab { block: Chain::EMPTY, inodes: 0 });
                self.inodes.len() as u32 - 1
            });
            block(&mut self.inodes[slab as usize].block);
            slab
        });
        let inodes = &mut self.inodes[slab as usize].inodes;
        *inodes += 1;
        self.open = (*inodes < inodes_in_slab).then_some(slab);
        self.cached.push_back(File { pages, slab });
    }

    /// Drops the file that was used longest ago, unless this file was used again. A file that was used again
    /// moves to the end of the queue, and `drop_one` tries the next file. Returns `false` if the cache has no
    /// file.
    pub(super) fn drop_one(
        &mut self,
        slots: &mut Slots,
        random: &mut Random,
        used_again_permille: u32,
        mut free: impl FnMut(Slot),
    ) -> bool {
        let file = loop {
            let Some(file) = self.cached.pop_front() else { return false };
            if !random.permille(used_again_permille) {
                break file;
            }
            self.cached.push_back(file);
        };
        let mut pages = file.pages;
        while let Some(slot) = slots.pop(&mut pages) {
            free(slot);
        }
        let slab = &mut self.inodes[file.slab as usize];
        slab.inodes -= 1;
        if slab.inodes == 0 && self.open != Some(file.slab) {
            while let Some(slot) = slots.pop(&mut slab.block) {
                free(slot);
            }
            self.unused.push(file.slab);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_inodes_goes_with_the_last_of_them() {
        let (mut slots, mut files, mut random) = (Slots::default(), Files::default(), Random::new(1));
        for _ in 0..5 {
            let mut pages = Chain::EMPTY;
            slots.add(&mut pages, 0);
            let mut block = None;
            files.add(pages, 2, |chain| block = Some(*chain));
            if block.is_some() {
                let slab = files.inodes.last_mut().unwrap();
                slots.add(&mut slab.block, 2);
            }
        }
        assert_eq!(slots.frames, 5 + 3 * 4);
        let mut freed = Vec::new();
        for _ in 0..5 {
            let mut of_file = 0;
            assert!(files.drop_one(&mut slots, &mut random, 0, |_| of_file += 1));
            freed.push(of_file);
        }
        assert_eq!(freed, [1, 2, 1, 2, 1], "the last block still gets new inodes");
        assert!(!files.drop_one(&mut slots, &mut random, 0, |_| {}));
    }
}
