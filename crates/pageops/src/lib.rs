//! Clear and copy pages of 4 KiB to 1 GiB, with the part that is about to be touched last.
#![no_std]
