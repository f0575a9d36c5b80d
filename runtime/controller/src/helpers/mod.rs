//! What reconcilers do again and again: owners, finalizers, writes of what differs.

mod api_errors;
mod create_or_update;
mod finalizers;
mod merge_from;
mod owner;
mod patches;

pub use api_errors::{ignore_already_exists, ignore_not_found};
pub use create_or_update::{CreateOrUpdateError, OperationResult, create_or_patch, create_or_update};
pub use finalizers::{
    FinalizeError, Finalized, Finalizer, Finalizers, RegisterFinalizerError, add_finalizer, contains_finalizer,
    ensure_finalizer, release_finalizer, remove_finalizer,
};
pub use merge_from::{MergeFrom, PatchError};
pub use owner::{Owner, OwnerError, set_controller_reference, set_owner_reference};
pub use patches::{patch_object, patch_status};
