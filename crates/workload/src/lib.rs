//! Drives pageset-core: replay of recordings.
