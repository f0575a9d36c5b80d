//! A store that writes down what it is told.

use std::sync::atomic::{AtomicU32, Ordering};

use kubewire_indexer::{Object, ObjectKey};
use kubewire_informer::{AdmitError, Admitted, ReflectorStore, Replacement, TransformError};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::PodRef;

#[derive(Default)]
pub(crate) struct FakeStore {
    told: Mutex<Vec<String>>,
    /// Wakes at each word.
    news: Notify,
    pub(crate) transforms: AtomicU32,
    pub(crate) resyncs: AtomicU32,
    /// Pods of this name are refused by the transform.
    poison: Option<&'static str>,
    panics_at_replace: bool,
}

impl FakeStore {
    pub(crate) fn with_poison(name: &'static str) -> Self {
        Self { poison: Some(name), ..Self::default() }
    }

    pub(crate) fn that_panics_at_replace() -> Self {
        Self { panics_at_replace: true, ..Self::default() }
    }

    fn tell(&self, text: String) {
        self.told.lock().push(text);
        self.news.notify_one();
    }

    /// What was told since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock())
    }

    /// Waits until this is told; everything told up to it, it included.
    pub(crate) async fn until(&self, last: &str) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let news = self.news.notified();
            let told = self.take();
            let place = told.iter().position(|word| word == last);
            if let Some(place) = place {
                all.extend_from_slice(&told[..=place]);
                self.told.lock().splice(0..0, told[place + 1..].iter().cloned());
                return all;
            }
            all.extend(told);
            let heard = tokio::time::timeout(std::time::Duration::from_secs(3600), news).await;
            assert!(heard.is_ok(), "{last:?} never came: {all:?}");
        }
    }

    fn transform(&self, object: &PodRef) -> Result<(), AdmitError> {
        self.transforms.fetch_add(1, Ordering::Relaxed);
        if self.poison == Some(object.id().name) {
            return Err(AdmitError::Transform { key: object.key(), source: TransformError::new("poison") });
        }
        Ok(())
    }

    fn change(&self, sign: char, object: &PodRef) -> Result<(), AdmitError> {
        self.transform(object)?;
        self.tell(format!("{sign}{}@{}", object.id().name, object.id().resource_version));
        Ok(())
    }
}

impl ReflectorStore<PodRef> for FakeStore {
    fn admit(&self, object: PodRef) -> Result<Admitted<PodRef>, AdmitError> {
        self.transform(&object)?;
        Admitted::new(object)
    }

    fn add(&self, object: PodRef) -> Result<(), AdmitError> {
        self.change('+', &object)
    }

    fn update(&self, object: PodRef) -> Result<(), AdmitError> {
        self.change('~', &object)
    }

    fn delete(&self, object: PodRef) -> Result<(), AdmitError> {
        self.change('-', &object)
    }

    fn delete_key(&self, key: ObjectKey) {
        self.tell(format!("-{key}"));
    }

    fn replace(&self, list: Replacement<PodRef>) {
        assert!(!self.panics_at_replace, "no list taken today");
        let name =
            |item: &Admitted<PodRef>| format!("{}@{}", item.object().id().name, item.object().id().resource_version);
        let mut text = format!("list {}:", list.resource_version);
        for item in list.items.iter().map(name) {
            text.push_str(&format!(" {item}"));
        }
        let mut kept: Vec<String> = list.kept.iter().map(|key| key.name().to_owned()).collect();
        kept.sort();
        for key in kept {
            text.push_str(&format!(" keep {key}"));
        }
        if list.incomplete {
            text.push_str(" incomplete");
        }
        self.tell(text);
    }

    fn resync(&self) {
        self.resyncs.fetch_add(1, Ordering::Relaxed);
        self.tell("resync".to_owned());
    }

    fn bookmark(&self, resource_version: &str) {
        self.tell(format!("bookmark {resource_version}"));
    }

    fn update_resource_version(&self, resource_version: &str) {
        self.tell(format!("version {resource_version}"));
    }
}
