//! PURE: the rules of a list.

use std::time::Instant;

use kubewire_listwatch::{ErrorClass, ListMeta, ListOptions, RequestError, VersionMatch};

use super::{AfterReplace, Listing, Machine, State, Step, Weight};
use crate::reflector::page_walk::{PageWalk, Walk};
use crate::reflector::reflector_error::ReflectorErrorKind;
use crate::reflector::resource_version::is_older;
use crate::reflector::rules::DEFAULT_PAGE_SIZE;

/// Lists that fail in a row by the version asked for, before the most recent state is asked for, whatever its
/// version: the server has perhaps been restored from a backup, or an event told a version that is none.
const MAX_VERSION_FAILURES: u32 = 3;

impl Machine {
    /// What a list must not be older than: the newest version seen, so that time does not run backwards. Where older
    /// answers are taken it is the version seen last, as in client-go.
    pub(super) fn floor(&self) -> &str {
        if self.rules.refuse_older_answers { self.position.floor() } else { self.position.last() }
    }

    /// Version 0 (whatever the server has in its cache) at first, later the floor; none where that was refused.
    fn list_version(&self) -> Option<String> {
        match (self.version_unavailable, self.floor()) {
            (true, _) => None,
            (false, "") => Some("0".to_owned()),
            (false, version) => Some(version.to_owned()),
        }
    }

    /// A limit beside a version makes the server pass by its cache; beside version 0 its cache ignores the limit.
    fn page_size(&self, version: Option<&str>) -> Option<u32> {
        match self.rules.page_size {
            Some(size) => Some(size),
            None if self.paginated_result || matches!(version, None | Some("0")) => Some(DEFAULT_PAGE_SIZE),
            None => None,
        }
    }

    pub(super) fn begin_list(&mut self) -> Step {
        let version = self.list_version();
        let from_zero = version.as_deref() == Some("0");
        let limit = self.page_size(version.as_deref());
        self.ask_list(version, limit, from_zero, false)
    }

    fn ask_list(&mut self, version: Option<String>, limit: Option<u32>, from_zero: bool, retry: bool) -> Step {
        let mut options = ListOptions::default();
        // Servers take a version beside a limit for "exactly this one", which the watch cache may have forgotten.
        // (Where the pages are client-go's own, the request is client-go's too.)
        let is_at_least = self.rules.page_size.is_some() && !matches!(version.as_deref(), None | Some("0"));
        options.resource_version_match = is_at_least.then_some(VersionMatch::NotOlderThan);
        options.resource_version = version;
        options.limit = limit;
        let walk = PageWalk::new(options.clone(), true);
        self.state = State::Listing(Listing { walk, from_zero, retry });
        Step::List { options, anew: true }
    }

    /// The list request was answered.
    pub(crate) fn listed(&mut self, now: Instant, answer: Result<&ListMeta, &RequestError>) -> Step {
        let State::Listing(listing) = &mut self.state else { return self.out_of_turn(now) };
        match answer {
            Ok(meta) => match listing.walk.page(meta) {
                Walk::More(options) => Step::List { options, anew: false },
                Walk::Done { version, paginated } => self.list_done(now, version, paginated),
                Walk::Circle => self.list_failed(now, ReflectorErrorKind::RepeatedToken),
            },
            Err(error) => {
                if let Some(options) = listing.walk.failed(error) {
                    return Step::List { options, anew: true };
                }
                if is_unavailable_version(error) && !listing.retry {
                    let (limit, from_zero) = (listing.walk.first().limit, listing.from_zero);
                    return self.list_without_version(limit, from_zero, error);
                }
                let versioned = listing.walk.first().resource_version.is_some() && !listing.from_zero;
                if versioned && self.rules.refuse_older_answers && error.class() == ErrorClass::Invalid {
                    self.version_failed();
                }
                self.list_failed(now, ReflectorErrorKind::List(error.clone()))
            }
        }
    }

    fn list_without_version(&mut self, limit: Option<u32>, from_zero: bool, error: &RequestError) -> Step {
        self.version_unavailable = true;
        self.note_failure(ReflectorErrorKind::List(error.clone()), Weight::Bypassed);
        self.ask_list(None, limit, from_zero, true)
    }

    fn list_done(&mut self, now: Instant, version: String, paginated: bool) -> Step {
        let State::Listing(listing) = &self.state else { return self.out_of_turn(now) };
        let (first, from_zero) = (listing.walk.first(), listing.from_zero);
        let (asked, limited) = (first.resource_version.clone(), first.limit.is_some());
        if version.is_empty() {
            return self.list_failed(now, ReflectorErrorKind::NoListVersion);
        }
        if let Some(kind) = self.refuse_older(asked.as_deref(), &version) {
            return self.list_failed(now, kind);
        }
        self.paginated_result |= from_zero && paginated;
        self.exact_version = asked.filter(|asked| limited && *asked == version).unwrap_or_default();
        self.take_in(version, AfterReplace::OpenWatch)
    }

    /// The list is complete: it goes to the store.
    pub(super) fn take_in(&mut self, resource_version: String, then: AfterReplace) -> Step {
        self.version_unavailable = false;
        self.version_failures = 0;
        self.state = State::Replacing { resource_version: resource_version.clone(), then };
        Step::Replace { resource_version }
    }

    /// The store has the list.
    pub(crate) fn replaced(&mut self, now: Instant) -> Step {
        let State::Replacing { resource_version, then } = &mut self.state else { return self.out_of_turn(now) };
        let (resource_version, then) = (std::mem::take(resource_version), *then);
        self.position.list(&resource_version);
        self.resync_due = self.next_resync(now);
        match then {
            AfterReplace::OpenWatch => self.open_watch(now),
            AfterReplace::KeepStream => self.keep_stream(now),
        }
    }

    /// Why an answer at this version is not taken, if it is not: it is older than what was asked for, and so than
    /// what is cached.
    pub(super) fn refuse_older(&mut self, asked: Option<&str>, answered: &str) -> Option<ReflectorErrorKind> {
        let asked = asked.filter(|asked| self.rules.refuse_older_answers && is_older(answered, asked))?;
        let kind = ReflectorErrorKind::OlderAnswer { asked: asked.to_owned(), answered: answered.to_owned() };
        self.version_failed();
        Some(kind)
    }

    fn version_failed(&mut self) {
        self.version_failures += 1;
        if self.version_failures >= MAX_VERSION_FAILURES {
            self.version_unavailable = true;
        }
    }

    /// A watch was refused, or ended, because its version has expired. If a list in pages has answered with just that
    /// version when asked for it, it would do so again and again: the server still has the state, but no longer the
    /// changes behind it. Then the most recent state is asked for.
    pub(super) fn version_expired(&mut self, error: &RequestError) {
        if error.class() == ErrorClass::Expired && self.position.last() == self.exact_version {
            self.version_unavailable = true;
        }
    }

    fn list_failed(&mut self, now: Instant, kind: ReflectorErrorKind) -> Step {
        let retry_after = kind.retry_after();
        self.note_failure(kind, Weight::Told);
        self.end_cycle(now, retry_after)
    }

    /// The driver answered something that was not asked. Not reachable; if it were, a new cycle is right.
    pub(super) fn out_of_turn(&mut self, now: Instant) -> Step {
        debug_assert!(false, "an answer out of turn");
        self.end_cycle(now, None)
    }
}

/// Whether the version asked for is one that the server does not have: no longer, or not yet.
pub(super) fn is_unavailable_version(error: &RequestError) -> bool {
    matches!(error.class(), ErrorClass::Expired | ErrorClass::VersionTooLarge)
}
