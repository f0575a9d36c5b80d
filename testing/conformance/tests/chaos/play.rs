//! One run.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_pb::api::core::v1 as pb;
use kube_client::{Client, Config};
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use kubewire_apiserver::{ApiServer, RecordedRequest, Verb};
use kubewire_indexer::{Meta, Object, ObjectId};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Delivery, InformerOptions};
use kubewire_listwatch::{
    Codec, Json, Limits, ListWatch, Packed, Pb, Protobuf, ProtobufOrJson, Timeouts, Zipped, client_from_config,
    messages,
};
use prost::Message;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::act::{Act, Scene, Traces};
use crate::dice::Dice;
use crate::digest::Digest;
use crate::faults::{self, LINE_LEN_MAX};
use crate::outage;
use crate::restores::Restores;
use crate::scope::Scope;
use crate::seeds::{FIRST_SOCKET_SEED, NameOnPanic};
use crate::tally::Outcome;
use crate::trouble::Trouble;
use crate::writers::{self, Writing};

/// For how long there is trouble.
const TROUBLE: Duration = Duration::from_secs(12 * 60);

/// So many faults have to meet a request or a stream in each run, before its outage.
const FAULTS_MIN: u64 = 20;

/// How long everything may take to be right again: a watch over a connection that has died silently ends by its
/// own time limit, at most 10 minutes, and then there may be back-off.
pub(crate) const RECOVERY: Duration = Duration::from_secs(60 * 60);

/// Informers in each run.
const INFORMERS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Calm,
    Stormy,
}

#[must_use = "nothing is played until `run`"]
pub(crate) struct Play {
    seed: u64,
    weather: Weather,
}

/// The delivery of a run's first informer.
pub(crate) fn delivery(seed: u64) -> Delivery {
    [Delivery::PerKey, Delivery::InOrder, Delivery::Coalescing][(seed % 3) as usize]
}

impl Play {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, weather: Weather::Stormy }
    }

    pub(crate) fn weather(self, weather: Weather) -> Self {
        Self { weather, ..self }
    }

    /// # Panics
    ///
    /// Where anything is not as it should be; the seed is printed then.
    pub(crate) fn run(self) -> Outcome {
        let _name = NameOnPanic { seed: self.seed, test: "chaos" };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(self.play())
    }

    async fn play(self) -> Outcome {
        let begun = Instant::now();
        let builder =
            ApiServer::builder().seed(self.seed).namespaces_on_demand().bookmark_interval(Duration::from_secs(10));
        let over_sockets = self.seed >= FIRST_SOCKET_SEED;
        let builder = if over_sockets { builder.port(0) } else { builder };
        let server = builder.start().await.expect("there is a free port");
        let client = client(&server);
        let mut stage = Stage::set(self.seed, &server, client, self.weather);
        stage.act(self.weather).await;
        if self.weather == Weather::Stormy {
            stage.end_trouble().await;
        } else {
            stage.end_calm().await;
        }
        stage.recover().await;
        let mut outcome = stage.end(self.weather).await;
        server.shut_down();
        drop(server);
        // Whoever has not been told of the end, or waits for something that will never come, is still there.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "tasks are left behind");
        outcome.virtual_time = begun.elapsed();
        outcome
    }
}

fn client(server: &ApiServer) -> Client {
    match server.url() {
        None => Client::new(server.service(), "default"),
        Some(url) => {
            let config = Config::new(url.parse().expect("it is one"));
            client_from_config(config).expect("there is nothing to read for it")
        }
    }
}

/// All who take part in a run.
struct Stage {
    server: ApiServer,
    dice: Dice,
    digest: Digest,
    restores: Restores,
    stop: CancellationToken,
    silence: bool,
    acts: Vec<Box<dyn Act>>,
    writing: Option<Writing>,
    written: u64,
}

