//! Schedules: when they are due, and that each due time is run once.

mod reference;
mod replicas;
mod scheduler;
mod timetable;
