//! The cache, and reads of it, against the embedded server in paused time.

use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube_core::DynamicObject;
use kube_core::metadata::PartialObjectMeta;
use kubewire_apiserver::{ApiServer, Matching, Verb};
use kubewire_indexer::{Deleted, IndexFunc};
use kubewire_informer::{AddIndexersError, Hindrance, ResourceEventHandlerFuncs};
use serde_json::json;

use super::*;
use crate::{ListQuery, RestMapper, ScopeOptions};

type Config = Arc<ConfigMap>;

const MINUTE: Duration = Duration::from_secs(60);

fn config(namespace: &str, name: &str, label: &str) -> serde_json::Value {
    json!({"metadata": {"namespace": namespace, "name": name, "labels": {"app": label}}, "data": {"value": label}})
}

/// Two configs in `default`, one in `kube-system`, one in `kube-public`.
async fn server() -> ApiServer {
    let server = ApiServer::start().await;
    for (namespace, name, label) in
        [("default", "a", "web"), ("default", "b", "db"), ("kube-system", "c", "web"), ("kube-public", "d", "web")]
    {
        server.create("configmaps", config(namespace, name, label)).unwrap();
    }
    server
}

async fn started(cache: &Cache) -> CancellationToken {
    let stop = CancellationToken::new();
    cache.start(&stop);
    cache.wait_for_sync(&stop, MINUTE).await.unwrap();
    stop
}

/// Time passes only where nothing is left to do.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

fn names<O: Object>(objects: Vec<O>) -> String {
    let mut names: Vec<_> = objects.iter().map(|object| object.id().name.to_owned()).collect();
    names.sort_unstable();
    names.join(" ")
}

fn labels(text: &str) -> kubewire_indexer::LabelSelector {
    text.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn reading_a_type_that_nobody_watches_is_an_error_and_not_that_of_a_missing_object() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new());
    let configs = cache.watch::<Config>().unwrap();
    started(&cache).await;
    let error = cache.cached::<Arc<Secret>>().unwrap_err();
    assert!(matches!(error, ReadError::NotWatched { .. }), "{error}");
    assert!(configs.get("default", "nope").unwrap().is_none());
    assert!(configs.get("default", "a").unwrap().is_some());
    assert!(server.requests().iter().all(|request| !request.path.contains("secrets")));
}

#[tokio::test(start_paused = true)]
async fn before_the_start_and_before_the_first_list_a_read_says_so() {
    let server = server().await;
    server.forbid(Matching::any().resource("configmaps"));
    let cache = Cache::new(server.client(), CacheOptions::new());
    let configs = cache.watch::<Config>().unwrap();
    let error = configs.get("default", "a").unwrap_err();
    assert!(matches!(error, ReadError::NotStarted { .. }), "{error}");
    let stop = CancellationToken::new();
    cache.start(&stop);
    let error = cache.wait_for_sync(&stop, MINUTE).await.unwrap_err();
    assert!(
        error.to_string().contains("configmaps") && error.to_string().to_lowercase().contains("forbidden"),
        "{error}"
    );
    let error = configs.list(&ListQuery::all()).unwrap_err();
    let ReadError::NotSynced { hindrance, .. } = &error else { panic!("{error}") };
    assert!(matches!(**hindrance, Hindrance::Failing { .. }), "{error}");
    let unhealthy = cache.check_synced().unwrap_err();
    assert!(unhealthy.to_string().contains("configmaps"), "{unhealthy}");
    assert!(cache.check_watches(Duration::from_secs(1)).is_err(), "it was never heard of");

    server.allow_all();
    tokio::time::timeout(MINUTE, configs.synced()).await.unwrap().unwrap();
    assert!(configs.get("default", "a").unwrap().is_some(), "the same read works");
    cache.check_synced().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_for_longer_than_is_tolerated_is_unhealthy_until_it_is_alive_again() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new());
    cache.watch::<Config>().unwrap();
    started(&cache).await;
    cache.check_watches(MINUTE).unwrap();
    server.go_down().await;
    tokio::time::sleep(MINUTE / 2).await;
    cache.check_watches(MINUTE).unwrap();
    cache.check_synced().unwrap();
    tokio::time::sleep(MINUTE).await;
    let unhealthy = cache.check_watches(MINUTE).unwrap_err();
    assert!(unhealthy.to_string().contains("configmaps") && unhealthy.to_string().contains("failing"), "{unhealthy}");
    server.come_back().await;
    tokio::time::sleep(2 * MINUTE).await;
    cache.check_watches(MINUTE).unwrap();
}

