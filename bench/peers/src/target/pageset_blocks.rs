//! `pageset-blocks` alone: pageblocks that CPUs reserve, called with a CPU number; or through arrays that
//! each thread has to itself.

super::zone::block_targets!(pageset_blocks);
