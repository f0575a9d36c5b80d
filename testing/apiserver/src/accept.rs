//! PURE. Which form of an answer a client asks for: the media types of its `Accept` header, and what Kubernetes adds to
//! them (`as`, `g` and `v` name the kind that the answer is to be converted to).

/// One media type of an `Accept` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted<'h> {
    /// Such as `application/json`.
    pub(crate) media_type: &'h str,
    /// The kind, group and version of the answer (`as`, `g`, `v`); `None`: the object itself.
    pub(crate) kind: Option<(&'h str, &'h str, &'h str)>,
}

impl<'h> Accepted<'h> {
    /// The media types in the client's order; no header stands for JSON. Weights (`q`) do not count, as on the API
    /// server.
    pub(crate) fn all(header: &'h str) -> impl Iterator<Item = Self> {
        let header = if header.trim().is_empty() { "application/json" } else { header };
        header.split(',').map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            let mut kind = (None, "", "");
            for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
                match name {
                    "as" => kind.0 = Some(value),
                    "g" => kind.1 = value,
                    "v" => kind.2 = value,
                    _ => {}
                }
            }
            Accepted { media_type, kind: kind.0.map(|name| (name, kind.1, kind.2)) }
        })
    }

    /// Whether JSON satisfies it.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self.media_type, "application/json" | "application/*" | "*/*")
    }

    /// The first media type that is JSON and of a kind that `speaks` knows: what to answer. The object itself is always
    /// known. `None`: nothing that the client accepts can be had (406).
    pub(crate) fn first(header: &'h str, speaks: impl Fn(&str, &str, &str) -> bool) -> Option<Self> {
        let known = |accepted: &Self| accepted.kind.is_none_or(|(kind, group, version)| speaks(kind, group, version));
        Self::all(header).find(|accepted| accepted.is_json() && known(accepted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_is_spoken_is_chosen() {
        let table = Some(("Table", "meta.k8s.io", "v1"));
        for (header, expected) in [
            ("", Some(None)),
            ("application/json", Some(None)),
            ("*/*", Some(None)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some(table)),
            ("application/json; as=Table; g=meta.k8s.io; v=v1", Some(table)),
            ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Some(None)),
            ("application/json;as=Other;v=v1;g=meta.k8s.io, application/json;as=Table;v=v1;g=meta.k8s.io", Some(table)),
            ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json;q=0.5", Some(None)),
            ("application/json,application/json;as=Table;v=v1;g=meta.k8s.io", Some(None)),
            ("application/vnd.kubernetes.protobuf", None),
            ("application/json;as=Other;v=v1;g=meta.k8s.io", None),
        ] {
            let chosen = Accepted::first(header, |kind, group, version| Some((kind, group, version)) == table);
            assert_eq!(chosen.map(|accepted| accepted.kind), expected, "{header}");
        }
    }
}
