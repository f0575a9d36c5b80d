//! `#[derive(Meta)]`.
