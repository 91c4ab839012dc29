//! The embedded store: one folder, one writer, real tables.
