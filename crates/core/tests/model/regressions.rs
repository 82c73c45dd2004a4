//! What random machines and operations once found, by name.
