//! Under construction.
#![forbid(unsafe_code)]

mod accept;
mod discovery;
mod openapi;
mod patch;
pub mod resource;
mod table;

pub use resource::{PrinterColumn, Registry, Resource, ResourceName};
