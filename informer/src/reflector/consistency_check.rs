//! Whether a streaming list says the same as an ordinary list at its version.

use std::collections::BTreeMap;

use kubewire_indexer::ObjectKey;
use kubewire_listwatch::{ListOptions, ListerWatcher, RequestError, VersionMatch};

use super::gathering::Gathering;
use super::reflector_error::ReflectorErrorKind;
use crate::ReflectorStore;

/// Lists anew at exactly this version, and compares keys and versions with what was gathered. `None`: they agree.
///
/// For tests of servers; client-go has the same behind `KUBE_WATCHLIST_INCONSISTENCY_DETECTOR`. It costs a second
/// copy of the list.
pub(crate) async fn difference<L: ListerWatcher>(
    lister_watcher: &L,
    store: &(impl ReflectorStore<L::Object> + ?Sized),
    gathered: &Gathering<L::Object>,
    version: &str,
) -> Result<Option<ReflectorErrorKind>, RequestError> {
    let mut options = ListOptions::default();
    options.resource_version = Some(version.to_owned());
    options.resource_version_match = Some(VersionMatch::Exact);
    let mut listed = BTreeMap::new();
    let mut each = |item: Result<L::Object, _>| {
        if let Some(admitted) = item.ok().and_then(|object| store.admit(object).ok()) {
            listed.insert(admitted.key().clone(), admitted.resource_version().to_owned());
        }
    };
    lister_watcher.list(&options, &mut each).await?;
    let streamed =
        gathered.items().iter().map(|item| (item.key().clone(), item.resource_version().to_owned())).collect();
    Ok(first_difference(&streamed, &listed)
        .map(|key| ReflectorErrorKind::Inconsistent { key, version: version.to_owned() }))
}

/// The first key whose version is not the same on both sides.
fn first_difference(one: &BTreeMap<ObjectKey, String>, other: &BTreeMap<ObjectKey, String>) -> Option<ObjectKey> {
    let keys = one.keys().chain(other.keys());
    keys.filter(|key| one.get(*key) != other.get(*key)).min().cloned()
}
