//! Objects become another version of their kind. PURE: values in, values out.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Makes another version of an object. A closure `Fn(Value, &str) -> Result<Value, ConversionError>` is one, too; the text is
/// the `apiVersion` that is wanted.
///
/// Metadata must stay but for labels and annotations, else the API server refuses the result.
pub trait Converter: Send + Sync + 'static {
    /// The object in this version. It is not called for one that has it already.
    ///
    /// # Errors
    /// All objects of the review fail with this one.
    fn convert(&self, object: Value, to: &str) -> Result<Value, ConversionError>;
}

impl<F> Converter for F
where
    F: Fn(Value, &str) -> Result<Value, ConversionError> + Send + Sync + 'static,
{
    fn convert(&self, object: Value, to: &str) -> Result<Value, ConversionError> {
        self(object, to)
    }
}

/// Why an object cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// No converter knows this version.
    #[error("{kind} cannot be converted to or from {api_version}: the webhook knows {known}")]
    UnknownVersion {
        /// The kind of the object.
        kind: String,
        /// The version.
        api_version: String,
        /// Those that are known.
        known: String,
    },
    /// It is not of the type of its version.
    #[error("{what} cannot be decoded: {source}")]
    Decode {
        /// The version and kind.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// Another reason, of the converter's.
    #[error("{0}")]
    Other(String),
}

/// A version of a kind that can become the hub, and be made of it. The hub is the one version that all others know; so `n`
/// versions need `2(n-1)` conversions.
pub trait Spoke<H>: Resource<DynamicType = ()> + DeserializeOwned + Serialize + 'static {
    /// The hub of this.
    ///
    /// # Errors
    /// It has none.
    fn to_hub(self) -> Result<H, ConversionError>;

    /// What the hub is in this version.
    ///
    /// # Errors
    /// There is no such thing.
    fn from_hub(hub: H) -> Result<Self, ConversionError>;
}

type ToHub<H> = fn(Value) -> Result<H, ConversionError>;
type FromHub<H> = fn(H) -> Result<Value, ConversionError>;

/// A [`Converter`] by a hub and its spokes.
///
/// `HubAndSpokes::<WidgetV2>::new().spoke::<WidgetV1>()`, where `WidgetV1` is a [`Spoke`] of `WidgetV2`.
pub struct HubAndSpokes<H> {
    kind: String,
    /// By `apiVersion`; the hub is among them.
    versions: BTreeMap<String, (ToHub<H>, FromHub<H>)>,
    of: PhantomData<fn(H)>,
}

impl<H> HubAndSpokes<H>
where
    H: Resource<DynamicType = ()> + DeserializeOwned + Serialize + 'static,
{
    /// With this hub and no spoke yet.
    pub fn new() -> Self {
        let versions =
            BTreeMap::from([(H::api_version(&()).into_owned(), (decode::<H> as ToHub<H>, encode::<H> as FromHub<H>))]);
        Self { kind: H::kind(&()).into_owned(), versions, of: PhantomData }
    }

    /// With a spoke.
    #[must_use = "it changes nothing by itself"]
    pub fn spoke<S: Spoke<H>>(mut self) -> Self {
        let to_hub: ToHub<H> = |value| decode::<S>(value)?.to_hub();
        let from_hub: FromHub<H> = |hub| encode(S::from_hub(hub)?);
        self.versions.insert(S::api_version(&()).into_owned(), (to_hub, from_hub));
        self
    }

    fn of(&self, api_version: &str) -> Result<&(ToHub<H>, FromHub<H>), ConversionError> {
        self.versions.get(api_version).ok_or_else(|| ConversionError::UnknownVersion {
            kind: self.kind.clone(),
            api_version: api_version.to_owned(),
            known: self.versions.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }
}

impl<H> Default for HubAndSpokes<H>
where
    H: Resource<DynamicType = ()> + DeserializeOwned + Serialize + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<H> Converter for HubAndSpokes<H>
where
    H: Resource<DynamicType = ()> + DeserializeOwned + Serialize + 'static,
{
    fn convert(&self, object: Value, to: &str) -> Result<Value, ConversionError> {
        let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let (to_hub, _) = self.of(&from)?;
        let (_, from_hub) = self.of(to)?;
        from_hub(to_hub(object)?)
    }
}

fn decode<T: Resource<DynamicType = ()> + DeserializeOwned>(value: Value) -> Result<T, ConversionError> {
    let what = || format!("{} {}", T::api_version(&()), T::kind(&()));
    serde_json::from_value(value).map_err(|source| ConversionError::Decode { what: what(), source })
}

/// With its version and kind, which not every type writes.
fn encode<T: Resource<DynamicType = ()> + Serialize>(object: T) -> Result<Value, ConversionError> {
    let mut value = serde_json::to_value(object).map_err(|error| ConversionError::Other(error.to_string()))?;
    value["apiVersion"] = T::api_version(&()).into_owned().into();
    value["kind"] = T::kind(&()).into_owned().into();
    Ok(value)
}

/// All objects of a review, in their order, in the version that is wanted.
pub(crate) fn convert_all(
    converter: &dyn Converter,
    objects: Vec<Value>,
    to: &str,
) -> Result<Vec<Value>, ConversionError> {
    let one = |object: Value| {
        if object["apiVersion"] == to { Ok(object) } else { converter.convert(object, to) }
    };
    objects.into_iter().map(one).collect()
}
