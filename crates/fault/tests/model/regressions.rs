//! What the fuzz target found, by name.
