//! Under construction.
#![forbid(unsafe_code)]

mod discovery;
mod openapi;
mod patch;
pub mod resource;

pub use resource::{PrinterColumn, Registry, Resource, ResourceName};
