//! Servers that never stop talking: whatever they pour over a list or a watch, the memory stays bounded, the request
//! ends, and the error says what to do. Memory is what the allocator counts, of this whole process.

mod pouring;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Client, Config};
use kube_core::ApiResource;
use kubewire_indexer::{Id, Object};
use kubewire_listwatch::{
    Decode, DecodeOptions, ErrorClass, ItemError, Json, Limits, ListOptions, ListWatch, ListerWatcher, RequestError,
    Timeouts, WatchOptions, client_from_config,
};
use peak_alloc::PeakAlloc;
use pouring::{Pour, pour};
use tokio::sync::Semaphore;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The tests of this binary go one by one: they measure the whole process.
static ALONE: Semaphore = Semaphore::const_new(1);

const MIB: usize = 1 << 20;

/// The most memory that was in use at once beyond what is in use now.
async fn peak_of<T>(work: impl Future<Output = T>) -> (T, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = work.await;
    (result, MEMORY.peak_usage().saturating_sub(before))
}

fn client(address: &str) -> Client {
    client_from_config(Config::new(format!("http://{address}").parse().unwrap())).unwrap()
}

/// Items and lines of a MiB, lists of four.
fn limits() -> Limits {
    Limits::default().item(MIB).line(MIB).list(4 * MIB as u64)
}

/// Times short enough for a test; in none of the tests below is a time what ends the request, unless it says so.
fn timeouts() -> Timeouts {
    Timeouts::default().headers(Duration::from_secs(20)).watch_margin(Duration::ZERO)
}

fn pods(address: &str, timeouts: Timeouts) -> ListWatch<Arc<Pod>> {
    ListWatch::all(client(address)).limits(limits()).timeouts(timeouts)
}

async fn list(address: &str, timeouts: Timeouts) -> RequestError {
    pods(address, timeouts).list(&ListOptions::default(), &mut |_| {}).await.expect_err("it never ends")
}

