//! Under construction.
#![forbid(unsafe_code)]

mod openapi;
mod patch;
pub mod resource;

pub use resource::{PrinterColumn, Registry, Resource, ResourceName};
