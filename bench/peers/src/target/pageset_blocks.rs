//! `pageset-blocks` alone: pageblocks that CPUs own, called with a CPU number; or through arrays that each thread has to itself.

use pageset_blocks::RemoteFrees;

super::zone::block_targets!(pageset_blocks, |pages: BlockAllocator<'static>| {
    pages.with_remote_frees(RemoteFrees::Kept)
});
