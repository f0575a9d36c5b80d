//! Index functions.

use std::fmt;
use std::sync::Arc;

/// Any error of a user's function.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Computes the values under which an index files an object: none, one, or several.
///
/// It is user code: a store calls it without holding a lock, once for each write of an object. If it fails or
/// panics the object is kept and has no values in that index; the failure is counted and reported, see
/// [`Store::index_failures`](crate::Store::index_failures). client-go panics instead.
///
/// The same value twice counts once. An empty value is a value.
///
/// ```
/// use kubewire_indexer::IndexFunc;
///
/// struct Order { customer: String, tags: Vec<String>, total: String }
///
/// let by_customer = IndexFunc::one(|order: &Order| &order.customer);
/// let by_tag = IndexFunc::many(|order: &Order| order.tags.clone());
/// let by_total = IndexFunc::try_many(|order: &Order| order.total.parse::<u64>().map(|n| [n.to_string()]));
/// ```
pub struct IndexFunc<V: ?Sized> {
    function: Arc<Function<V>>,
}

type Function<V> = dyn Fn(&V, &mut IndexValues<'_>) -> Result<(), BoxError> + Send + Sync;

impl<V: ?Sized> IndexFunc<V> {
    /// Exactly one value, borrowed from the object: nothing is allocated for it.
    pub fn one(function: impl for<'a> Fn(&'a V) -> &'a str + Send + Sync + 'static) -> Self {
        Self::emit(move |object, values| {
            values.push(function(object));
            Ok(())
        })
    }

    /// One value or none, borrowed from the object.
    pub fn maybe(function: impl for<'a> Fn(&'a V) -> Option<&'a str> + Send + Sync + 'static) -> Self {
        Self::emit(move |object, values| {
            if let Some(value) = function(object) {
                values.push(value);
            }
            Ok(())
        })
    }

    /// Any number of values: an array, a `Vec`, an `Option`.
    pub fn many<I: IntoIterator<Item: AsRef<str>>>(function: impl Fn(&V) -> I + Send + Sync + 'static) -> Self {
        Self::emit(move |object, values| {
            values.extend(function(object));
            Ok(())
        })
    }

    /// As [`many`](Self::many), and it may fail.
    pub fn try_many<I, E>(function: impl Fn(&V) -> Result<I, E> + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item: AsRef<str>>,
        E: Into<BoxError>,
    {
        Self::emit(move |object, values| {
            values.extend(function(object).map_err(Into::into)?);
            Ok(())
        })
    }

    /// The general form: the function hands each value over as a borrowed text. Those before an error count for
    /// nothing.
    pub fn emit(function: impl Fn(&V, &mut IndexValues<'_>) -> Result<(), BoxError> + Send + Sync + 'static) -> Self {
        Self { function: Arc::new(function) }
    }

    /// The object's one value, for use as its key; an error where it has none or several. As client-go's
    /// `IndexFuncToKeyFuncAdapter`.
    pub fn key(&self, object: &V) -> Result<String, IndexKeyError> {
        let mut values = self.values(object).map_err(IndexKeyError::Function)?;
        match (values.pop(), values.len()) {
            (Some(value), 0) => Ok(value),
            (None, _) => Err(IndexKeyError::Count(0)),
            (Some(_), others) => Err(IndexKeyError::Count(others + 1)),
        }
    }

    /// The object's values, in the function's order and with its repeats. A panic of the function is not caught.
    pub fn values(&self, object: &V) -> Result<Vec<String>, BoxError> {
        let mut row = crate::prepared::Prepared::default();
        (self.function)(object, &mut row.values())?;
        Ok(row.emitted().map(str::to_owned).collect())
    }

    pub(crate) fn call(&self, object: &V, values: &mut IndexValues<'_>) -> Result<(), BoxError> {
        (self.function)(object, values)
    }
}

impl<V: ?Sized> Clone for IndexFunc<V> {
    fn clone(&self) -> Self {
        Self { function: Arc::clone(&self.function) }
    }
}

impl<V: ?Sized> fmt::Debug for IndexFunc<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IndexFunc")
    }
}

/// Why an index function gives an object no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexKeyError {
    /// It does not give the object exactly one value.
    #[error("the index function gives {0} values: a key must be exactly one")]
    Count(usize),
    /// It fails.
    #[error("the index function fails")]
    Function(#[source] BoxError),
}

/// Where an index function puts the values of an object, see [`IndexFunc::emit`].
pub struct IndexValues<'a> {
    pub(crate) text: &'a mut String,
    /// The parts of `text`, each one value.
    pub(crate) spans: &'a mut Vec<(usize, usize)>,
}

impl IndexValues<'_> {
    /// Adds a value. Cost: a copy of its text.
    pub fn push(&mut self, value: &str) {
        let start = self.text.len();
        self.text.push_str(value);
        self.spans.push((start, self.text.len()));
    }
}

impl<T: AsRef<str>> Extend<T> for IndexValues<'_> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value.as_ref()));
    }
}

impl fmt::Debug for IndexValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexValues").field("len", &self.spans.len()).finish()
    }
}
