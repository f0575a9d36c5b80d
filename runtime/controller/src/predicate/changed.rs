//! PURE. Updates that change something; everything else passes.

use std::borrow::Cow;

use super::Predicate;
use crate::event::{AnyObject, Event};

/// Of updates, those that change `metadata.generation`: the desired state. Creations, deletions and generic events pass.
///
/// Changes of the status, of finalizers, labels and annotations do not pass, nor do resyncs. The first mark for deletion
/// changes the generation where the kind counts one. Kinds without generations (ConfigMap, Secret, …), and structs that do
/// not keep it, never pass: see [`GenerationOrDeletionChanged`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GenerationChanged;

/// As [`GenerationChanged`], and updates that mark an object for deletion pass too: those of kinds without generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GenerationOrDeletionChanged;

/// Of updates, those that change `metadata.resourceVersion`: all but resyncs. Everything else passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceVersionChanged;

/// Of updates, those that change a label. Everything else passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelsChanged;

/// Of updates, those that change an annotation. Everything else passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnotationsChanged;

impl<O: AnyObject + ?Sized> Predicate<O> for GenerationChanged {
    fn test(&self, event: &Event<'_, O>) -> bool {
        changed(event, |old, new| old.generation() != new.generation())
    }
}

impl<O: AnyObject + ?Sized> Predicate<O> for GenerationOrDeletionChanged {
    fn test(&self, event: &Event<'_, O>) -> bool {
        changed(event, |old, new| {
            old.generation() != new.generation() || old.is_being_deleted() != new.is_being_deleted()
        })
    }
}

impl<O: AnyObject + ?Sized> Predicate<O> for ResourceVersionChanged {
    fn test(&self, event: &Event<'_, O>) -> bool {
        !event.is_resync()
    }
}

impl<O: AnyObject + ?Sized> Predicate<O> for LabelsChanged {
    fn test(&self, event: &Event<'_, O>) -> bool {
        changed(event, |old, new| sorted(old.all_labels()) != sorted(new.all_labels()))
    }
}

impl<O: AnyObject + ?Sized> Predicate<O> for AnnotationsChanged {
    fn test(&self, event: &Event<'_, O>) -> bool {
        let sorted = |object: &O| -> Vec<(String, String)> {
            let annotations = object.all_annotations().into_iter();
            sorted(annotations.map(|(name, value)| (Cow::into_owned(name), Cow::into_owned(value))).collect())
        };
        changed(event, |old, new| sorted(old) != sorted(new))
    }
}

/// What is no update has changed.
fn changed<O: ?Sized>(event: &Event<'_, O>, differs: impl FnOnce(&O, &O) -> bool) -> bool {
    match event {
        Event::Updated { old, new } => differs(old, new),
        _ => true,
    }
}

fn sorted<T: Ord>(mut pairs: Vec<T>) -> Vec<T> {
    pairs.sort_unstable();
    pairs
}