#[tokio::test(start_paused = true)]
async fn reads_share_the_object_and_a_cluster_scoped_one_is_found_whatever_namespace_is_named() {
    let server = ApiServer::builder().pods(1).start().await.unwrap();
    let cache = Cache::new(server.client(), CacheOptions::new().namespaces(["default"]));
    let nodes = cache.watch::<Arc<Node>>().unwrap();
    started(&cache).await;
    let all = nodes.list(&ListQuery::all()).unwrap();
    assert!(!all.is_empty(), "named namespaces do not concern what has none");
    let name = all[0].metadata.name.clone().unwrap();
    let (one, other) = (nodes.get("", &name).unwrap().unwrap(), nodes.get("default", &name).unwrap().unwrap());
    assert!(
        Arc::ptr_eq(&one, &other)
            && Arc::ptr_eq(&one, all.iter().find(|n| n.metadata.name.as_ref() == Some(&name)).unwrap())
    );
    assert_eq!(nodes.list(&ListQuery::all().namespace("default")).unwrap().len(), all.len());

    let options = CacheOptions::new().of(TypeOptions::<Arc<Node>>::new().namespace("default", ScopeOptions::new()));
    let error = Cache::new(server.client(), options).watch::<Arc<Node>>().unwrap_err();
    assert_eq!(error, WatchError::ClusterScope { resource: "nodes".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn a_list_is_by_namespace_labels_and_index_and_the_limit_counts_what_is_left() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new());
    let configs = cache.watch::<Config>().unwrap();
    configs
        .add_index("value", IndexFunc::maybe(|c: &Config| c.data.as_ref()?.get("value").map(String::as_str)))
        .unwrap();
    configs.add_index("name", IndexFunc::name()).unwrap();
    started(&cache).await;
    let list = |query: ListQuery| names(configs.list(&query).unwrap());
    // query, names
    for (query, found) in [
        (ListQuery::all(), "a b c d"),
        (ListQuery::all().namespace("default"), "a b"),
        (ListQuery::all().labels(labels("app=web")), "a c d"),
        (ListQuery::all().namespace("default").labels(labels("app=web")), "a"),
        (ListQuery::all().namespace("nowhere"), ""),
        (ListQuery::all().by_index("value", "web"), "a c d"),
        (ListQuery::all().by_index("value", "web").namespace("kube-system"), "c"),
        (ListQuery::all().by_index("value", "web").by_index("name", "d"), "d"),
        (ListQuery::all().by_index("value", "db").by_index("name", "d"), ""),
        (ListQuery::all().by_index("value", "web").labels(labels("app=db")), ""),
    ] {
        assert_eq!(list(query.clone()), found, "{query:?}");
    }
    let limited = ListQuery::all().labels(labels("app=web")).limit(2);
    assert_eq!(configs.list(&limited).unwrap().len(), 2, "of the three that have the label");
    for query in [ListQuery::all().by_index("nope", "x"), ListQuery::all().by_index("value", "x").by_index("nope", "x")]
    {
        assert!(matches!(configs.list(&query), Err(ReadError::UnknownIndex { .. })), "{query:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_index_can_be_added_at_any_time_once_and_follows_each_change() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new());
    let configs = cache.watch::<Config>().unwrap();
    started(&cache).await;
    let by_value = || IndexFunc::many(|c: &Config| c.data.clone().unwrap_or_default().into_values());
    configs.add_index("value", by_value()).unwrap();
    let list = |value: &str| names(configs.list(&ListQuery::all().by_index("value", value)).unwrap());
    assert_eq!(list("web"), "a c d", "what was there before");
    assert!(matches!(configs.add_index("value", by_value()), Err(AddIndexersError::Conflict(_))));
    configs.add_index_if_absent("value", by_value()).unwrap();

    let data = |config: &mut serde_json::Value| config["data"] = json!({"one": "x", "two": "y"});
    server.modify("configmaps", "default", "a", data).unwrap();
    server.delete("configmaps", "kube-system", "c").unwrap();
    settle().await;
    assert_eq!((list("web"), list("x"), list("y")), ("d".into(), "a".into(), "a".into()));
}

#[tokio::test(start_paused = true)]
async fn of_named_namespaces_each_has_its_informer_and_others_are_an_error_of_their_own() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new().namespaces(["default", "kube-system"]));
    let configs = cache.watch::<Config>().unwrap();
    let handled = Arc::new(Mutex::new(Vec::new()));
    for (namespace, informer) in configs.informers() {
        let (handled, namespace) = (Arc::clone(&handled), namespace.to_owned());
        let handler = ResourceEventHandlerFuncs::new()
            .on_add(move |config: Config, _| handled.lock().push(format!("{namespace}/{}", config.id().name)));
        informer.add_handler(handler).unwrap();
    }
    started(&cache).await;
    settle().await;
    assert_eq!(names(configs.list(&ListQuery::all()).unwrap()), "a b c", "the union");
    assert_eq!(names(configs.list(&ListQuery::all().namespace("kube-system")).unwrap()), "c");
    let mut handled = handled.lock().clone();
    handled.sort_unstable();
    assert_eq!(handled, ["default/a", "default/b", "kube-system/c"]);
    for error in [
        configs.get("kube-public", "d").map(drop).unwrap_err(),
        configs.list(&ListQuery::all().namespace("kube-public")).map(drop).unwrap_err(),
    ] {
        assert!(
            matches!(&error, ReadError::UnknownNamespace { namespace, .. } if namespace == "kube-public"),
            "{error}"
        );
    }
    let listed: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert!(listed.iter().all(|path| path.contains("/namespaces/")), "{listed:?}");
}

#[tokio::test(start_paused = true)]
async fn the_namespace_without_a_name_holds_exactly_the_rest() {
    let server = server().await;
    let options = CacheOptions::new()
        .namespace("", ScopeOptions::new())
        .namespace("default", ScopeOptions::new().labels(labels("app=db")));
    let cache = Cache::new(server.client(), options);
    let configs = cache.watch::<Config>().unwrap();
    started(&cache).await;
    assert_eq!(names(configs.list(&ListQuery::all()).unwrap()), "b c d");
    assert!(configs.get("default", "a").unwrap().is_none(), "not selected there");
    assert!(configs.get("kube-public", "d").unwrap().is_some());
    assert_eq!(names(configs.list(&ListQuery::all().namespace("kube-system")).unwrap()), "c");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selector_is_deleted_and_one_that_enters_it_added() {
    let server = server().await;
    let options = CacheOptions::new().scope(ScopeOptions::new().labels(labels("app=web")));
    let cache = Cache::new(server.client(), options);
    let configs = cache.watch::<Config>().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (added, deleted) = (Arc::clone(&log), Arc::clone(&log));
    let handler = ResourceEventHandlerFuncs::new()
        .on_add(move |config: Config, initial| added.lock().push(format!("+{} {initial}", config.id().name)))
        .on_delete(move |gone: Deleted<Config>| deleted.lock().push(format!("-{}", gone.key().name())));
    configs.informers().next().unwrap().1.add_handler(handler).unwrap();
    started(&cache).await;
    settle().await;
    log.lock().clear();
    let label =
        |label: &'static str| move |config: &mut serde_json::Value| config["metadata"]["labels"]["app"] = json!(label);
    server.modify("configmaps", "default", "a", label("db")).unwrap();
    server.modify("configmaps", "default", "b", label("web")).unwrap();
    settle().await;
    assert_eq!(*log.lock(), ["-a", "+b false"]);
    assert_eq!(names(configs.list(&ListQuery::all()).unwrap()), "b c d");
}

#[tokio::test(start_paused = true)]
async fn a_field_selector_of_one_namespace_asks_for_that_namespace() {
    let server = server().await;
    let fields = ScopeOptions::new().fields("metadata.namespace=kube-system".parse().unwrap());
    let cache = Cache::new(server.client(), CacheOptions::new().of(TypeOptions::<Config>::new().scope(fields)));
    let configs = cache.watch::<Config>().unwrap();
    started(&cache).await;
    assert_eq!(names(configs.list(&ListQuery::all()).unwrap()), "c");
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.path == "/api/v1/namespaces/kube-system/configmaps"), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_transformed_whether_it_was_listed_or_watched_and_so_indices_see_it() {
    let server = server().await;
    let options =
        CacheOptions::new().scope(ScopeOptions::new().drop_managed_fields(true)).of(TypeOptions::<Config>::new()
            .transform(|mut config: Config| {
                Arc::make_mut(&mut config).data = None;
                Ok::<_, std::convert::Infallible>(config)
            })
            .index("has-data", IndexFunc::one(|c: &Config| if c.data.is_some() { "yes" } else { "no" })));
    let mut managed = config("default", "e", "web");
    managed["metadata"]["managedFields"] = json!([{"manager": "me", "operation": "Update"}]);
    let cache = Cache::new(server.client(), options);
    let configs = cache.watch::<Config>().unwrap();
    started(&cache).await;
    server.create("configmaps", managed).unwrap();
    settle().await;
    assert_eq!(names(configs.list(&ListQuery::all().by_index("has-data", "no")).unwrap()), "a b c d e");
    assert!(configs.get("default", "e").unwrap().unwrap().metadata.managed_fields.is_none());
}

#[tokio::test(start_paused = true)]
async fn handlers_are_told_again_each_resync_period_of_what_has_not_changed() {
    let server = server().await;
    let scope = ScopeOptions::new().resync_period(Duration::from_secs(3600));
    let cache = Cache::new(server.client(), CacheOptions::new().scope(scope));
    let configs = cache.watch::<Config>().unwrap();
    let updates = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&updates);
    let handler = ResourceEventHandlerFuncs::new().on_update(move |old: Config, new: Config| {
        assert_eq!(old.id().resource_version, new.id().resource_version);
        *counted.lock() += 1;
    });
    configs.informers().next().unwrap().1.add_handler(handler).unwrap();
    started(&cache).await;
    tokio::time::sleep(Duration::from_secs(3200)).await;
    assert_eq!(*updates.lock(), 0, "not before nine tenths");
    tokio::time::sleep(Duration::from_secs(800)).await;
    assert_eq!(*updates.lock(), 4, "by eleven tenths");

    let hour = Duration::from_secs(3600);
    assert_eq!((spread(hour, 0.0), spread(hour, 0.5)), (hour.mul_f64(0.9), hour));
    assert!(spread(hour, 0.999) < hour.mul_f64(1.1));
}

#[tokio::test(start_paused = true)]
async fn a_type_that_is_watched_no_longer_is_silent_and_can_be_watched_anew() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new());
    let configs = cache.watch::<Config>().unwrap();
    started(&cache).await;
    settle().await;
    assert_eq!(server.requests_open(), 1);
    assert!(cache.unwatch(&configs));
    assert!(!cache.unwatch(&configs));
    settle().await;
    assert_eq!(server.requests_open(), 0);
    assert!(cache.cached::<Config>().is_err());
    server.create("configmaps", config("default", "e", "web")).unwrap();
    let again = cache.watch::<Config>().unwrap();
    again.synced().await.unwrap();
    assert_eq!(names(again.list(&ListQuery::all()).unwrap()), "a b c d e");
    assert_eq!(names(configs.list(&ListQuery::all()).unwrap()), "a b c d", "as it was");
    settle().await;
    assert_eq!(server.requests_open(), 1);
    assert!(!cache.unwatch(&configs), "a handle of the watch that is over does not end the one that came after it");
    settle().await;
    assert_eq!(server.requests_open(), 1);
    assert!(cache.cached::<Config>().is_ok());
    assert!(cache.unwatch(&again));
    settle().await;
    assert_eq!(server.requests_open(), 0);
}