impl Stage {
    fn set(seed: u64, server: &ApiServer, client: Client, weather: Weather) -> Self {
        let mut dice = Dice::new(seed);
        let (digest, restores, stop) = (Digest::new(), Restores::new(), CancellationToken::new());
        let silence = dice.chance(0.5);
        for _ in 0..60 {
            writers::write(server, &mut dice, weather == Weather::Stormy);
        }
        let casting = Casting { server, client, silence, is_calm: weather == Weather::Calm, digest: &digest };
        // One after the other, so that each kind of delivery meets each representation.
        let first = Part { scope: Scope::all("configmaps"), delivery: delivery(seed), form: seed / 3 };
        let (act, writing) = casting.cast::<ConfigMap, pb::ConfigMap>(first, Some((&restores, &stop)), &mut dice);
        let writing = writing.expect("the first informer has them");
        let mut acts = vec![act];
        let selection = Scope { namespace: Some("ns-1"), label: Some(("tier", "front")), resource: "configmaps" };
        let second = Part { scope: selection, delivery: any_delivery(&mut dice), form: dice.below(FORMS) };
        acts.push(casting.cast::<ConfigMap, pb::ConfigMap>(second, None, &mut dice).0);
        let third = Part { scope: Scope::all("pods"), delivery: any_delivery(&mut dice), form: dice.below(FORMS) };
        acts.push(casting.cast::<Pod, pb::Pod>(third, None, &mut dice).0);
        assert_eq!(acts.len() as u64, INFORMERS);
        Self { server: server.clone(), dice, digest, restores, stop, silence, acts, writing: Some(writing), written: 0 }
    }

    /// Writers write and handlers come and go for a while, in trouble or not.
    async fn act(&mut self, weather: Weather) {
        let trouble = (weather == Weather::Stormy).then(|| {
            let (server, restores, silence) = (self.server.clone(), self.restores.clone(), self.silence);
            let trouble = Trouble { server, restores, silence, dice: self.dice.fork(), stop: self.stop.child_token() };
            (trouble.stop.clone(), tokio::spawn(trouble.make()))
        });
        let end = Instant::now() + TROUBLE;
        while Instant::now() < end {
            tokio::time::sleep(self.dice.seconds(8)).await;
            let turn = self.dice.below(INFORMERS) as usize;
            self.acts[turn].stir().await;
        }
        if let Some((stop, trouble)) = trouble {
            stop.cancel();
            trouble.await.expect("trouble does not panic");
        }
    }

    /// Everything is well again, but for what cannot be known without a new list.
    async fn end_trouble(&mut self) {
        self.server.clear_faults();
        self.server.allow_all();
        self.server.come_back().await;
        let writing = self.writing.take().expect("it is there until now");
        self.written = writing.stop().await;
        let met: u64 = self.server.faults_hit().values().sum();
        assert!(met >= FAULTS_MIN, "only {met} faults: there was no trouble");
        outage::happen(&self.server, INFORMERS, &mut self.dice).await;
        writers::repair(&self.server);
        if faults::may_keep_what_is_gone(&self.server.faults_hit()) {
            self.server.skip_resource_versions(1);
            self.server.compact();
            self.server.reset_watches();
        }
    }

    async fn end_calm(&mut self) {
        let writing = self.writing.take().expect("it is there until now");
        self.written = writing.stop().await;
        writers::repair(&self.server);
    }

    /// Waits until all stores are what the server has and nothing waits anywhere.
    async fn recover(&self) {
        let begun = Instant::now();
        while let Some(wrong) = self.acts.iter().find(|act| !act.is_right(&self.server)) {
            assert!(begun.elapsed() < RECOVERY, "not right after {RECOVERY:?}: {}", wrong.explain(&self.server));
            // To look costs real time.
            tokio::time::sleep((begun.elapsed() / 4).clamp(Duration::from_secs(1), Duration::from_secs(30))).await;
        }
    }

