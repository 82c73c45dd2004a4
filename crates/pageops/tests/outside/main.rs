//! Page operations through their public interface. What looks at a child's instructions is a test target of its own.

mod bytes;
mod memory;
mod orders;
mod parts;
mod poison;
