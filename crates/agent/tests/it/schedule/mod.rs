//! Schedules: when they are due, and that each due time runs once.

mod reference;
mod replicas;
mod scheduler;
mod timetable;
