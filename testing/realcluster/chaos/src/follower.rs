//! One informer with everything that hangs on it: handlers, visitors, a queue with workers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::BoxFuture;
use kubewire_indexer::{IndexFunc, Indexer, Indexers, NAMESPACE_INDEX, Object, ObjectKey};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{
    Buffering, CancellationToken, Delivery, HandlerOptions, Informer, InformerOptions, InformerStatus, Registration,
    RunningInformer,
};
use kubewire_listwatch::ListerWatcher;
use parking_lot::Mutex;

use crate::dice::Dice;
use crate::tap::{Line, Tap};
use crate::witness::{Contents, Witness, version};
use crate::workers::Workers;

/// The label that the writers change, and the name of the index of it.
pub(crate) const ROUND: &str = "round";

/// Visitors that are there at once; the eldest leaves when another one comes.
const VISITORS: usize = 2;

/// A follower of any representation.
pub(crate) trait Follow: Send + Sync {
    fn name(&self) -> &'static str;
    /// Whether it has the default back-off, and so may be a minute behind.
    fn is_patient(&self) -> bool;
    /// Whether it asks for streaming lists.
    fn streams(&self) -> bool;
    fn line(&self) -> &Line;
    fn status(&self) -> InformerStatus;
    fn contents(&self) -> Contents;
    /// One more handler comes, while everything flows.
    fn visit(&self) -> anyhow::Result<()>;
    /// Nothing waits anywhere.
    fn is_idle(&self) -> bool;
    /// Everything that is not as it must be, when the server has this and nothing waits.
    fn problems(&self, truth: &Contents) -> Vec<String>;
    /// Its tests forget what is gone.
    fn forget_gone(&self);
    /// Notifications that were told to handlers, and tries that workers failed on purpose.
    fn figures(&self) -> (u64, u64);
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// How to follow.
pub(crate) struct Manner {
    pub(crate) name: &'static str,
    pub(crate) delivery: Delivery,
    /// Streaming lists; else pages of 100.
    pub(crate) streams: bool,
    /// The default back-off.
    pub(crate) is_patient: bool,
    /// Some deletions do not reach it.
    pub(crate) leaks: bool,
}

pub(crate) struct Follower<O: Object> {
    manner: Manner,
    line: Line,
    informer: Informer<O>,
    running: RunningInformer,
    /// From the beginning on.
    staying: Vec<(Registration, Witness)>,
    visitors: Mutex<Vec<(Registration, Witness)>>,
    workers: Workers,
}

impl<O: Object> Follower<O> {
    /// Starts an informer, its handlers and its workers.
    pub(crate) fn start<L>(list_watch: L, manner: Manner, dice: &mut Dice) -> anyhow::Result<Box<dyn Follow>>
    where
        L: ListerWatcher<Object = O>,
    {
        let line = Line::new();
        let mut reflector = ReflectorOptions::new().watch_list(manner.streams);
        if !manner.streams {
            reflector = reflector.page_size(100);
        }
        if !manner.is_patient {
            reflector = reflector.backoff(crate::quick_backoff()).initial_events_timeout(Duration::from_secs(10));
        }
        let indexers = Indexers::by_namespace().with(ROUND, IndexFunc::maybe(|object: &O| object.label(ROUND)));
        let options = InformerOptions::new()
            .description(manner.name)
            .delivery(manner.delivery)
            .indexers(indexers)
            .reflector(reflector)
            // Told again and again where the errors are expected; the status has them.
            .error_handler(|_| {});
        let informer =
            Informer::with_options(Tap { inner: list_watch, line: line.clone(), leaks: manner.leaks }, options)?;
        let in_order = manner.delivery == Delivery::InOrder;
        let staying = [Buffering::Unbounded, Buffering::Coalescing].map(|buffering| {
            let witness = Witness::new(in_order);
            let options = HandlerOptions::new().buffering(buffering);
            Ok((informer.add_handler_with(witness.clone(), options)?, witness))
        });
        let staying = staying.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let workers = Workers::start(&informer, dice)?;
        let running = informer.start(CancellationToken::new());
        let visitors = Mutex::default();
        Ok(Box::new(Self { manner, line, informer, running, staying, visitors, workers }))
    }

    /// Where store and index differ from what they must be.
    fn store_problems(&self, truth: &Contents) -> Vec<String> {
        let indexer = self.informer.indexer();
        let mut problems = differences(&contents(&indexer), truth);
        problems.extend(indexer.store().validate().err().map(|error| format!("the store is inconsistent: {error}")));
        for (index, value) in [
            (NAMESPACE_INDEX, (|object: &O| Some(object.id().namespace.to_owned())) as fn(&O) -> Option<String>),
            (ROUND, |object| object.label(ROUND).map(str::to_owned)),
        ] {
            if indexed(&indexer, index) != recomputed(&indexer, value) {
                problems.push(format!("the index {index:?} is not what an index of the store must be"));
            }
        }
        problems
    }
}

impl<O: Object> Follow for Follower<O> {
    fn name(&self) -> &'static str {
        self.manner.name
    }

