//! Objects that are kept as bytes.

use kubewire_indexer::Object;
use serde::de::DeserializeOwned;

use crate::{ItemError, Packed, Unpack};

/// An object that is kept as the bytes it came in: [`Packed`], and `Zipped` (feature `zstd`). For code that works on
/// either, such as a [`HotCache`](crate::HotCache), or an index function.
///
/// ```
/// use kubewire_listwatch::Encoded;
/// use serde::Deserialize;
///
/// #[derive(Default, Deserialize)]
/// #[serde(default)]
/// struct OnNode {
///     spec: Spec,
/// }
/// #[derive(Default, Deserialize)]
/// #[serde(default, rename_all = "camelCase")]
/// struct Spec {
///     node_name: String,
/// }
///
/// /// The node that a pod is on; none where the pod cannot be read.
/// fn node<O: Encoded>(pod: &O) -> String {
///     pod.peek::<OnNode>().unwrap_or_default().spec.node_name
/// }
/// ```
pub trait Encoded: Object {
    /// What [`decode`](Self::decode) makes of it.
    type Decoded;

    /// Decodes the whole object. Cost: that of parsing it, each time.
    ///
    /// # Errors
    /// The bytes do not fit, or are of the other format; the error tells the key.
    fn decode(&self) -> Result<Self::Decoded, ItemError>;

    /// Decodes what `T` names of an object that came as JSON, and skips the rest.
    ///
    /// # Errors
    /// The text does not fit `T`, or the object came as protobuf; the error tells the key, and the path of the field.
    fn peek<T: DeserializeOwned>(&self) -> Result<T, ItemError>;
}

impl<K: Unpack + 'static> Encoded for Packed<K> {
    type Decoded = K;

    fn decode(&self) -> Result<K, ItemError> {
        self.decode()
    }

    fn peek<T: DeserializeOwned>(&self) -> Result<T, ItemError> {
        self.peek()
    }
}

#[cfg(feature = "zstd")]
impl<K: Unpack + 'static> Encoded for crate::Zipped<K> {
    type Decoded = K;

    fn decode(&self) -> Result<K, ItemError> {
        self.decode()
    }

    fn peek<T: DeserializeOwned>(&self) -> Result<T, ItemError> {
        self.peek()
    }
}
