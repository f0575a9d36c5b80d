//! PURE. The path and the query string of a list and of a watch.
//!
//! kube-client's own writer leaves `resourceVersion=0` out where a limit is given, which client-go sends; hence
//! this one.

use std::borrow::Cow;
use std::time::Duration;

use form_urlencoded::Serializer;
use kube_core::ApiResource;
use kubewire_indexer::{FieldSelector, LabelSelector};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::{ErrorClass, ListOptions, RequestError, VersionMatch, WatchOptions};

/// What a path segment cannot carry as it is.
const SEGMENT: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}').add(b'\\');

/// The selectors of a request; empty ones are not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selectors {
    pub(crate) labels: String,
    pub(crate) fields: String,
}

impl Selectors {
    pub(crate) fn add_labels(&mut self, selector: &LabelSelector) {
        let text = if selector.is_nothing() { NOTHING.to_owned() } else { selector.to_string() };
        join(&mut self.labels, &text);
    }

    pub(crate) fn add_fields(&mut self, selector: &FieldSelector) {
        join(&mut self.fields, &selector.to_string());
    }
}

/// What no object can meet. (The empty text, which client-go sends for "nothing", selects everything.)
const NOTHING: &str = "nothing,!nothing";

/// Both of two selectors.
fn join(selector: &mut String, other: &str) {
    if !selector.is_empty() && !other.is_empty() {
        selector.push(',');
    }
    selector.push_str(other);
}

/// The path of a resource, in one namespace or in all.
pub(crate) fn path(resource: &ApiResource, namespace: Option<&str>) -> Result<String, RequestError> {
    let mut path = String::from(if resource.group.is_empty() { "/api" } else { "/apis" });
    let mut push = |what: &str, text: &str| {
        path.push('/');
        path.push_str(&segment(what, text)?);
        Ok::<_, RequestError>(())
    };
    if !resource.group.is_empty() {
        push("group", &resource.group)?;
    }
    push("version", &resource.version)?;
    if let Some(namespace) = namespace {
        push("resource", "namespaces")?;
        push("namespace", namespace)?;
    }
    push("plural", &resource.plural)?;
    Ok(path)
}

/// A text as one segment of a path, or an error where no segment can carry it (the API server's own rule).
fn segment<'a>(what: &str, text: &'a str) -> Result<Cow<'a, str>, RequestError> {
    if text.is_empty() || matches!(text, "." | "..") || text.contains(['/', '%']) {
        let message = format!(
            "the {what} {text:?} cannot stand in a request path: it may be neither empty, `.` nor `..`, and hold neither `/` nor `%`"
        );
        return Err(RequestError::new(ErrorClass::Invalid, message));
    }
    Ok(utf8_percent_encode(text, SEGMENT).into())
}

/// The query string of a list.
///
/// As the API server demands, a continue token goes without version and match, and a match without a version is
/// not sent.
pub(crate) fn list_query(selectors: &Selectors, options: &ListOptions) -> String {
    let mut query = begin(selectors);
    if let Some(limit) = options.limit.filter(|limit| *limit > 0) {
        query.append_pair("limit", &limit.to_string());
    }
    if let Some(token) = filled(&options.continue_token) {
        query.append_pair("continue", token);
    } else if let Some(version) = filled(&options.resource_version) {
        query.append_pair("resourceVersion", version);
        if let Some(rule) = options.resource_version_match {
            query.append_pair("resourceVersionMatch", match_text(rule));
        }
    }
    query.finish()
}

/// The query string of a watch.
pub(crate) fn watch_query(selectors: &Selectors, options: &WatchOptions) -> String {
    let mut query = begin(selectors);
    query.append_pair("watch", "true");
    if !options.resource_version.is_empty() {
        query.append_pair("resourceVersion", &options.resource_version);
    }
    if let Some(rule) = options.resource_version_match {
        query.append_pair("resourceVersionMatch", match_text(rule));
    }
    if options.allow_bookmarks {
        query.append_pair("allowWatchBookmarks", "true");
    }
    if options.send_initial_events {
        query.append_pair("sendInitialEvents", "true");
    }
    query.append_pair("timeoutSeconds", &timeout_seconds(options.timeout).to_string());
    query.finish()
}

/// Whole seconds, rounded up; at least one, as the server takes 0 for "no timeout given", and at most 68 years, as it
/// counts nanoseconds in 64 bits.
pub(crate) fn timeout_seconds(timeout: Duration) -> u64 {
    let seconds = timeout.as_secs().saturating_add(u64::from(timeout.subsec_nanos() > 0));
    seconds.clamp(1, i32::MAX as u64)
}

fn begin(selectors: &Selectors) -> Serializer<'static, String> {
    let mut query = Serializer::new(String::new());
    if !selectors.labels.is_empty() {
        query.append_pair("labelSelector", &selectors.labels);
    }
    if !selectors.fields.is_empty() {
        query.append_pair("fieldSelector", &selectors.fields);
    }
    query
}

