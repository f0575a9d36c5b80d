//! The public API of kubewire-indexer, by behaviour.

mod kube;
mod own_struct;
mod selector;
mod store;
mod store_model;
