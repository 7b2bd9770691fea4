//! `embody up` as browsers and programs use it.

mod access;
mod chat;
mod limits;
mod page;
mod records;
pub(crate) mod served;
