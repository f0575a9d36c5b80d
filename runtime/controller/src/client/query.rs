//! PURE. Parameters of a request.

use http::{Method, Uri};

/// Whether a request of this method writes.
pub(super) fn is_write(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method)
}

/// Adds a parameter to a query, unless it is there.
pub(super) fn with_parameter(uri: &Uri, name: &str, value: &str) -> Uri {
    let query = uri.query().unwrap_or_default();
    if form_urlencoded::parse(query.as_bytes()).any(|(other, _)| other == name) {
        return uri.clone();
    }
    let mut query = form_urlencoded::Serializer::new(query.to_owned());
    let query = query.append_pair(name, value).finish();
    let mut parts = uri.clone().into_parts();
    let path_and_query = format!("{}?{}", uri.path(), query.trim_start_matches('&'));
    parts.path_and_query = path_and_query.parse().ok();
    // What was one, with an encoded parameter more, is one.
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_added_encoded_and_one_that_is_there_stays() {
        for (uri, want) in [
            ("/api/v1/pods", "/api/v1/pods?p=a%26b"),
            ("/api/v1/pods?", "/api/v1/pods?p=a%26b"),
            ("/api/v1/pods?x=1&y=%2F", "/api/v1/pods?x=1&y=%2F&p=a%26b"),
            ("/api/v1/pods?p=", "/api/v1/pods?p="),
            ("https://host:1/api?x", "https://host:1/api?x&p=a%26b"),
        ] {
            assert_eq!(with_parameter(&uri.parse().unwrap(), "p", "a&b").to_string(), want, "{uri}");
        }
    }
}
