//! When a schedule is due, and running what is.
