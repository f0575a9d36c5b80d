//! PURE. The rules of a list: which version it shows, and in which pages.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use kubewire_indexer::ObjectKey;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Status;
use crate::collection::Collection;
use crate::fault::PageFault;
use crate::route::Query;
use crate::selection::Selection;
use crate::status::Cause;
use crate::stored::Stored;

/// What a list request asks for, checked.
#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    state: State,
    /// `usize::MAX` for no limit.
    limit: usize,
}

/// Which state of the collection a list shows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// The present one.
    Recent,
    /// Any one: the present one, but without pages, as a watch cache answers.
    Any,
    /// The present one, which must not be older than this.
    NotOlderThan(u64),
    /// The one at this version.
    Exact(u64),
    /// The one of the list that this token continues.
    Continue(Token),
}

/// What the server remembers of a list in pages, in the client's hands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Token {
    /// The version of the first page; `None` goes on with the present state.
    #[serde(rename = "rv")]
    version: Option<u64>,
    /// Namespace and name of the last object of the page before.
    start: (String, String),
}

impl Token {
    fn encode(&self) -> String {
        // Numbers and texts can always be written.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(text: &str) -> Result<Self, Status> {
        let bytes =
            URL_SAFE_NO_PAD.decode(text).map_err(|_| Status::bad_request("continue key is not valid: encoding"))?;
        serde_json::from_slice(&bytes).map_err(|_| Status::bad_request("continue key is not valid: content"))
    }
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) version: u64,
    pub(crate) items: Vec<Arc<Stored>>,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
    /// Items before the others, as they are to be written: a fault.
    pub(crate) foreign: Vec<Bytes>,
}

impl Listed {
    /// Makes something wrong. Says whether that has changed anything; `asked` is the token of the request.
    pub(crate) fn spoil(&mut self, fault: &PageFault, asked: Option<&str>) -> bool {
        match fault {
            PageFault::MoreItems(items) => self.foreign.extend(items.iter().cloned()),
            PageFault::RepeatItems => {
                self.items = self.items.iter().flat_map(|item| [item.clone(), item.clone()]).collect();
                return !self.items.is_empty();
            }
            PageFault::ReverseItems => {
                self.items.reverse();
                return self.items.len() > 1;
            }
            PageFault::EmptyToken if self.continue_token.is_none() => self.continue_token = Some(String::new()),
            PageFault::EmptyToken => return false,
            PageFault::SameToken => {
                let Some(asked) = asked else { return false };
                self.continue_token = Some(asked.to_owned());
            }
        }
        true
    }

    /// The list's metadata.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.version.to_string()});
        if let Some(token) = &self.continue_token {
            metadata["continue"] = json!(token);
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}

/// Reads a version from a query.
pub(crate) fn version(query: &Query) -> Result<Option<u64>, Status> {
    let Some(text) = query.text("resourceVersion") else { return Ok(None) };
    let parsed = text.parse().map(Some);
    parsed.map_err(|error| Status::bad_request(format!("invalid resource version {text:?}: {error}")))
}

impl ListOptions {
    pub(crate) fn parse(query: &Query) -> Result<Self, Status> {
        check_match(query)?;
        // It bounds no list here, but has to be a number.
        query.number("timeoutSeconds")?;
        let limit = query.number("limit")?.unwrap_or(0);
        let mut limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let has_limit = limit != usize::MAX;
        let state = match (query.text("continue"), version(query)?, query.text("resourceVersionMatch")) {
            (Some(token), None | Some(0), _) => State::Continue(Token::decode(token)?),
            (Some(_), Some(_), _) => {
                return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
            }
            (None, None, _) => State::Recent,
            (None, Some(0), _) => State::Any,
            (None, Some(version), Some("Exact")) => State::Exact(version),
            (None, Some(version), Some(_)) => State::NotOlderThan(version),
            // As the real server: pages of a version are pages of exactly that version.
            (None, Some(version), None) if has_limit => State::Exact(version),
            (None, Some(version), None) => State::NotOlderThan(version),
        };
        if state == State::Any {
            limit = usize::MAX;
        }
        Ok(Self { state, limit })
    }

    /// The page that is asked for. `current` is the present version of the store.
    pub(crate) fn run(&self, collection: &Collection, selection: &Selection, current: u64) -> Result<Listed, Status> {
        let (version, shown, after) = match &self.state {
            State::Recent | State::Any => (current, current, None),
            State::NotOlderThan(version) | State::Exact(version) if *version > current => {
                return Err(Status::version_too_large(*version, current));
            }
            State::NotOlderThan(_) => (current, current, None),
            State::Exact(version) => (*version, *version, None),
            State::Continue(token) => {
                let version = token.version.unwrap_or(current);
                (version, version, Some(ObjectKey::new(&token.start.0, &token.start.1)))
            }
        };
        let page = collection
            .check_not_compacted(shown)
            .and_then(|()| {
                let namespace = selection.namespace.as_deref();
                collection.page(shown, namespace, after.as_ref(), self.limit, |object| selection.matches(object))
            })
            .map_err(|_| self.expired())?;
        let last = page.items.last().filter(|_| page.remaining > 0).map(|object| &object.key);
        let token = last.map(|key| {
            let start = (key.namespace().to_owned(), key.name().to_owned());
            Token { version: Some(version), start }.encode()
        });
        let remaining = (token.is_some() && !selection.has_selectors()).then_some(page.remaining);
        Ok(Listed { version, items: page.items, continue_token: token, remaining, foreign: Vec::new() })
    }

    fn expired(&self) -> Status {
        let State::Continue(token) = &self.state else {
            return Status::expired("The resourceVersion for the provided list is too old.");
        };
        let mut status = Status::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new \
             list without the continue parameter, or use the continue token in this response to retrieve the \
             remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
             that were created, modified, or deleted between the time the first chunk was returned and now may show \
             up in the list.",
        );
        status.continue_token = Some(Token { version: None, ..token.clone() }.encode().into());
        status
    }
}

fn check_match(query: &Query) -> Result<(), Status> {
    const FIELD: &str = "resourceVersionMatch";
    let mut causes = Vec::new();
    if let Some(rule) = query.text(FIELD) {
        if query.text("resourceVersion").is_none() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            causes.push(Cause::forbidden(FIELD, detail));
        }
        if query.text("continue").is_some() {
            causes.push(Cause::forbidden(FIELD, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !["Exact", "NotOlderThan"].contains(&rule) {
            causes.push(Cause::not_supported(FIELD, rule, &["Exact", "NotOlderThan", ""]));
        }
        if rule == "Exact" && query.text("resourceVersion") == Some("0") {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(Cause::forbidden(FIELD, detail));
        }
    }
    if query.text("sendInitialEvents").is_some() {
        causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid_options("ListOptions", causes)) }
}