    fn is_patient(&self) -> bool {
        self.manner.is_patient
    }

    fn streams(&self) -> bool {
        self.manner.streams
    }

    fn line(&self) -> &Line {
        &self.line
    }

    fn status(&self) -> InformerStatus {
        self.informer.status()
    }

    fn contents(&self) -> Contents {
        contents(&self.informer.indexer())
    }

    fn visit(&self) -> anyhow::Result<()> {
        let witness = Witness::new(self.manner.delivery == Delivery::InOrder);
        let registration = self.informer.add_handler(witness.clone())?;
        let mut visitors = self.visitors.lock();
        visitors.push((registration, witness));
        if visitors.len() > VISITORS {
            let (registration, witness) = visitors.remove(0);
            drop(visitors);
            registration.remove();
            anyhow::ensure!(witness.problems().is_empty(), "a visitor of {}: {:?}", self.name(), witness.problems());
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        let visitors = self.visitors.lock();
        let handlers_idle = self.staying.iter().chain(visitors.iter()).all(|(registration, witness)| {
            let status = registration.status();
            status.synced && status.backlog == 0 && status.told == witness.told()
        });
        handlers_idle && self.informer.status().pending == 0 && self.workers.is_idle()
    }

    fn problems(&self, truth: &Contents) -> Vec<String> {
        let mut problems = self.store_problems(truth);
        for (registration, witness) in self.staying.iter().chain(self.visitors.lock().iter()) {
            problems.extend(witness.problems());
            problems.extend(differences(&witness.present(), truth).into_iter().map(|text| format!("handler: {text}")));
            if registration.status().panics > 0 {
                problems.push("a handler has panicked".to_owned());
            }
        }
        problems.extend(self.workers.problems(truth));
        let status = self.informer.status();
        let skipped = status.reflector.undecodable + status.reflector.not_taken + status.reflector.unknown_events;
        if skipped > 0 || status.panic.is_some() {
            problems.push(format!("objects or events were skipped, or it panicked: {status:?}"));
        }
        problems.into_iter().map(|text| format!("{}: {text}", self.name())).collect()
    }

    fn forget_gone(&self) {
        let visitors = self.visitors.lock();
        self.staying.iter().chain(visitors.iter()).for_each(|(_, witness)| witness.forget_gone());
        self.workers.forget_gone();
    }

    fn figures(&self) -> (u64, u64) {
        let visitors = self.visitors.lock();
        let told = self.staying.iter().chain(visitors.iter()).map(|(_, witness)| witness.told()).sum();
        (told, self.workers.failed())
    }

    fn stop(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.workers.stop().await;
            self.running.stop();
            self.running.join().await;
        })
    }
}

fn contents<O: Object>(indexer: &Indexer<O>) -> Contents {
    indexer.list().iter().map(|object| (object.key(), version(object))).collect()
}

/// The keys that differ, with what both sides say; no more than a reader needs.
pub(crate) fn differences(ours: &Contents, truth: &Contents) -> Vec<String> {
    let keys: BTreeSet<&ObjectKey> = ours.keys().chain(truth.keys()).collect();
    let differing: Vec<_> = keys.into_iter().filter(|key| ours.get(*key) != truth.get(*key)).collect();
    let told = differing.iter().take(5);
    let mut texts: Vec<_> =
        told.map(|key| format!("{key}: {:?}, the server has {:?}", ours.get(*key), truth.get(*key))).collect();
    if differing.len() > texts.len() {
        texts.push(format!("... {} keys differ", differing.len()));
    }
    texts
}

type Filed = BTreeMap<String, Vec<ObjectKey>>;

fn indexed<O: Object>(indexer: &Indexer<O>, index: &str) -> Filed {
    let values = indexer.list_index_func_values(index);
    values.iter().map(|value| (value.to_string(), indexer.index_keys(index, value).unwrap_or_default())).collect()
}

fn recomputed<O: Object>(indexer: &Indexer<O>, value: fn(&O) -> Option<String>) -> Filed {
    let mut filed = Filed::new();
    for object in indexer.list() {
        if let Some(value) = value(&object) {
            filed.entry(value).or_default().push(object.key());
        }
    }
    filed.values_mut().for_each(|keys| keys.sort_unstable());
    filed
}
