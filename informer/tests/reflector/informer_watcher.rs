//! An informer seen as a watch.

use futures::StreamExt;
use kubewire_informer::watch_tools::InformerWatcher;

use super::fake_server::{fake, status};
use super::retry_watcher::text;

#[tokio::test(start_paused = true)]
async fn changes_come_as_events_in_order_and_missed_deletions_with_the_last_state() {
    let (lister_watcher, server) = fake(false);
    let mut watcher = InformerWatcher::start(lister_watcher);
    let stream = server.list_and_watch(&["a@1", "b@2"], "5").await;
    stream.send("+c@6 ~a@7 -b@8 +b@9 ~c@10");
    stream.error(status(410, "Expired"));
    server.list_and_watch(&["a@7", "b@9", "d@12"], "12").await.send("-d@13");
    let mut seen = Vec::new();
    for _ in 0..12 {
        let item = watcher.next().await.expect("an event");
        seen.push(text(&item));
    }
    // The list again: the deletion that it reveals, then all that it has.
    let wanted = "+a@1 +b@2 +c@6 ~a@7 -b@8 +b@9 ~c@10 -c@10 ~a@7 ~b@9 +d@12 -d@13";
    assert_eq!(seen.join(" "), wanted);
    assert_eq!(watcher.informer().indexer().len(), 2);
    watcher.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_it_with_unread_events_ends_everything() {
    let (lister_watcher, server) = fake(false);
    let mut watcher = InformerWatcher::start(lister_watcher);
    let stream = server.list_and_watch(&["a@1"], "5").await;
    stream.send("+b@6 +c@7");
    assert_eq!(watcher.next().await.map(|item| text(&item)).as_deref(), Some("+a@1"));
    watcher.stop().await;
    assert_eq!(stream.stops(), 1);
}