/// An unwatch has two steps; this one comes between them.
#[tokio::test(start_paused = true)]
async fn who_watches_while_another_unwatches_begins_anew() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new());
    let configs = cache.watch::<Config>().unwrap();
    started(&cache).await;
    configs.remove_from(&cache.shared.factory);
    let again = cache.watch::<Config>().unwrap();
    tokio::time::timeout(MINUTE, again.synced()).await.expect("it runs").unwrap();
    server.create("configmaps", config("default", "e", "web")).unwrap();
    settle().await;
    assert_eq!(names(again.list(&ListQuery::all()).unwrap()), "a b c d e");
    assert!(!cache.unwatch(&configs), "the second step does not end the watch that came between");
    assert!(cache.unwatch(&again));
}

#[tokio::test(start_paused = true)]
async fn watching_twice_is_watching_once_and_the_end_closes_every_watch() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new());
    let (one, other) = (cache.watch::<Config>().unwrap(), cache.watch::<Config>().unwrap());
    let stop = started(&cache).await;
    cache.start(&CancellationToken::new());
    let late = cache.watch::<Arc<Secret>>().unwrap();
    late.synced().await.unwrap();
    settle().await;
    assert_eq!(server.requests_open(), 2);
    one.add_index("x", IndexFunc::name()).unwrap();
    assert!(other.add_index("x", IndexFunc::name()).is_err(), "they are one");
    stop.cancel();
    cache.shut_down().await;
    assert_eq!(server.requests_open(), 0);
    assert!(matches!(cache.watch::<Arc<Node>>(), Err(WatchError::Stopped)));
    assert!(other.get("default", "a").unwrap().is_some(), "what was kept can be read");
}