fn filled(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

fn match_text(rule: VersionMatch) -> &'static str {
    match rule {
        VersionMatch::NotOlderThan => "NotOlderThan",
        VersionMatch::Exact => "Exact",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_whole_seconds_that_a_server_can_count() {
        let most = i32::MAX as u64;
        let table = [
            (Duration::ZERO, 1),
            (Duration::from_nanos(1), 1),
            (Duration::from_millis(1001), 2),
            (Duration::from_secs(300), 300),
            (Duration::from_secs(most), most),
            (Duration::from_secs(u64::MAX), most),
            (Duration::MAX, most),
        ];
        for (timeout, seconds) in table {
            assert_eq!(timeout_seconds(timeout), seconds, "{timeout:?}");
        }
    }

    fn resource(group: &str, version: &str, plural: &str) -> ApiResource {
        ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: String::new(),
            kind: String::new(),
            plural: plural.into(),
        }
    }

    #[test]
    fn a_path_names_group_version_namespace_and_plural() {
        let (pods, deployments) = (resource("", "v1", "pods"), resource("apps", "v1", "deployments"));
        assert_eq!(path(&pods, None).unwrap(), "/api/v1/pods");
        assert_eq!(path(&pods, Some("ns1")).unwrap(), "/api/v1/namespaces/ns1/pods");
        assert_eq!(path(&deployments, Some("ns1")).unwrap(), "/apis/apps/v1/namespaces/ns1/deployments");
    }

    #[test]
    fn a_name_that_no_segment_can_carry_is_refused_and_the_rest_is_escaped() {
        let pods = resource("", "v1", "pods");
        for name in ["", ".", "..", "a/b", "%2e", "a%b", "/"] {
            let error = path(&pods, Some(name)).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Invalid, "{name}");
            assert!(error.to_string().contains("cannot stand in a request path"), "{error}");
        }
        let table =
            [("a?x=1", "a%3Fx=1"), ("a#b", "a%23b"), ("system:node", "system:node"), ("é", "%C3%A9"), ("a b", "a%20b")];
        for (name, escaped) in table {
            assert_eq!(path(&pods, Some(name)).unwrap(), format!("/api/v1/namespaces/{escaped}/pods"));
        }
    }

    #[test]
    fn a_list_query_holds_what_was_asked_and_nothing_else() {
        let options = |version: Option<&str>, limit, token: Option<&str>, rule| ListOptions {
            resource_version: version.map(Into::into),
            resource_version_match: rule,
            limit,
            continue_token: token.map(Into::into),
        };
        let newer = Some(VersionMatch::NotOlderThan);
        let exact = Some(VersionMatch::Exact);
        let table = [
            (options(None, None, None, None), ""),
            (options(Some(""), Some(0), Some(""), newer), ""),
            (options(Some("0"), Some(500), None, None), "limit=500&resourceVersion=0"),
            (options(Some("7"), None, None, exact), "resourceVersion=7&resourceVersionMatch=Exact"),
            (options(Some("7"), Some(2), None, newer), "limit=2&resourceVersion=7&resourceVersionMatch=NotOlderThan"),
            (options(Some("7"), Some(2), Some("t+1/="), exact), "limit=2&continue=t%2B1%2F%3D"),
            (options(None, None, None, exact), ""),
        ];
        for (options, query) in table {
            assert_eq!(list_query(&Selectors::default(), &options), query, "{options:?}");
        }
    }

    #[test]
    fn of_several_selectors_all_must_be_met() {
        let mut selectors = Selectors::default();
        selectors.add_labels(&LabelSelector::everything());
        selectors.add_labels(&"app=web".parse().unwrap());
        selectors.add_labels(&LabelSelector::everything());
        selectors.add_labels(&"tier notin (cache,db)".parse().unwrap());
        selectors.add_fields(&FieldSelector::equals("metadata.name", "a,b"));
        selectors.add_fields(&"status.phase!=Succeeded".parse().unwrap());
        assert_eq!(selectors.labels, "app=web,tier notin (cache,db)");
        assert_eq!(selectors.fields, r"metadata.name=a\,b,status.phase!=Succeeded");
        selectors.add_labels(&LabelSelector::nothing());
        let nothing: LabelSelector = selectors.labels.parse().unwrap();
        assert!(!nothing.matches(|name| (name == "nothing").then_some("")));
        assert!(!nothing.matches(|_| None));
    }

    #[test]
    fn the_selector_of_nothing_is_sent_as_one_that_selects_nothing() {
        let mut selectors = Selectors::default();
        selectors.add_labels(&LabelSelector::nothing());
        let sent: LabelSelector = selectors.labels.parse().unwrap();
        assert!([None, Some(""), Some("x")].iter().all(|label| !sent.matches(|_| *label)));
    }

    #[test]
    fn selectors_are_escaped() {
        let selectors = Selectors { labels: "app in (a,b)".into(), fields: "status.phase!=Succeeded".into() };
        assert_eq!(
            list_query(&selectors, &ListOptions::default()),
            "labelSelector=app+in+%28a%2Cb%29&fieldSelector=status.phase%21%3DSucceeded"
        );
    }

    #[test]
    fn a_watch_query_asks_for_bookmarks_and_for_the_initial_events_where_wanted() {
        let none = Selectors::default();
        let watch = WatchOptions::from_version("7", Duration::from_millis(300_500));
        assert_eq!(
            watch_query(&none, &watch),
            "watch=true&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=301"
        );
        let list = WatchOptions::streaming_list("", Duration::ZERO);
        assert_eq!(
            watch_query(&none, &list),
            "watch=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&sendInitialEvents=true&timeoutSeconds=1"
        );
        let quiet = WatchOptions { allow_bookmarks: false, ..watch };
        assert_eq!(watch_query(&none, &quiet), "watch=true&resourceVersion=7&timeoutSeconds=301");
    }
}
