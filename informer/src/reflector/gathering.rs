//! What a list has brought so far, before it is complete.

use hashbrown::{HashMap, HashSet};
use kubewire_indexer::{Object, ObjectKey};
use kubewire_listwatch::{ErrorClass, RequestError};

use crate::{Admitted, Replacement};

/// The objects of a list under way: in order and with repeats for a list in pages, by key for a streaming list.
///
/// Nothing of it is seen by anybody before [`into_replacement`](Self::into_replacement). Objects come in already
/// transformed, and those that are cached already come as the cached handle. It holds no more than `len_max` of them:
/// what comes beyond is thrown away, and the list is none ([`error`](Self::error)).
#[derive(Debug)]
pub(crate) struct Gathering<O> {
    items: Vec<Admitted<O>>,
    /// Where in `items` a key is; only for a streaming list.
    places: HashMap<ObjectKey, usize>,
    /// Objects that exist and could not be taken.
    kept: HashSet<ObjectKey>,
    /// Whether an object exists that could not even be named.
    incomplete: bool,
    len_max: usize,
    too_long: bool,
}

impl<O> Gathering<O> {
    /// Nothing so far, and no more than so many objects ever.
    pub(crate) fn new(len_max: usize) -> Self {
        let (places, kept) = (HashMap::new(), HashSet::new());
        Self { items: Vec::new(), places, kept, incomplete: false, len_max, too_long: false }
    }

    /// Takes what was gathered, and begins anew.
    pub(crate) fn take(&mut self) -> Self {
        let anew = Self::new(self.len_max);
        std::mem::replace(self, anew)
    }

    /// Why this is no list, if it is none: more objects came than are allowed.
    pub(crate) fn error(&self) -> Option<RequestError> {
        let message = format!(
            "more than {} objects came; select fewer by labels or fields, or raise `ReflectorOptions::list_len_max`",
            self.len_max
        );
        self.too_long.then(|| RequestError::new(ErrorClass::TooLong, message))
    }

    /// Whether there is room for one more.
    fn has_room(&mut self) -> bool {
        self.too_long |= self.items.len() + self.kept.len() >= self.len_max;
        !self.too_long
    }
}

impl<O: Object> Gathering<O> {
    /// The next object of a list.
    pub(crate) fn push(&mut self, object: Admitted<O>) {
        if self.has_room() {
            self.items.push(object);
        }
    }

    /// An object that exists but cannot be taken; `None` where not even its key is known. Where an earlier state of
    /// it was gathered, that one stays.
    pub(crate) fn keep(&mut self, key: Option<ObjectKey>) {
        match key {
            Some(key) if self.places.contains_key(&key) => {}
            Some(key) if self.has_room() => _ = self.kept.insert(key),
            Some(_) => {}
            None => self.incomplete = true,
        }
    }

    /// The newest state of an object of a streaming list.
    pub(crate) fn put(&mut self, object: Admitted<O>) {
        self.kept.remove(object.key());
        match self.places.get(object.key()).copied() {
            Some(place) => self.items[place] = object,
            None if !self.has_room() => {}
            None => {
                self.places.insert(object.key().clone(), self.items.len());
                self.items.push(object);
            }
        }
    }

