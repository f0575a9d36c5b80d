//! What is no object: version, health, discovery, OpenAPI.

use http::{Method, Response, StatusCode};
use serde_json::json;

use crate::body::ResponseBody;
use crate::inner::Inner;
use crate::response::{json_body, response};
use crate::route::Query;
use crate::{Status, discovery, openapi};

/// The answer to a request for a document.
pub(crate) fn answer(
    inner: &Inner,
    method: &Method,
    path: &str,
    accept: &str,
    query: &Query,
) -> Result<Response<ResponseBody>, Status> {
    let _ = query;
    if method != Method::GET {
        return Err(Status::method_not_allowed());
    }
    match path.trim_end_matches('/') {
        "/version" => Ok(json_body(StatusCode::OK, version())),
        "/healthz" | "/readyz" | "/livez" => {
            Ok(response(StatusCode::OK, "text/plain; charset=utf-8", ResponseBody::whole("ok")))
        }
        path if path.starts_with("/openapi") => {
            let document = openapi::document(&inner.registry, path, accept).ok_or_else(Status::no_such_path)?;
            Ok(response(StatusCode::OK, document.content_type, ResponseBody::whole(document.body)))
        }
        path => {
            let document = discovery::document(&inner.registry, path, accept).ok_or_else(Status::no_such_path)?;
            Ok(response(StatusCode::OK, document.content_type, ResponseBody::whole(document.body.to_string())))
        }
    }
}

/// The version of Kubernetes whose protocol the server speaks.
fn version() -> String {
    json!({
        "major": "1", "minor": "37", "gitVersion": "v1.37.0-kubewire", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "memory",
    })
    .to_string()
}
