//! What a list or a watch asks for. Selectors and the namespace belong to the lister-watcher, not to a request.

use std::time::Duration;

/// How `resourceVersion` is to be understood by a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionMatch {
    /// `NotOlderThan`
    NotOlderThan,
    /// `Exact`
    Exact,
}

/// One list request: one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// `None` asks for the most recent state, `Some("0")` for any cached one. Not sent where empty.
    pub resource_version: Option<String>,
    /// How to understand `resource_version`; the server's rule where absent.
    pub resource_version_match: Option<VersionMatch>,
    /// The page size; everything at once where absent.
    pub limit: Option<u32>,
    /// The token of the page before. With it neither version nor match may be sent.
    pub continue_token: Option<String>,
}

impl ListOptions {
    /// At this version (or as [`matching`](Self::matching) says); `"0"` is any that the server has at hand.
    #[must_use = "it gives the changed options back"]
    pub fn at_version(self, version: impl Into<String>) -> Self {
        Self { resource_version: Some(version.into()), ..self }
    }

    /// How the version is to be understood.
    #[must_use = "it gives the changed options back"]
    pub fn matching(self, rule: VersionMatch) -> Self {
        Self { resource_version_match: Some(rule), ..self }
    }

    /// In pages of this size.
    #[must_use = "it gives the changed options back"]
    pub fn limit(self, limit: u32) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The page that a token stands for.
    #[must_use = "it gives the changed options back"]
    pub fn continued(self, token: impl Into<String>) -> Self {
        Self { continue_token: Some(token.into()), ..self }
    }
}

/// One watch request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchOptions {
    /// The version after which to begin; empty means "from the most recent state, which is sent first".
    pub resource_version: String,
    /// How to understand `resource_version`; streaming lists send `NotOlderThan`.
    pub resource_version_match: Option<VersionMatch>,
    /// When the server shall end the watch; sent in whole seconds. The lister-watcher ends it by itself a
    /// little later if the server does not.
    pub timeout: Duration,
    /// Ask for bookmarks.
    pub allow_bookmarks: bool,
    /// Ask for a streaming list: the present objects first, then a bookmark that says so.
    pub send_initial_events: bool,
}

impl WatchOptions {
    /// A watch with bookmarks from this version on.
    pub fn from_version(resource_version: impl Into<String>, timeout: Duration) -> Self {
        Self {
            resource_version: resource_version.into(),
            resource_version_match: None,
            timeout,
            allow_bookmarks: true,
            send_initial_events: false,
        }
    }

    /// A streaming list that is not older than this version (any where empty).
    pub fn streaming_list(resource_version: impl Into<String>, timeout: Duration) -> Self {
        Self {
            resource_version_match: Some(VersionMatch::NotOlderThan),
            send_initial_events: true,
            ..Self::from_version(resource_version, timeout)
        }
    }
}
