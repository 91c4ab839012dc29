//! A client of the gateway: every endpoint as a method, errors as values.
