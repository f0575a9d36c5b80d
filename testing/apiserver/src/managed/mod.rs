//! PURE. Who owns which fields of an object: server-side apply, and the bookkeeping of all other writes.
//!
//! As the real server's structured merge: a [`FieldSet`] says which fields, a [`Schema`] how lists and objects fall into
//! fields, [`shape`] which fields a value has and which differ between two, [`merge`] what becomes of an object when a
//! configuration is applied, and [`Managers`] keeps one set for each manager, as `metadata.managedFields` shows them.

mod field_set;
mod managers;
mod merge;
mod schema;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use managers::{Conflict, Managers, Writer, message};
pub(crate) use schema::Schema;
pub(crate) use shape::{check, keyless};