    /// An object of a streaming list is gone again.
    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.kept.remove(key);
        let Some(place) = self.places.remove(key) else { return };
        self.items.swap_remove(place);
        if let Some(moved) = self.items.get(place) {
            self.places.insert(moved.key().clone(), place);
        }
    }

    /// The objects so far.
    pub(crate) fn items(&self) -> &[Admitted<O>] {
        &self.items
    }

    /// The list is complete, at this version.
    pub(crate) fn into_replacement(self, resource_version: String) -> Replacement<O> {
        let mut list = Replacement::new(self.items, resource_version);
        list.kept = self.kept.into_iter().collect();
        list.incomplete = self.incomplete;
        list
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use kubewire_indexer::{Id, Meta};
    use proptest::prelude::*;

    use super::*;

    struct Thing {
        name: String,
        version: String,
    }

    impl Meta for Thing {
        fn id(&self) -> Id<'_> {
            Id::new("ns", &self.name).resource_version(&self.version)
        }
    }

    fn thing(name: u8, version: usize) -> Admitted<Arc<Thing>> {
        let thing = Thing { name: name.to_string(), version: version.to_string() };
        Admitted::new(Arc::new(thing)).expect("it has a name")
    }

    fn key(name: u8) -> ObjectKey {
        ObjectKey::new("ns", &name.to_string())
    }

    #[test]
    fn a_list_keeps_its_order_and_its_repeats() {
        let mut gathering = Gathering::new(usize::MAX);
        for (name, version) in [(2, 1), (1, 2), (2, 3)] {
            gathering.push(thing(name, version));
        }
        let list = gathering.into_replacement("9".to_owned());
        let seen: Vec<_> = list.items.iter().map(|item| item.object().id().resource_version.to_owned()).collect();
        assert_eq!((seen, list.resource_version.as_str()), (vec!["1".to_owned(), "2".into(), "3".into()], "9"));
    }

    #[test]
    fn what_comes_beyond_the_limit_is_thrown_away_and_makes_it_no_list() {
        let mut gathering = Gathering::new(2);
        gathering.put(thing(0, 1));
        gathering.put(thing(1, 2));
        gathering.put(thing(0, 3));
        assert!(gathering.error().is_none(), "a newer state takes no more room");
        gathering.remove(&key(0));
        gathering.put(thing(2, 4));
        assert!(gathering.error().is_none());
        gathering.put(thing(3, 5));
        assert_eq!(gathering.items().len(), 2);
        let error = gathering.error().expect("it is too long");
        assert_eq!(error.class(), ErrorClass::TooLong);
        assert!(error.to_string().contains("list_len_max"));
        drop(gathering.take());
        assert!(gathering.error().is_none() && gathering.items().is_empty(), "it begins anew");
        gathering.push(thing(0, 6));
        gathering.keep(Some(key(1)));
        gathering.keep(Some(key(2)));
        assert!(gathering.error().is_some(), "what exists and could not be taken counts too");
    }

    #[test]
    fn what_cannot_be_taken_is_kept_by_its_key_or_makes_the_list_incomplete() {
        let mut gathering = Gathering::<Arc<Thing>>::new(usize::MAX);
        gathering.keep(Some(key(1)));
        assert!(!gathering.incomplete);
        gathering.keep(None);
        let list = gathering.into_replacement("9".to_owned());
        assert_eq!((list.kept, list.incomplete), (vec![key(1)], true));
    }

    proptest! {
        /// Against a map: what was put last under a key, and which keys could not be taken.
        #[test]
        fn a_streaming_list_ends_with_the_net_result(changes in prop::collection::vec((0..3_u8, 0..6_u8), 0..60)) {
            let mut gathering = Gathering::new(usize::MAX);
            let mut objects = BTreeMap::new();
            let mut kept = std::collections::BTreeSet::new();
            for (step, (change, name)) in changes.into_iter().enumerate() {
                match change {
                    0 => {
                        gathering.put(thing(name, step));
                        objects.insert(key(name), step.to_string());
                        kept.remove(&key(name));
                    }
                    1 => {
                        gathering.remove(&key(name));
                        objects.remove(&key(name));
                        kept.remove(&key(name));
                    }
                    _ => {
                        gathering.keep(Some(key(name)));
                        if !objects.contains_key(&key(name)) {
                            kept.insert(key(name));
                        }
                    }
                }
                for (key, &place) in &gathering.places {
                    prop_assert_eq!(gathering.items[place].key(), key);
                }
            }
            let list = gathering.into_replacement("9".to_owned());
            let versions = list.items.iter().map(|item| (item.key().clone(), item.resource_version().to_owned()));
            prop_assert_eq!(list.items.len(), objects.len());
            prop_assert_eq!(versions.collect::<BTreeMap<_, _>>(), objects);
            prop_assert_eq!(list.kept.into_iter().collect::<std::collections::BTreeSet<_>>(), kept);
        }
    }
}
