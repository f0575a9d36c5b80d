//! A custom resource of two versions, and its webhooks.

use std::borrow::Cow;

use kube_core::{ObjectMeta, Resource};
use kubewire_webhook::{AdmissionRequest, Change, ConversionError, HubAndSpokes, Rejection, Spoke, Warnings, Webhooks};
use serde::{Deserialize, Serialize};

macro_rules! widget {
    ($(#[$doc:meta])* $name:ident, $version:literal, $spec:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(crate) struct $name {
            pub(crate) metadata: ObjectMeta,
            pub(crate) spec: $spec,
        }

        impl Resource for $name {
            type DynamicType = ();
            type Scope = kube_core::NamespaceResourceScope;

            fn kind(_: &()) -> Cow<'_, str> {
                "Widget".into()
            }

            fn group(_: &()) -> Cow<'_, str> {
                "example.com".into()
            }

            fn version(_: &()) -> Cow<'_, str> {
                $version.into()
            }

            fn plural(_: &()) -> Cow<'_, str> {
                "widgets".into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

widget!(
    /// The old version: a size in words.
    WidgetV1, "v1", SpecV1
);
widget!(
    /// The hub: a size in numbers.
    WidgetV2, "v2", SpecV2
);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpecV1 {
    pub(crate) size: String,
}

/// It knows fewer fields than there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SpecV2 {
    pub(crate) size: i64,
    pub(crate) color: String,
}

impl Spoke<WidgetV2> for WidgetV1 {
    fn to_hub(self) -> Result<WidgetV2, ConversionError> {
        let size = match self.spec.size.as_str() {
            "small" => 1,
            "large" => 10,
            other => return Err(ConversionError::Other(format!("no such size: {other}"))),
        };
        Ok(WidgetV2 { metadata: self.metadata, spec: SpecV2 { size, color: String::new() } })
    }

    fn from_hub(hub: WidgetV2) -> Result<Self, ConversionError> {
        let size = if hub.spec.size < 10 { "small" } else { "large" };
        Ok(Self { metadata: hub.metadata, spec: SpecV1 { size: size.to_owned() } })
    }
}

/// Red unless said otherwise; never larger than 100, and never smaller than before.
pub(crate) fn webhooks() -> Webhooks {
    Webhooks::new()
        .defaulting(|widget: &mut WidgetV2, _: &AdmissionRequest| {
            if widget.spec.color.is_empty() {
                widget.spec.color = "red".to_owned();
            }
            Ok(())
        })
        .validating(|change: Change<'_, WidgetV2>, _: &AdmissionRequest| -> Result<Warnings, Rejection> {
            match change {
                _ if change.new_object().is_some_and(|new| new.spec.size > 100) => {
                    Err(Rejection::invalid("100 at most"))
                }
                Change::Update { old, new } if new.spec.size < old.spec.size => Err(Rejection::forbidden("it shrinks")),
                Change::Create { new } if new.spec.size == 0 => Ok(vec!["a size of 0 is of no use".to_owned()]),
                Change::Delete { old } if old.spec.color == "gold" => Err(Rejection::forbidden("gold is kept")),
                _ => Ok(Warnings::new()),
            }
        })
        .conversion("/convert", HubAndSpokes::<WidgetV2>::new().spoke::<WidgetV1>())
}
