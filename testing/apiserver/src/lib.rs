//! Under construction.
#![forbid(unsafe_code)]

pub mod resource;

pub use resource::{PrinterColumn, Registry, Resource, ResourceName};
