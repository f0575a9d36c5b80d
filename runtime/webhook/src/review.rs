//! Reviews: what is between the JSON of an API server and a decision. PURE: bytes in, values out.

use serde_json::{Value, json};

use crate::conversion::{ConversionError, convert_all};
use crate::{AdmissionRequest, AdmissionResponse, Converter, Rejection};

/// A review as it came: its version and kind, which the answer repeats, and its request.
#[derive(Debug)]
pub(crate) struct Review {
    api_version: String,
    kind: &'static str,
    uid: String,
    request: Value,
}

/// What the objects of a conversion are to become.
pub(crate) struct ConversionRequest {
    objects: Vec<Value>,
    to: String,
}

impl Review {
    /// Reads one of this kind and group.
    ///
    /// # Errors
    /// It is no such review: there is nobody's name in it by which to answer.
    pub(crate) fn parse(body: &[u8], group: &str, kind: &'static str) -> Result<Self, Rejection> {
        if body.is_empty() {
            return Err(Rejection::bad_request("the body is empty"));
        }
        let bad = |message: String| Rejection::bad_request(format!("the body is no {kind}: {message}"));
        let mut review: Value = serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
        let api_version = review["apiVersion"].as_str().unwrap_or_default().to_owned();
        if review["kind"] != kind || api_version.split('/').next() != Some(group) {
            return Err(bad(format!("it is a {} of {api_version:?}", review["kind"])));
        }
        let request = review.get_mut("request").map(Value::take).unwrap_or_default();
        let uid = request["uid"].as_str().unwrap_or_default().to_owned();
        if uid.is_empty() {
            return Err(bad("there is no request.uid".to_owned()));
        }
        Ok(Self { api_version, kind, uid, request })
    }

    /// The request of an admission.
    ///
    /// # Errors
    /// It is not what the API says.
    pub(crate) fn admission(&mut self) -> Result<AdmissionRequest, Rejection> {
        serde_json::from_value(self.request.take())
            .map_err(|error| Rejection::bad_request(format!("the request cannot be decoded: {error}")))
    }

    /// The request of a conversion.
    ///
    /// # Errors
    /// It is not what the API says.
    pub(crate) fn conversion(&mut self) -> Result<ConversionRequest, Rejection> {
        let bad = |what: &str| Rejection::bad_request(format!("the request has no {what}"));
        let to = self.request["desiredAPIVersion"].as_str().ok_or_else(|| bad("desiredAPIVersion"))?.to_owned();
        match self.request.get_mut("objects").map(Value::take) {
            Some(Value::Array(objects)) => Ok(ConversionRequest { objects, to }),
            _ => Err(bad("objects")),
        }
    }

    /// The answer of an admission.
    pub(crate) fn admitted(&self, response: &AdmissionResponse) -> Value {
        self.answer(response.to_json(&self.uid))
    }

    /// The answer of a conversion.
    pub(crate) fn converted(&self, result: Result<Vec<Value>, Rejection>) -> Value {
        let (result, objects) = match result {
            Ok(objects) => (json!({ "status": "Success" }), objects),
            Err(rejection) => (rejection.to_json(), Vec::new()),
        };
        self.answer(json!({ "uid": self.uid, "result": result, "convertedObjects": objects }))
    }

    fn answer(&self, response: Value) -> Value {
        json!({ "apiVersion": self.api_version, "kind": self.kind, "response": response })
    }
}

impl ConversionRequest {
    pub(crate) fn convert(self, converter: &dyn Converter) -> Result<Vec<Value>, Rejection> {
        let failed = |error: ConversionError| Rejection::invalid(error.to_string());
        convert_all(converter, self.objects, &self.to).map_err(failed)
    }
}