    /// The model, and the end of all.
    async fn end(self, weather: Weather) -> Outcome {
        let server = self.server;
        let faults = server.faults_hit();
        self.acts.iter().for_each(|act| act.check(&server, self.restores.count()));
        let gone: usize = self.acts.iter().map(|act| act.gone()).sum();
        assert!(gone > 10, "hardly anybody has come and gone");
        assert!(self.written > 200, "only {} changes: this proves nothing", self.written);
        let tombstones: u64 = self.acts.iter().map(|act| act.tombstones()).sum();
        let requests = server.requests();
        if weather == Weather::Calm {
            assert_eq!((tombstones, &faults), (0, &BTreeMap::new()), "what was there to guess?");
            check_calm(&requests);
        }
        for request in &requests {
            self.digest.note(|| format!("{:?} {} {:?}", request.at - requests[0].at, request.path, request.query));
        }
        self.digest.note(|| format!("{faults:?}"));
        let (mut told, mut processed) = (0, 0);
        for act in self.acts {
            let deeds = act.finish().await;
            (told, processed) = (told + deeds.told, processed + deeds.processed);
            let (followed, left) = deeds.traces.count();
            assert_eq!(left, 0, "so many of {followed} objects are held by somebody");
        }
        // The transport is told of its streams' end by itself.
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(server.requests_open(), 0, "a request is left open");
        assert_eq!(server.connections_open(), 0, "a connection is left open");
        let (requests, digest) = (requests.len() as u64, self.digest.value());
        let virtual_time = Duration::ZERO;
        Outcome { digest, faults, virtual_time, written: self.written, requests, told, processed, handovers: 0 }
    }
}

/// Every informer lists once; watches end only by their time limit.
fn check_calm(requests: &[RecordedRequest]) {
    let mut lists = BTreeMap::new();
    for request in requests {
        let is_list = request.verb == Some(Verb::List) && request.query.get("continue").is_none();
        let is_streaming_list = request.query.get("sendInitialEvents") == Some("true");
        *lists.entry(&request.path).or_insert(0) += usize::from(is_list || is_streaming_list);
    }
    assert!(lists.values().all(|lists| *lists == 1), "{lists:?}");
    assert!(requests.len() < 30, "{} requests", requests.len());
}

fn any_delivery(dice: &mut Dice) -> Delivery {
    dice.one_of(&[Delivery::PerKey, Delivery::InOrder, Delivery::Coalescing])
}

/// What all scenes of a run have in common.
struct Casting<'a> {
    server: &'a ApiServer,
    client: Client,
    silence: bool,
    is_calm: bool,
    digest: &'a Digest,
}

