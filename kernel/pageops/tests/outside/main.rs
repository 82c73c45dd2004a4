//! Tests page operations through their public interface. The test that inspects a child's instructions is a
//! separate test target.

mod bytes;
mod memory;
mod orders;
mod parts;
mod poison;