async fn watch(address: &str, timeouts: Timeouts, secs: u64) -> RequestError {
    let options = WatchOptions::from_version("7", Duration::from_secs(secs));
    let mut events = match pods(address, timeouts).watch(&options).await {
        Ok(events) => events,
        Err(error) => return error,
    };
    loop {
        match events.next().await.expect("it never ends") {
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
/// Of a body of a GiB.
const GIB: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

fn padded_item() -> String {
    format!(",{{\"metadata\":{{\"name\":\"x\",\"annotations\":{{\"pad\":\"{}\"}}}}}}", "p".repeat(1000))
}

#[tokio::test]
async fn a_list_that_never_ends_is_left_with_bounded_memory_and_words() {
    let _alone = ALONE.acquire().await;
    let begin = |text: &str| format!("{GIB}{text}");
    let gzip = format!("{OK}Content-Encoding: gzip\r\nContent-Length: 1073741824\r\n\r\n");
    let failure = "HTTP/1.1 500 Oh\r\nContent-Length: 1073741824\r\n\r\n";
    // what comes first, what comes for ever, the class, and what the error says
    let table: [(String, String, ErrorClass, &str); 14] = [
        (begin("{\"items\":[{}"), padded_item(), ErrorClass::TooLong, "Limits::list"),
        (begin("{\"items\":[{}"), ",{}".to_owned(), ErrorClass::TooLong, "Limits::list"),
        (begin("{\"items\":["), " ".to_owned(), ErrorClass::TooLong, "Limits::list"),
        (begin(""), "\n".to_owned(), ErrorClass::TooLong, "Limits::list"),
        (begin("{\"items\":[{\"metadata\":{\"name\":\""), "x".to_owned(), ErrorClass::TooLong, "Limits::item"),
        (begin("{\"items\":["), "[".to_owned(), ErrorClass::TooLong, "Limits::item"),
        (begin("{\"metadata\":{\"x\":\""), "x".to_owned(), ErrorClass::TooLong, "beside its items"),
        (begin("{"), "\"a\":1,".to_owned(), ErrorClass::TooLong, "beside its items"),
        (gzip, "\u{0}".to_owned(), ErrorClass::Decode, "compressed"),
        (failure.to_owned(), "<p>".to_owned(), ErrorClass::Internal, "the server answered 500"),
        (
            "HTTP/1.1 200 OK\r\n".to_owned(),
            "X-More: and more\r\n".to_owned(),
            ErrorClass::Transport,
            "head is too large",
        ),
        ("HTTP/1.1 200 OK\r\nX-More: ".to_owned(), "more".to_owned(), ErrorClass::Transport, "head is too large"),
        (format!("{CHUNKED}5;"), "more".to_owned(), ErrorClass::Transport, ""),
        (format!("{CHUNKED}0\r\n"), "X-More: and more\r\n".to_owned(), ErrorClass::Transport, "trailers"),
    ];
    for (first, ever, class, says) in table {
        let server = pour(Pour::for_ever(&first, &ever)).await;
        let (error, peak) = peak_of(list(&server.address, timeouts())).await;
        let of = &first[first.len().saturating_sub(30)..];
        assert!(error.to_string().contains(says), "{of:?} {ever:?}: {error}");
        assert_eq!(error.class(), class, "{of:?} {ever:?}: {error}");
        assert!(peak < 8 * MIB, "{of:?} {ever:?}: {peak} bytes");
        assert!(error.to_string().len() < 1000, "{error}");
    }
}

#[tokio::test]
async fn a_watch_that_never_ends_its_line_is_left_with_bounded_memory_and_words() {
    let _alone = ALONE.acquire().await;
    for (first, ever) in [
        ("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"", "x"),
        ("{\"type\":\"ADDED\",\"object\":", "["),
        ("", " "),
        ("", "\u{0}"),
    ] {
        let server = pour(Pour::for_ever(&format!("{GIB}{first}"), ever)).await;
        let (error, peak) = peak_of(watch(&server.address, timeouts(), 60)).await;
        assert_eq!(error.class(), ErrorClass::TooLong, "{ever:?}: {error}");
        assert!(error.to_string().contains("Limits::line"), "{error}");
        assert!(peak < 8 * MIB, "{ever:?}: {peak} bytes");
    }
}

/// What is no event never fills anything; the time of the watch ends it.
#[tokio::test]
async fn blank_lines_for_ever_end_with_the_time_of_the_watch() {
    let _alone = ALONE.acquire().await;
    let server = pour(Pour::for_ever(GIB, "\n\r\n").slowly()).await;
    let (error, peak) = peak_of(watch(&server.address, timeouts(), 1)).await;
    assert_eq!(error.class(), ErrorClass::TimedOut, "{error}");
    assert!(peak < MIB, "{peak} bytes");
}

#[tokio::test]
async fn a_list_that_drips_for_ever_ends_with_its_time() {
    let _alone = ALONE.acquire().await;
    let server = pour(Pour::for_ever(&format!("{GIB}{{\"items\":[{{}}"), ",{}").slowly()).await;
    let short = timeouts().list(Duration::from_millis(200));
    let (error, peak) = peak_of(list(&server.address, short)).await;
    assert_eq!(error.class(), ErrorClass::TimedOut, "{error}");
    assert!(error.to_string().contains("did not end within 200ms"), "{error}");
    assert!(peak < MIB, "{peak} bytes");
}

/// `100 Continue` again and again is no answer.
#[tokio::test]
async fn informational_answers_for_ever_end_with_the_time_for_headers() {
    let _alone = ALONE.acquire().await;
    let server = pour(Pour::for_ever("", "HTTP/1.1 100 Continue\r\n\r\n").slowly()).await;
    let short = timeouts().headers(Duration::from_millis(200));
    let (error, peak) = peak_of(list(&server.address, short)).await;
    assert_eq!(error.class(), ErrorClass::TimedOut, "{error}");
    assert!(peak < MIB, "{peak} bytes");
}

/// An object that is not read, as a million of them would take an unoptimised parser long.
#[derive(Clone)]
struct Unread;

impl Object for Unread {
    fn id(&self) -> Id<'_> {
        Id::new("", "a")
    }

    fn label(&self, _: &str) -> Option<&str> {
        None
    }
}

impl Decode<Json> for Unread {
    fn decode(_: &[u8], _: &DecodeOptions) -> Result<Self, ItemError> {
        Ok(Self)
    }
}

#[tokio::test]
async fn a_million_items_in_a_page_are_never_held_together() {
    let _alone = ALONE.acquire().await;
    const COUNT: usize = 1_000_000;
    let item = "{\"metadata\":{\"name\":\"a\"}},";
    let (begin, last) = ("{\"items\":[", "{\"metadata\":{\"name\":\"z\"}}],\"metadata\":{}}");
    let len = begin.len() + item.len() * COUNT + last.len();
    let first = format!("{OK}Content-Length: {len}\r\n\r\n{begin}");
    let server = pour(Pour::times(&first, item, COUNT, last)).await;
    let resource = ApiResource::erase::<Pod>(&());
    let pods = ListWatch::<Unread>::for_resource(client(&server.address), &resource).timeouts(timeouts());
    let mut count = 0;
    let mut each = |item: Result<_, _>| count += usize::from(item.is_ok());
    let (answer, peak) = peak_of(pods.list(&ListOptions::default(), &mut each)).await;
    answer.unwrap();
    assert_eq!(count, COUNT + 1);
    // Of the 26 MB two batches of ten thousand items are there at once, as bytes and as what became of them.
    assert!(peak < 3 * MIB, "{peak} bytes");
}
