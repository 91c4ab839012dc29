//! Golden cases of the original.
