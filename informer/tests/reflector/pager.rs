//! Lists in pages.

use std::cell::Cell;
use std::sync::Arc;

use futures::FutureExt;
use kubewire_indexer::Object;
use kubewire_informer::reflector::{ListPager, PagerError};
use kubewire_listwatch::{
    ErrorClass, ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, VersionMatch, WatchOptions, WatchStream,
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::PodRef;
use super::fake_server::{bad_item, pod, status};

/// A list of so many pods, cut into pages as asked.
#[derive(Default)]
struct Pages {
    pods: usize,
    /// The page, counted from 1, whose request is refused as expired.
    expired: Option<usize>,
    requests: Mutex<Vec<ListOptions>>,
}

impl Pages {
    fn of(pods: usize) -> Self {
        Self { pods, ..Self::default() }
    }

    fn count(&self) -> usize {
        self.requests.lock().len()
    }
}

impl ListerWatcher for Pages {
    type Object = PodRef;

    async fn list(&self, options: &ListOptions, each: ItemSink<'_, PodRef>) -> Result<ListMeta, RequestError> {
        let page = {
            let mut requests = self.requests.lock();
            requests.push(options.clone());
            requests.len()
        };
        if self.expired == Some(page) {
            return Err(status(410, "Expired"));
        }
        let start: usize = options.continue_token.as_deref().map_or(0, |token| token.parse().expect("our token"));
        let end = options.limit.map_or(self.pods, |limit| self.pods.min(start + limit as usize));
        (start..end).for_each(|n| each(Ok(pod(&format!("p{n}@{n}")))));
        let meta = ListMeta::new(format!("{}", 100 + page));
        Ok(if end < self.pods { meta.continued(end.to_string()) } else { meta })
    }

    async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<PodRef>, RequestError> {
        Err(status(405, "MethodNotAllowed"))
    }
}

fn at_version(version: &str) -> ListOptions {
    let mut options = ListOptions::default();
    options.resource_version = Some(version.to_owned());
    options.resource_version_match = Some(VersionMatch::NotOlderThan);
    options
}

#[tokio::test]
async fn a_list_has_all_items_in_order_in_as_many_calls_as_it_has_pages() {
    for (pods, calls, paginated) in [(0, 1, false), (9, 1, false), (10, 1, false), (11, 2, true), (21, 3, true)] {
        let pages = Pages::of(pods);
        let list = ListPager::new(&pages).page_size(10).list(ListOptions::default()).await.expect("a list");
        let names: Vec<_> = list.items.iter().map(|pod| pod.id().name.to_owned()).collect();
        assert_eq!(names, (0..pods).map(|n| format!("p{n}")).collect::<Vec<_>>());
        assert_eq!((pages.count(), list.paginated), (calls, paginated), "{pods} pods");
        assert_eq!(list.resource_version, "101", "the first page's");
    }
}

#[tokio::test]
async fn version_and_match_are_sent_with_the_first_page_only() {
    let pages = Pages::of(21);
    ListPager::new(&pages).page_size(10).list(at_version("5")).await.expect("a list");
    let requests = pages.requests.lock();
    let seen = |request: &ListOptions| (request.resource_version.clone(), request.resource_version_match.is_some());
    let seen: Vec<_> = requests.iter().map(seen).collect();
    assert_eq!(seen, [(Some("5".to_owned()), true), (None, false), (None, false)]);
}

#[tokio::test]
async fn an_expired_continuation_is_an_error_or_leads_to_the_full_list() {
    let expiring = || Pages { expired: Some(2), ..Pages::of(21) };
    let pages = expiring();
    let pager = ListPager::new(&pages).page_size(10).full_list_if_expired(false);
    let error = pager.list(at_version("5")).await.expect_err("expired");
    let PagerError::Request { source, paginated } = error else { panic!("{error}") };
    assert_eq!((source.class(), paginated, pages.count()), (ErrorClass::Expired, true, 2));

    let pages = expiring();
    let list = ListPager::new(&pages).page_size(10).list(at_version("5")).await.expect("a list");
    let full = pages.requests.lock()[2].clone();
    assert_eq!((full.limit, full.continue_token, full.resource_version.as_deref()), (None, None, Some("5")));
    assert_eq!((list.items.len(), list.paginated, pages.count()), (21, true, 3));
}

#[tokio::test]
async fn an_expired_first_page_is_an_error() {
    let pages = Pages { expired: Some(1), ..Pages::of(21) };
    let error = ListPager::new(&pages).page_size(10).list(at_version("5")).await.expect_err("expired");
    assert!(matches!(error, PagerError::Request { paginated: false, .. }));
    assert_eq!(pages.count(), 1);
}

/// Visits all, failing at this item.
async fn visit(pager: &ListPager<'_, Pages>, fail_at: Option<usize>) -> (usize, Result<(), PagerError<&'static str>>) {
    let visited = Cell::new(0);
    let result = pager
        .each_list_item(ListOptions::default(), |item| {
            assert!(item.is_ok());
            visited.set(visited.get() + 1);
            std::future::ready(if fail_at == Some(visited.get()) { Err("enough") } else { Ok(()) })
        })
        .await;
    (visited.get(), result)
}

#[tokio::test]
async fn each_item_is_visited_once_and_in_order() {
    let pages = Pages::of(51);
    let (visited, result) = visit(&ListPager::new(&pages).page_size(10), None).await;
    assert!(result.is_ok());
    assert_eq!((visited, pages.count()), (51, 6));
}

#[tokio::test]
async fn visiting_has_no_fall_back_and_gives_what_came_before_the_failure() {
    let pages = Pages { expired: Some(2), ..Pages::of(21) };
    let (visited, result) = visit(&ListPager::new(&pages).page_size(10), None).await;
    assert!(matches!(result, Err(PagerError::Request { paginated: true, .. })));
    assert_eq!((visited, pages.count()), (10, 2));
}

#[tokio::test]
async fn a_failing_callback_ends_the_visit_at_once_and_a_panicking_one_reaches_the_caller() {
    let pages = Pages::of(51);
    let (visited, result) = visit(&ListPager::new(&pages).page_size(10).page_buffer(0), Some(3)).await;
    assert!(matches!(result, Err(PagerError::Callback("enough"))));
    assert_eq!(visited, 3);
    assert!(pages.count() <= 2, "later pages are not needed");

    let pager = ListPager::new(&pages);
    let panicking = pager.each_list_item(ListOptions::default(), |_| async { panic!("no") as Result<(), ()> });
    assert!(std::panic::AssertUnwindSafe(panicking).catch_unwind().await.is_err());
}

#[tokio::test]
async fn a_stop_is_noticed_after_the_page_that_is_being_visited() {
    let (pages, stop) = (Pages::of(51), CancellationToken::new());
    let visited = Cell::new(0);
    let pager = ListPager::new(&pages).page_size(10).page_buffer(0).stop(stop.clone());
    let result = pager
        .each_list_item(ListOptions::default(), |_| {
            visited.set(visited.get() + 1);
            if visited.get() == 3 {
                stop.cancel();
            }
            std::future::ready(Ok::<(), ()>(()))
        })
        .await;
    assert!(matches!(result, Err(PagerError::Stopped)));
    assert_eq!(visited.get(), 10);
}

#[tokio::test]
async fn no_more_pages_are_listed_ahead_than_may_wait() {
    for (buffer, listed) in [(0, 2), (1, 3), (10, 5)] {
        let (pages, go_on) = (Arc::new(Pages::of(50)), Arc::new(Notify::new()));
        let task = tokio::spawn({
            let (pages, go_on) = (Arc::clone(&pages), Arc::clone(&go_on));
            async move {
                let pager = ListPager::new(&*pages).page_size(10).page_buffer(buffer);
                let mut first = true;
                pager
                    .each_list_item(ListOptions::default(), |_| {
                        let wait = std::mem::take(&mut first).then(|| Arc::clone(&go_on));
                        async move {
                            if let Some(go_on) = wait {
                                go_on.notified().await;
                            }
                            Ok::<(), ()>(())
                        }
                    })
                    .await
            }
        });
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pages.count(), listed, "buffer {buffer}");
        go_on.notify_one();
        task.await.expect("no panic").expect("visited");
        assert_eq!(pages.count(), 5);
    }
}

#[tokio::test]
async fn a_stop_ends_a_hanging_page() {
    struct Hanging;
    impl ListerWatcher for Hanging {
        type Object = PodRef;
        async fn list(&self, _: &ListOptions, each: ItemSink<'_, PodRef>) -> Result<ListMeta, RequestError> {
            each(Err(bad_item(Some("a"), None)));
            std::future::pending().await
        }
        async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<PodRef>, RequestError> {
            Err(status(405, "MethodNotAllowed"))
        }
    }
    let stop = CancellationToken::new();
    let pager = ListPager::new(&Hanging).stop(stop.clone());
    let list = pager.list(ListOptions::default());
    let (result, ()) = futures::future::join(list, async { stop.cancel() }).await;
    assert!(matches!(result, Err(PagerError::Stopped)));
}
