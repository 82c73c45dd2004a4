//! Address spaces and anonymous page faults over `pageset-core`, with selectable locking and accounting.
#![no_std]
