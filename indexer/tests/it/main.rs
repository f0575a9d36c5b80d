//! The public API of kubewire-indexer, by behaviour.

mod store;
mod store_model;
