//! Writes that pass through a function first.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::index_definition::panic_message;
use crate::{BoxError, Change, Indexer, KeyError, Object, ObjectKey, TransactionError};

/// Writes to an [`Indexer`] through a function that changes each object first, as client-go's `WithTransformer`:
/// to drop what nobody reads. What is read is the indexer's own. Cloning gives another handle.
///
/// An informer transforms objects earlier, before they are queued; this is for whoever fills an indexer by hand. An
/// object goes under the key that it had before the function. An error or a panic of the function fails that
/// write and changes nothing. Unlike in client-go transactions are transformed too.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_indexer::{Id, Indexer, Meta, Transforming};
///
/// struct Note { name: &'static str, text: String }
///
/// impl Meta for Note {
///     fn id(&self) -> Id<'_> {
///         Id::new("", self.name)
///     }
/// }
///
/// let notes = Transforming::new(Indexer::new(), |note: Arc<Note>| {
///     Ok(Arc::new(Note { name: note.name, text: note.text.to_uppercase() }))
/// });
/// notes.add(Arc::new(Note { name: "a", text: "hi".into() }))?;
/// assert_eq!(notes.indexer().get_by_key(&("", "a")).unwrap().text, "HI");
/// # Ok::<(), kubewire_indexer::WriteError>(())
/// ```
pub struct Transforming<O> {
    indexer: Indexer<O>,
    transform: Arc<dyn Fn(O) -> Result<O, BoxError> + Send + Sync>,
}

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// It has no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The function that transforms objects fails for it, or panics.
    #[error("the object {key} cannot be transformed")]
    Transform {
        /// Its key.
        key: ObjectKey,
        /// What the function said.
        source: BoxError,
    },
}

impl<O: Object> Transforming<O> {
    /// Writes to this indexer through this function.
    pub fn new(indexer: Indexer<O>, transform: impl Fn(O) -> Result<O, BoxError> + Send + Sync + 'static) -> Self {
        Self { indexer, transform: Arc::new(transform) }
    }

    /// The indexer beneath, for reading; what is written to it directly is not transformed.
    pub fn indexer(&self) -> &Indexer<O> {
        &self.indexer
    }

    /// Adds the transformed object, or replaces the one that is there, which is returned.
    pub fn add(&self, object: O) -> Result<Option<O>, WriteError> {
        let (key, object) = self.entry(object)?;
        Ok(self.indexer.put(key, object))
    }

    /// The same as [`add`](Self::add).
    pub fn update(&self, object: O) -> Result<Option<O>, WriteError> {
        self.add(object)
    }

    /// Replaces the whole content by the transformed list, in one step. If one object fails nothing is changed.
    pub fn replace(&self, objects: impl IntoIterator<Item = O>, version: &str) -> Result<(), WriteError> {
        let entries = objects.into_iter().map(|object| self.entry(object)).collect::<Result<Vec<_>, _>>()?;
        self.indexer.replace_entries(entries, version);
        Ok(())
    }

    /// Makes these changes in one step, with the objects that are put transformed; those that fail are left out.
    pub fn transaction(
        &self,
        changes: impl IntoIterator<Item = Result<Change<O>, KeyError>>,
    ) -> Result<Vec<Option<O>>, TransactionError<O, WriteError>> {
        self.indexer.transaction(changes.into_iter().map(|change| match change? {
            Change::Put { key, object } => self.transform(key, object).map(|(key, object)| Change::Put { key, object }),
            delete => Ok(delete),
        }))
    }

    fn entry(&self, object: O) -> Result<(ObjectKey, O), WriteError> {
        self.transform(object.try_key()?, object)
    }

    fn transform(&self, key: ObjectKey, object: O) -> Result<(ObjectKey, O), WriteError> {
        catch_unwind(AssertUnwindSafe(|| (self.transform)(object)))
            .unwrap_or_else(|payload| Err(panic_message(&*payload).into()))
            .map(|object| (key.clone(), object))
            .map_err(|source| WriteError::Transform { key, source })
    }
}

impl<O> Clone for Transforming<O> {
    fn clone(&self) -> Self {
        Self { indexer: self.indexer.clone(), transform: Arc::clone(&self.transform) }
    }
}

impl<O: Object> fmt::Debug for Transforming<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transforming").field(&self.indexer).finish()
    }
}
