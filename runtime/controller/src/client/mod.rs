//! Clients around a client.

mod dry_run;
mod field_owner;
mod intercept;
mod query;

pub use dry_run::dry_run;
pub use field_owner::field_owner;
pub use intercept::intercept;