#[tokio::test(start_paused = true)]
async fn each_representation_is_watched_by_itself_dynamic_ones_by_their_resource() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new());
    let mapper = RestMapper::new(server.client());
    let (configs, secrets) = (mapper.kind("", "ConfigMap").await.unwrap(), mapper.kind("", "Secret").await.unwrap());
    let typed = cache.watch::<Config>().unwrap();
    let metadata = cache.watch::<Arc<PartialObjectMeta<ConfigMap>>>().unwrap();
    let dynamic = cache.watch_dynamic::<Arc<DynamicObject>>(&configs).unwrap();
    let other = cache.watch_dynamic::<Arc<DynamicObject>>(&secrets).unwrap();
    started(&cache).await;
    settle().await;
    assert_eq!(server.requests_open(), 4);
    assert_eq!(names(typed.list(&ListQuery::all()).unwrap()), "a b c d");
    assert_eq!(names(metadata.list(&ListQuery::all()).unwrap()), "a b c d");
    assert_eq!(names(dynamic.list(&ListQuery::all()).unwrap()), "a b c d");
    assert_eq!(names(other.list(&ListQuery::all()).unwrap()), "");
    let found = cache.cached_dynamic::<Arc<DynamicObject>>(&configs.resource).unwrap();
    assert_eq!(found.list(&ListQuery::all()).unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_writer_reads_its_own_write_once_it_has_waited_for_its_version() {
    let server = server().await;
    let cache = Cache::new(server.client(), CacheOptions::new().namespaces(["default"]));
    let configs = cache.watch::<Config>().unwrap();
    started(&cache).await;
    settle().await;
    let written = server.create("configmaps", config("default", "e", "web")).unwrap();
    assert!(configs.get("default", "e").unwrap().is_none(), "the watch has not brought it yet");
    let version = written["metadata"]["resourceVersion"].as_str().unwrap();
    configs.wait_for_version("default", version).await.unwrap();
    assert!(configs.get("default", "e").unwrap().is_some());
    assert!(configs.wait_for_version("default", "x").await.is_err());
    assert!(configs.wait_for_version("kube-system", version).await.is_err());
    let waits = server.requests().iter().filter(|request| request.verb == Some(Verb::Get)).count();
    assert_eq!(waits, 0, "nothing was asked for it");
}
