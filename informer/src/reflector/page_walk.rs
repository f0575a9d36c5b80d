//! PURE: how a list is walked page by page: the rules of client-go's `tools/pager`.

use kubewire_listwatch::{ErrorClass, ListMeta, ListOptions, RequestError};

/// One walk over the pages of a list.
///
/// Invariants: 1. the first request carries the caller's version and match, a continuation carries neither (the
/// server refuses them beside a token); 2. the version of the whole list is the first page's; 3. a walk asks for
/// the full list at most once; 4. no token is followed round in a circle.
#[derive(Clone, Debug)]
pub(crate) struct PageWalk {
    /// The first request, limit included.
    first: ListOptions,
    /// The token that the request under way carries.
    token: Option<String>,
    /// The version of the first page.
    version: Option<String>,
    /// Whether an expired continuation falls back to the full list.
    full_list_if_expired: bool,
    /// Whether the request under way is that full list.
    full_list: bool,
    /// Pages received so far.
    pages: u64,
    /// The token of the page whose number was the last power of two: a circle must come back to it, however
    /// long it is (Brent's way to find a cycle).
    landmark: Option<String>,
}

/// What a page means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Ask for the next page.
    More(ListOptions),
    /// That was the last one.
    Done {
        /// The version of the list.
        version: String,
        /// Whether it came in more than one page.
        paginated: bool,
    },
    /// The server gave a token that it had given before: following it would never end.
    Circle,
}

impl PageWalk {
    /// A walk that begins with this request.
    pub(crate) fn new(first: ListOptions, full_list_if_expired: bool) -> Self {
        Self { first, token: None, version: None, full_list_if_expired, full_list: false, pages: 0, landmark: None }
    }

    /// The first request.
    pub(crate) fn first(&self) -> &ListOptions {
        &self.first
    }

    /// Whether the list has turned out to have more than one page.
    pub(crate) fn paginated(&self) -> bool {
        self.token.is_some()
    }

    /// A page came.
    pub(crate) fn page(&mut self, meta: &ListMeta) -> Walk {
        self.pages += 1;
        if self.full_list || self.version.is_none() {
            self.version = Some(meta.resource_version.clone());
        }
        let next = meta.continue_token.as_deref().filter(|token| !token.is_empty() && !self.full_list);
        let Some(next) = next else {
            return Walk::Done { version: self.version.clone().unwrap_or_default(), paginated: self.paginated() };
        };
        if self.landmark.as_deref() == Some(next) {
            return Walk::Circle;
        }
        if self.pages.is_power_of_two() {
            self.landmark = Some(next.to_owned());
        }
        self.token = Some(next.to_owned());
        Walk::More(self.continuation(next))
    }

    /// The request failed: the full list to ask for in its place, if there is one. It holds everything, so what
    /// earlier pages brought is to be forgotten.
    pub(crate) fn failed(&mut self, error: &RequestError) -> Option<ListOptions> {
        if !self.full_list_if_expired || self.full_list || !self.paginated() || !is_expired_token(error) {
            return None;
        }
        self.full_list = true;
        let mut options = self.first.clone();
        options.limit = None;
        Some(options)
    }

    fn continuation(&self, token: &str) -> ListOptions {
        let mut options = ListOptions::default();
        options.limit = self.first.limit;
        options.continue_token = Some(token.to_owned());
        options
    }
}

/// Whether a token has expired. `Gone`, of servers before 1.18, does not count, as for client-go's pager: there
/// the whole list is asked for anew, without a version.
fn is_expired_token(error: &RequestError) -> bool {
    error.class() == ErrorClass::Expired && error.status().is_none_or(|status| status.reason == "Expired")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubewire_listwatch::Status;

    fn options(version: &str, limit: u32) -> ListOptions {
        let mut options = ListOptions::default();
        options.resource_version = Some(version.to_owned());
        options.limit = Some(limit);
        options
    }

    fn refusal(reason: &str) -> RequestError {
        let mut status = Status::default();
        status.code = 410;
        status.reason = reason.to_owned();
        RequestError::from_status(status)
    }

    #[test]
    fn a_continuation_carries_the_limit_and_the_token_and_no_version() {
        let mut walk = PageWalk::new(options("7", 2), true);
        let Walk::More(next) = walk.page(&ListMeta::new("9").continued("t1")) else { panic!("one more page") };
        assert_eq!((next.resource_version, next.resource_version_match), (None, None));
        assert_eq!((next.limit, next.continue_token.as_deref()), (Some(2), Some("t1")));
    }

    #[test]
    fn the_version_of_a_list_is_its_first_pages() {
        let mut walk = PageWalk::new(options("7", 2), true);
        walk.page(&ListMeta::new("9").continued("t1"));
        assert_eq!(walk.page(&ListMeta::new("12")), Walk::Done { version: "9".into(), paginated: true });
    }

    #[test]
    fn an_empty_token_ends_the_list() {
        let mut walk = PageWalk::new(options("7", 2), true);
        let end = walk.page(&ListMeta::new("9").continued(""));
        assert_eq!(end, Walk::Done { version: "9".into(), paginated: false });
    }

    #[test]
    fn an_expired_token_asks_for_the_full_list_at_the_first_version_and_only_once() {
        let mut walk = PageWalk::new(options("7", 2), true);
        walk.page(&ListMeta::new("9").continued("t1"));
        let full = walk.failed(&refusal("Expired")).expect("the full list");
        assert_eq!((full.resource_version.as_deref(), full.limit, full.continue_token), (Some("7"), None, None));
        assert_eq!(walk.failed(&refusal("Expired")), None);
        assert_eq!(walk.page(&ListMeta::new("11")), Walk::Done { version: "11".into(), paginated: true });
    }

    #[test]
    fn a_failure_is_final_where_it_is_not_an_expired_token() {
        let mut first_page = PageWalk::new(options("7", 2), true);
        assert_eq!(first_page.failed(&refusal("Expired")), None);
        let mut gone = PageWalk::new(options("7", 2), true);
        gone.page(&ListMeta::new("9").continued("t1"));
        assert_eq!(gone.failed(&refusal("Gone")), None);
        let mut without_fallback = PageWalk::new(options("7", 2), false);
        without_fallback.page(&ListMeta::new("9").continued("t1"));
        assert_eq!(without_fallback.failed(&refusal("Expired")), None);
    }

    #[test]
    fn a_token_that_comes_again_is_not_followed() {
        let mut walk = PageWalk::new(options("7", 2), true);
        walk.page(&ListMeta::new("9").continued("t1"));
        assert_eq!(walk.page(&ListMeta::new("9").continued("t1")), Walk::Circle);
    }

    #[test]
    fn a_circle_of_tokens_ends_after_a_few_rounds_whatever_its_length() {
        for length in 1..40_u32 {
            let mut walk = PageWalk::new(options("7", 2), true);
            let pages = (0..).take_while(|page| {
                walk.page(&ListMeta::new("9").continued(format!("t{}", page % length))) != Walk::Circle
            });
            assert!(pages.count() <= 3 * length as usize + 2, "a circle of {length}");
        }
    }

    #[test]
    fn pages_without_items_but_with_new_tokens_go_on() {
        let mut walk = PageWalk::new(options("7", 2), true);
        for page in 0..1000 {
            assert!(matches!(walk.page(&ListMeta::new("9").continued(format!("t{page}"))), Walk::More(_)));
        }
    }
}
