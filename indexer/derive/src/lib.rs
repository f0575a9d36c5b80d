//! `#[derive(Meta)]` for kubewire-indexer, which re-exports it under its feature `derive`: see there.
//!
//! ```
//! use kubewire_indexer::{Meta, ObjectId};
//!
//! #[derive(Meta)]
//! struct PodBrief {
//!     metadata: ObjectId,
//!     phase: String,
//! }
//! ```
#![forbid(unsafe_code)]

mod attributes;
mod expand;

use proc_macro::TokenStream;

/// Implements `Meta` for a user's own struct, so that an `Arc` of it is an object.
///
/// The field `metadata`, or the one marked `#[kubewire(metadata)]`, must implement `Metadata`: `ObjectId`,
/// `LabeledId`, or with the feature `kube` an `ObjectMeta`. Labels come from it too, unless a field that implements
/// `LabelMap` is marked `#[kubewire(labels)]`.
///
/// `#[kubewire(resource = Pod)]` on the struct also implements `Represents`, which says what to list for it.
/// `#[kubewire(crate = path)]` names kubewire-indexer where it goes under another name.
///
/// ```
/// use std::collections::BTreeMap;
/// use kubewire_indexer::{Id, Meta, ObjectId};
///
/// struct Pod; // for instance k8s-openapi's
///
/// #[derive(Meta)]
/// #[kubewire(resource = Pod)]
/// struct PodBrief {
///     #[kubewire(metadata)]
///     id: ObjectId,
///     #[kubewire(labels)]
///     labels: BTreeMap<String, String>,
/// }
///
/// let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
/// let pod = PodBrief { id: ObjectId::new(Id::new("default", "web-0")), labels };
/// assert_eq!(pod.id().name, "web-0");
/// assert_eq!(pod.label("app"), Some("web"));
/// ```
///
/// What it cannot use is an error that says so:
///
/// ```compile_fail
/// #[derive(kubewire_indexer::Meta)]
/// struct Nameless {
///     phase: String,
/// }
/// ```
#[proc_macro_derive(Meta, attributes(kubewire))]
pub fn derive_meta(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    attributes::Described::read(&input)
        .map(|described| expand::expand(&input, &described))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
