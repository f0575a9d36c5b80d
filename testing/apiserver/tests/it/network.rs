//! The network between a client and the server in process.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{PostParams, WatchParams};
use kube_client::core::ObjectMeta;
use kube_client::{Api, Client};
use kubewire_apiserver::{ApiServer, Network};
use tokio::time::{Instant, sleep, timeout};

const MINUTE: Duration = Duration::from_secs(60);

fn config(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

fn configs(network: &Network) -> Api<ConfigMap> {
    Api::default_namespaced(Client::new(network.clone(), "default"))
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_over_a_network_comes_soon_late_or_never() {
    let server = ApiServer::start().await;
    let (network, params) = (Network::new(&server, 1), PostParams::default());
    let api = configs(&network);
    let before = Instant::now();
    api.create(&params, &config("soon")).await.unwrap();
    assert!(before.elapsed() <= Duration::from_millis(200));

    network.hold(true);
    let late = tokio::spawn({
        let api = api.clone();
        async move { api.create(&PostParams::default(), &config("late")).await }
    });
    sleep(MINUTE).await;
    assert!(!late.is_finished() && server.get("configmaps", "default", "late").is_none());
    network.hold(false);
    late.await.unwrap().unwrap();

    network.cut(true);
    assert!(timeout(60 * MINUTE, api.create(&params, &config("never"))).await.is_err());
    network.cut(false);
    sleep(MINUTE).await;
    assert!(server.get("configmaps", "default", "never").is_none());
    assert_eq!(network.take_arrived().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_somebody_who_is_gone_arrives() {
    let server = ApiServer::start().await;
    let network = Network::new(&server, 1);
    network.hold(true);
    assert!(timeout(MINUTE, configs(&network).create(&PostParams::default(), &config("a"))).await.is_err());
    network.hold(false);
    sleep(MINUTE).await;
    assert!(server.get("configmaps", "default", "a").is_some());
    assert_eq!(server.requests_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_watch_wait_while_the_network_is_cut_or_holds() {
    let server = ApiServer::start().await;
    let network = Network::new(&server, 1);
    let events = configs(&network).watch(&WatchParams::default(), "0").await.unwrap();
    let mut events = std::pin::pin!(events);
    type Switch = fn(&Network, bool);
    for (name, switch) in [("a", Network::cut as Switch), ("b", Network::hold as Switch)] {
        switch(&network, true);
        server.create("configmaps", serde_json::json!({"metadata": {"namespace": "default", "name": name}})).unwrap();
        assert!(timeout(MINUTE, events.next()).await.is_err(), "{name}");
        switch(&network, false);
        assert!(timeout(MINUTE, events.next()).await.unwrap().unwrap().is_ok(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_network_loses_delays_and_repeats_the_same_for_the_same_seed() {
    let mut arrived = Vec::new();
    for seed in [1, 1, 2] {
        let server = ApiServer::start().await;
        let network = Network::new(&server, seed);
        network.bad(true);
        let (api, mut answered, mut late) = (configs(&network), 0, 0);
        for _ in 0..300 {
            let before = Instant::now();
            answered += u32::from(timeout(MINUTE, api.get_opt("a")).await.is_ok_and(|answer| answer.is_ok()));
            late += u32::from(before.elapsed() > Duration::from_secs(1) && before.elapsed() < MINUTE);
        }
        sleep(MINUTE).await;
        let count = network.take_arrived().len();
        assert!((240..295).contains(&answered) && late > 20, "{answered} of 300 answered, {late} late");
        assert!(count > 295, "{count} have arrived");
        arrived.push((count, answered, late));
    }
    assert_eq!(arrived[0], arrived[1]);
    assert_ne!(arrived[0], arrived[2]);
}
