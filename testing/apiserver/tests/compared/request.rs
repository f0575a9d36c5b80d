//! One request of the table.

/// What stands in the table.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) method: &'static str,
    pub(crate) content_type: String,
    /// Such as `configmaps/m/status`, perhaps with `namespace:` before it.
    pub(crate) place: String,
    pub(crate) query: String,
    /// With its variables.
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn parse(table: &str) -> Vec<Request> {
        let table: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
        let blocks = table.split(|line| line.is_empty()).filter(|block| !block.is_empty());
        blocks.map(Self::parse_block).collect()
    }

    fn parse_block(block: &[&str]) -> Request {
        let [title, line, body @ ..] = block else { panic!("no request: {block:?}") };
        let (name, _) = title.strip_prefix("== ").and_then(|title| title.split_once(": ")).expect("== name: what");
        let (verb, path) = line.split_once(' ').expect("VERB path");
        let (method, content_type) = match verb {
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
            "JSONPATCH" => ("PATCH", "application/json-patch+json"),
            "POST" => ("POST", "application/json"),
            "PUT" => ("PUT", "application/json"),
            "GET" => ("GET", ""),
            "DELETE" => ("DELETE", ""),
            other => ("PATCH", other.strip_prefix("PATCH:").expect("a verb of the table")),
        };
        let (place, query) = path.split_once('?').unwrap_or((path, ""));
        Request {
            name: name.to_owned(),
            method,
            content_type: content_type.to_owned(),
            place: place.to_owned(),
            query: query.to_owned(),
            body: body.join("\n"),
        }
    }

    /// The path on the server.
    pub(crate) fn path(&self) -> String {
        let (namespace, place) = self.place.split_once(':').unwrap_or(("default", &self.place));
        let plural = place.split('/').next().unwrap_or_default();
        let group = match plural {
            "deployments" => "/apis/apps/v1",
            "leases" => "/apis/coordination.k8s.io/v1",
            "things" => "/apis/example.com/v1",
            _ => "/api/v1",
        };
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        match plural {
            "nodes" | "namespaces" => format!("{group}/{place}{query}"),
            _ => format!("{group}/namespaces/{namespace}/{place}{query}"),
        }
    }
}
