//! What reconcilers do again and again: owners, finalizers, writes of what differs.

mod create_or_update;
mod finalizers;
mod merge_from;
mod owner;

pub use create_or_update::{CreateOrUpdateError, OperationResult, create_or_patch, create_or_update};
pub use finalizers::{
    FinalizeError, Finalized, Finalizer, Finalizers, RegisterFinalizerError, add_finalizer, contains_finalizer,
    remove_finalizer,
};
pub use merge_from::{MergeFrom, PatchError, patch_status};
pub use owner::{Owner, OwnerError, set_controller_reference, set_owner_reference};
