//! Page events of Linux kernels: event model, native file, importers.
