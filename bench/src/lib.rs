//! The load generator and the processes that it measures. `make bench` prints the table.
