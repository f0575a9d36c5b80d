//! Every kind of fault once more over a real socket, byte by byte: what kube, hyper and the operating system make of it
//! on the way. The tests by paused time, in the other files, look at requests and delays; these at what comes of it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::Config;
use kubewire_conformance::wire::{Server, Socket, Thing, event_line};
use kubewire_indexer::Deleted;
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{HandlerOptions, Informer, InformerOptions, Registration, ResourceEventHandlerFuncs};
use kubewire_listwatch::{ListWatch, Timeouts, client_from_config};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Heard, Options, alive_tasks, over_socket, quick, quick_backoff, until, until_or};

const TOO_LARGE: &str = "{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}}";

/// A server whose scripts may use what is odd.
fn server(script: &str) -> Server {
    let pod = |change: fn(&mut Value)| {
        let mut pod = Thing::parse("odd@13").json();
        change(&mut pod);
        pod
    };
    let null_metadata = pod(|pod| pod["metadata"] = Value::Null);
    let unknown_values = pod(|pod| {
        pod["spec"]["restartPolicy"] = json!("NobodyKnows");
        pod["status"] = json!({"phase": "Dreaming", "conditions": [{"type": "New", "status": "Perhaps"}]});
    });
    Server::new(script)
        .bytes("half", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na")
        .bytes("halflist", "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{\"metadata\":{\"name\":\"half\"}},")
        .bytes("blank", "\n\r\n  \n")
        .bytes("text", "upstream connect error\n")
        .bytes("html", "<html><h1>502 Bad Gateway</h1></html>")
        .bytes("large", TOO_LARGE)
        .bytes("ping", event_line("PING", &pod(|_| {})))
        .bytes("nullevent", event_line("ADDED", &null_metadata))
        .bytes("nullitem", null_metadata.to_string())
        .bytes("unknownevent", event_line("ADDED", &unknown_values))
        .bytes("emptybookmark", event_line("BOOKMARK", &json!({"kind": "Pod", "metadata": {}})))
        .bytes("otherbookmark", event_line("BOOKMARK", &json!({"kind": "Node", "metadata": {"resourceVersion": "99"}})))
}

fn options() -> Options {
    let timeouts = Timeouts::default()
        .headers(Duration::from_millis(150))
        .list_idle(Duration::from_millis(150))
        .watch_idle(Duration::from_millis(300));
    Options { timeouts, ..quick() }
}

/// Plays scripts at the same time, each on a socket of its own. When a script is over the server says the truth, and
/// one more object comes: then store, indices and handler have what the server has, and no task or socket is left.
async fn each_converges(scripts: impl IntoIterator<Item = String>, options: &Options) {
    let tasks = alive_tasks();
    let plays = scripts.into_iter().map(|script| async move {
        let socket = Socket::listen(server(&script)).await;
        // Of several at once none can say which tasks are its own.
        let mut run = over_socket::<Arc<Pod>>(&socket, options.clone());
        run.tasks = usize::MAX;
        run.requests(script.lines().count()).await;
        socket.server().happens("+end@90");
        let what = || format!("{script}: {:?}, {:?}", socket.server().asked(), run.errors());
        until_or(what, || run.store().contains(&"end@90".to_owned())).await;
        run.converges().await;
        let errors = run.errors();
        assert!(errors.iter().all(|error| error.len() < 1000), "{script}: {errors:?}");
        run.ends().await;
        until("no socket is left", || socket.open() == 0).await;
    });
    futures::future::join_all(plays).await;
    until("no task is left", || alive_tasks() <= tasks).await;
}

#[tokio::test]
async fn each_status_at_the_opening_and_within_the_stream() {
    let statuses =
        ["400", "401", "403", "404", "409", "410", "410 reason=Expired", "429", "500", "502 $html", "503", "504"];
    let retry_after = ["429 after=0", "429 after=Sun,_06_Nov_1994_08:49:37_GMT", "503 after=0 $text", "429 after=soon"];
    let openings = statuses.iter().chain(&retry_after).flat_map(|status| {
        [format!("LIST → {status}\n LIST → [x@10] rv=10"), format!("LIST → [x@10] rv=10\n WATCH → {status}")]
    });
    let reasons = ["401", "403", "404", "409", "410:Expired", "410:Gone", ":Gone", "429", "500", "503", "504", ""];
    let within = reasons.iter().flat_map(|reason| {
        ["■", "…", "CUT"].map(|end| format!("LIST → [x@10] rv=10\n WATCH → +y@11 ERR:{reason} {end}"))
    });
    let scripts: Vec<String> = openings.chain(within).collect();
    each_converges(scripts, &options()).await;
}

/// The wait that a server asks for, in both forms, is kept: by a clock, as no time stands still here.
#[tokio::test]
async fn retry_after_is_kept_in_both_forms() {
    let waits = ["429 after=1", "429 told=1", "429 after=date+2", "503 after=1"].map(|answer| async move {
        let socket = Socket::listen(server(&format!("LIST → {answer}\n LIST → [x@10] rv=10"))).await;
        let run = over_socket::<Arc<Pod>>(&socket, quick());
        run.converges_after(&["x@10"]).await;
        let log = socket.server().log();
        let gap = log[1].at - log[0].at;
        // A date has whole seconds: of two, one may have gone by.
        assert!(gap >= Duration::from_millis(900), "{answer}: {gap:?}");
        run.ends().await;
    });
    futures::future::join_all(waits).await;
}

#[tokio::test]
async fn connections_that_say_nothing_stop_within_an_event_or_drip() {
    let scripts = [
        "LIST → DEAD\n LIST → [x@10] rv=10",
        "LIST → 200 DEAD\n LIST → [x@10] rv=10",
        "LIST → $halflist DEAD\n LIST → [x@10] rv=10",
        "LIST → [x@10] rv=10\n WATCH → DEAD",
        "LIST → [x@10] rv=10\n WATCH → 200 DEAD",
        "LIST → [x@10] rv=10\n WATCH → +y@11 DEAD",
        "LIST → [x@10] rv=10\n WATCH → +y@11 $half DEAD",
        "LIST → [x@10] rv=10\n WATCH → +y@11 | $half | DEAD",
        "LIST → [x@10] rv=10\n WATCH → 40ms +y@11 40ms | 40ms ~y@12 40ms -x@13 40ms ■",
        "LIST → [x@10] rv=10\n WATCH → +y@11 $half CUT",
        "LIST → [x@10] rv=10\n WATCH → +y@11 $half ■",
        "LIST → [x@10] rv=10\n WATCH → +y@11 $half RST",
        "LIST → $halflist ■\n LIST → [x@10] rv=10",
        "LIST → $halflist CUT\n LIST → [x@10] rv=10",
        "LIST → [x@8] rv=9 CUT\n LIST → [x@10] rv=10",
    ];
    each_converges(scripts.map(str::to_owned), &options()).await;
}

#[tokio::test]
async fn tokens_that_expire_repeat_or_are_empty() {
    let mut scripts: Vec<String> = Vec::new();
    for page in 1..4 {
        for refusal in ["410 reason=Expired", "410 reason=Expired token=t9", "410 reason=Gone", "410", "500"] {
            let pages = (0..page).map(|n| format!("LIST → [gone{n}@{}] rv=9 continue=t{n}", n + 1));
            scripts
                .push(format!("{}\nLIST → {refusal}\n LIST → [a@1 b@2] rv=20", pages.collect::<Vec<_>>().join("\n")));
        }
    }
    for script in [
        "LIST → [a@1] rv=9 continue=t1\n LIST → [b@2] rv=9 continue=t1\n LIST → [a@1 b@2] rv=20",
        "LIST → [a@1] rv=9 continue=t1\n LIST → [b@2] rv=9 continue=",
        "LIST → [a@1] rv=9 continue=t1\n LIST → [] rv=9 continue=t2\n LIST → [b@2] rv=9",
        "LIST → [a@1] rv=9 continue=",
    ] {
        scripts.push(script.to_owned());
    }
    let reflector = ReflectorOptions::new().watch_list(false).page_size(2).backoff(quick_backoff());
    each_converges(scripts, &Options { reflector, ..options() }).await;
}

#[tokio::test]
async fn lines_events_and_bookmarks_that_are_odd() {
    let lines = [
        "$blank",
        "$text",
        "$html",
        "$ping",
        "$nullevent",
        "$emptybookmark",
        "$otherbookmark",
        "BM@11",
        "BM@9",
        "BM@011",
    ];
    let lines = lines.map(|line| format!("LIST → [x@10] rv=10\n WATCH → +y@11 {line} ~y@12 -x@13"));
    let events = [
        "LIST → [x@10] rv=10\n WATCH → ~x#u2@12",
        "LIST → [x@10] rv=10\n WATCH → -x@11 +x#u2@12",
        "LIST → [x@10] rv=10\n WATCH → ERR:410:Expired ■\n LIST → [x#u2@30] rv=30",
        "LIST → [x@10] rv=10\n WATCH → +y@11 +y@11 ~y@12 ~y@12 -y@13 -y@13 +z@14",
        "LIST → [x@10] rv=10\n WATCH → +y@11 +z@12 ~z@14 | +y@11 -x@15 +z@14",
        "LIST → [x@10 x@11 $nullitem y@12] rv=12\n WATCH → ~x@13",
        "LIST → [x@10] rv=10\n WATCH → BM@10 ■\n WATCH → BM@10 BM@10 ■\n WATCH → +y@11",
    ];
    each_converges(lines.into_iter().chain(events.map(str::to_owned)), &options()).await;
    // The server's truth does not know what is behind `$`: only the store does.
    let socket = Socket::listen(server("LIST → [x@10] rv=10\n WATCH → $unknownevent +y@14")).await;
    let run = over_socket::<Arc<Pod>>(&socket, options());
    run.has(&["odd@13", "x@10", "y@14"]).await;
    run.ends().await;
}

#[tokio::test]
async fn streams_that_never_end_their_initial_events_or_end_at_once_again_and_again() {
    let ends = ["■", "CUT", "RST", "200 CUT", "200 RST", "BM@10 ■", "+y@11 ■"];
    let watches = ends.map(|end| format!("LIST → [x@10] rv=10\n{}", format!("WATCH → {end}\n").repeat(8).trim_end()));
    each_converges(watches, &options()).await;
    let reflector = ReflectorOptions::new().backoff(quick_backoff()).initial_events_timeout(Duration::from_millis(150));
    let streams = [
        "STREAM → …\n LIST → [x@10] rv=10",
        "STREAM → +a@1 +b@2 …\n LIST → [x@10] rv=10",
        "STREAM → +a@1 +b@2 BM@3 …\n LIST → [x@10] rv=10",
        "STREAM → +a@1 ■\n STREAM → +a@1 CUT\n STREAM → +a@1 +x@10 END@10",
        "STREAM → ERR:410:Expired ■\n STREAM → +x@10 END@10",
        "STREAM → +a@1 $half DEAD\n LIST → [x@10] rv=10",
        "STREAM → 400\n LIST → [x@10] rv=10",
    ];
    each_converges(streams.map(str::to_owned), &Options { reflector, ..options() }).await;
}

/// Compaction, versions that the server does not have, and a restore to an older state.
#[tokio::test]
async fn compaction_versions_too_large_and_a_restore_of_an_older_state() {
    let socket = Socket::listen(server("LIST → [x@10] rv=10")).await;
    let run = over_socket::<Arc<Pod>>(&socket, options());
    run.converges_after(&["x@10"]).await;
    // Compacted while nobody watches: what was deleted meanwhile is found by a list.
    socket.close().await;
    socket.server().happens("-x@11 +y@12");
    socket.server().compact();
    socket.reopen().await;
    run.converges_after(&["y@12"]).await;
    assert!(run.heard.log().contains(&"-x@10?".to_owned()), "{:?}", run.heard.log());
    // Its versions go back, and it refuses those that it does not have.
    socket.close().await;
    socket.server().restored(&["y@5", "z@6"], 7);
    socket.server().then("WATCH → 504 $large\n LIST → 504 $large");
    socket.reopen().await;
    run.converges_after(&["y@5", "z@6"]).await;
    // Or it answers with what it has: three times it is not believed.
    socket.close().await;
    socket.server().restored(&["z@3"], 4);
    socket.server().then("WATCH → 410\n LIST ×3 → [z@3] rv=4");
    socket.reopen().await;
    run.has(&["z@3"]).await;
    socket.server().happens("+w@5");
    run.has(&["w@5", "z@3"]).await;
    let told = run.errors();
    assert!(told.iter().any(|error| error.contains("not older than 7")), "{told:?}, {:?}", socket.server().asked());
    run.ends().await;
}

/// B40: resyncs ask the server for nothing, come to those who asked for them, and leave a pending change alone.
#[tokio::test]
async fn resyncs_ask_the_server_for_nothing_and_come_to_those_who_want_them() {
    let socket = Socket::listen(server("LIST → [x@10 y@11] rv=11")).await;
    let config = Config::new(format!("http://{}", socket.address()).parse().unwrap());
    let pods = ListWatch::<Arc<Pod>>::all(client_from_config(config).unwrap());
    let options = InformerOptions::new().resync_period(Duration::from_millis(1)).reflector(quick().reflector);
    let informer = Informer::with_options(pods, options).unwrap();
    let (told, heard) = (Arc::new(Mutex::new([0, 0])), Heard::default());
    let count = |place: usize| {
        let told = Arc::clone(&told);
        ResourceEventHandlerFuncs::new().on_update(move |_, _| told.lock()[place] += 1)
    };
    let every = |period| HandlerOptions::new().resync_period(period);
    informer.add_handler_with(count(0), every(Duration::from_millis(1))).unwrap();
    informer.add_handler_with(count(1), every(Duration::ZERO)).unwrap();
    informer.add_handler(heard.clone()).unwrap();
    let running = informer.start(CancellationToken::new());
    until("two rounds", || told.lock()[0] >= 4).await;
    assert_eq!(told.lock()[1], 0, "who wants none gets none");
    assert_eq!(socket.server().asked(), ["LIST(rv=0,limit=500)", "WATCH(11)"]);
    socket.server().happens("~x@12");
    until("a change", || heard.log().last().is_some_and(|told| told == "~x@10>12")).await;
    assert_eq!(heard.replayed(), ["x@12", "y@11"]);
    running.stop();
    running.join().await;
}

/// B44: from within each callback, while events come in from a socket, on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_may_do_anything_with_its_informer_while_events_come_in() {
    type Action = fn(&Informer<Arc<Pod>>, &Registration);
    let actions: [(&str, Action); 8] = [
        ("list", |informer, _| drop(informer.indexer().list())),
        ("by_index", |informer, _| drop(informer.indexer().by_index("namespace", "ns1").unwrap())),
        ("add a handler", |informer, _| drop(informer.add_handler(Heard::default()))),
        ("has_synced", |informer, own| _ = informer.has_synced() | own.has_synced()),
        ("status", |informer, own| drop((informer.status(), own.status()))),
        ("remove itself", |_, own| own.remove()),
        ("subscribe", |informer, _| drop(informer.subscribe())),
        ("stop", |informer, _| informer.stop()),
    ];
    for (name, action) in actions {
        let socket = Socket::listen(server("LIST → [x@10] rv=10\n WATCH → 20ms ~x@11 -x@12 +y@13")).await;
        let run = over_socket::<Arc<Pod>>(&socket, quick());
        let own: Arc<Mutex<Option<Registration>>> = Arc::default();
        let acted = CancellationToken::new();
        let act = {
            let (informer, own, acted) = (run.informer.clone(), Arc::clone(&own), acted.clone());
            move || {
                // The lock is let go before the informer is used.
                let own = own.lock().clone();
                if let Some(own) = own {
                    action(&informer, &own);
                    acted.cancel();
                }
            }
        };
        let (add, update, delete) = (act.clone(), act.clone(), act);
        let funcs = ResourceEventHandlerFuncs::new()
            .on_add(move |_, _| add())
            .on_update(move |_, _| update())
            .on_delete(move |_: Deleted<Arc<Pod>>| delete());
        let registration = run.informer.add_handler(funcs).unwrap();
        *own.lock() = Some(registration);
        if name != "stop" {
            run.has(&["y@13"]).await;
            socket.server().happens("~y@14 ~y@15");
            run.has(&["y@15"]).await;
        }
        let limit = Duration::from_secs(10);
        tokio::time::timeout(limit, acted.cancelled()).await.unwrap_or_else(|_| panic!("{name}"));
        own.lock().take();
        tokio::time::timeout(limit, run.ends()).await.unwrap_or_else(|_| panic!("end after {name}"));
    }
}
