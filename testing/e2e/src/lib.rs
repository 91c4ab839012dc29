//! Tests of the parts together; the tests are in `tests/`.