impl Casting<'_> {
    /// An informer of one representation, and writers where somebody stops them.
    fn cast<K, M>(
        &self,
        part: Part,
        writers: Option<(&Restores, &CancellationToken)>,
        dice: &mut Dice,
    ) -> (Box<dyn Act>, Option<Writing>)
    where
        K: Resource<DynamicType = ()> + Meta + DeserializeOwned + Send + Sync + 'static,
        Pb<M>: Message + Default + Meta + Send + Sync + 'static,
    {
        match part.form % FORMS {
            0 => self.play::<K, Arc<K>, _>(part, Json, writers, dice),
            1 => self.play::<K, Packed<K>, _>(part, Json, writers, dice),
            2 => self.play::<K, Packed<K>, _>(part, ProtobufOrJson, writers, dice),
            3 => self.play::<K, Arc<Pb<M>>, _>(part, Protobuf, writers, dice),
            4 => self.play::<K, Arc<Brief>, _>(part, Json, writers, dice),
            5 => self.play::<K, Arc<Tags>, _>(part, Protobuf, writers, dice),
            6 => self.play::<K, Arc<DynamicObject>, _>(part, Json, writers, dice),
            7 => self.play::<K, Zipped<K>, _>(part, ProtobufOrJson, writers, dice),
            8 => self.play::<K, Arc<PartialObjectMeta<K>>, _>(part.metadata_only(), Json, writers, dice),
            _ => self.play::<K, Arc<Tags>, _>(part.metadata_only(), Protobuf, writers, dice),
        }
    }

    fn play<K, O, C>(
        &self,
        part: Part,
        codec: C,
        writers: Option<(&Restores, &CancellationToken)>,
        dice: &mut Dice,
    ) -> (Box<dyn Act>, Option<Writing>)
    where
        K: Resource<DynamicType = ()>,
        O: Traced,
        C: Codec<O>,
    {
        let resource = ApiResource::erase::<K>(&());
        let list_watch = ListWatch::<O>::for_resource(self.client.clone(), &resource).codec(codec);
        let list_watch = if part.form == METADATA_ONLY { list_watch.metadata_only() } else { list_watch };
        let scene = self.scene(part, list_watch, dice);
        let writing = writers
            .map(|(restores, stop)| writers::start(self.server, scene.informer(), !self.is_calm, restores, stop, dice));
        (Box::new(scene), writing)
    }

    fn scene<O: Traced, C: Codec<O>>(&self, part: Part, list_watch: ListWatch<O, C>, dice: &mut Dice) -> Scene<O> {
        let Part { scope, delivery, .. } = part;
        let mut timeouts = Timeouts::default();
        if self.silence {
            // Bookmarks come every 10 s.
            timeouts = timeouts.watch_idle(Duration::from_secs(25));
        }
        let list_watch = list_watch.timeouts(timeouts);
        let list_watch =
            list_watch.limits(Limits::default().line(LINE_LEN_MAX)).in_namespace(scope.namespace.unwrap_or(""));
        let selector = scope.label.map(|(name, value)| format!("{name}={value}")).unwrap_or_default();
        let list_watch = list_watch.labels(&selector).expect("it is a selector");
        let reflector = ReflectorOptions::new()
            .backoff(outage::backoff())
            .random(dice.jitter())
            .watch_list(dice.chance(0.5))
            .page_size(if self.is_calm { 0 } else { 5 });
        let resync = if dice.chance(0.5) { Duration::from_secs(60) } else { Duration::ZERO };
        let traces = Traces::default();
        let follow = traces.clone();
        let mut options = InformerOptions::new().delivery(delivery).resync_period(resync).reflector(reflector);
        if dice.chance(0.7) {
            options = options.transform(move |object: O| {
                object.trace(&follow);
                Ok::<O, Infallible>(object)
            });
        }
        Scene::start(scope, list_watch, options, delivery == Delivery::InOrder, traces, dice, self.digest)
    }
}

/// What one informer of a run plays.
#[derive(Clone, Copy)]
struct Part {
    scope: Scope,
    delivery: Delivery,
    /// Which representation, see `Casting::cast`.
    form: u64,
}

/// How many representations there are.
const FORMS: u64 = 10;
/// Stands for a representation of which the server sends the metadata only.
const METADATA_ONLY: u64 = u64::MAX;

impl Part {
    fn metadata_only(self) -> Self {
        Self { form: METADATA_ONLY, ..self }
    }
}

/// A struct of one's own, read from JSON.
#[derive(Debug, Deserialize, Meta)]
struct Brief {
    metadata: ObjectId,
}

/// A struct of one's own, read from protobuf.
#[derive(Clone, PartialEq, Message, Meta)]
struct Tags {
    #[prost(message, required, tag = "1")]
    metadata: messages::LabeledId,
}

/// An object that can be followed without being held.
trait Traced: Object {
    fn trace(&self, traces: &Traces);
}

impl<K: Meta + Send + Sync + 'static> Traced for Arc<K> {
    fn trace(&self, traces: &Traces) {
        traces.follow(self);
    }
}

impl<K: 'static> Traced for Packed<K>
where
    Self: Object,
{
    /// There is no weak handle to it.
    fn trace(&self, _: &Traces) {}
}

impl<K: 'static> Traced for Zipped<K>
where
    Self: Object,
{
    /// Nor here.
    fn trace(&self, _: &Traces) {}
}
