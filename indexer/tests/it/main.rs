//! The public API of kubewire-indexer, by behaviour.

mod concurrency;
mod index_failures;
mod indexer;
mod keys;
mod kube;
mod lister;
mod own_struct;
mod selector;
mod store;
mod store_model;
mod undelta_store;
