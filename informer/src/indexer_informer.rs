//! A store, its informer and one handler, in one call.

use std::time::Duration;

use kubewire_indexer::{IndexConflict, Indexer, Indexers, Object};
use kubewire_listwatch::ListerWatcher;

use crate::{Informer, InformerOptions, ResourceEventHandlerFuncs};

/// A store with its informer, and one handler: client-go's `NewIndexerInformer`.
///
/// `handler` gets a handler that does nothing, and gives it back with what it shall do. A resync period of zero
/// means none. The error names an index that was given twice.
pub fn new_indexer_informer<O: Object>(
    lister_watcher: impl ListerWatcher<Object = O>,
    resync_period: Duration,
    handler: impl FnOnce(ResourceEventHandlerFuncs<O>) -> ResourceEventHandlerFuncs<O>,
    indexers: Indexers<O>,
) -> Result<(Indexer<O>, Informer<O>), IndexConflict> {
    let options = InformerOptions::new().resync_period(resync_period).indexers(indexers);
    let informer = Informer::with_options(lister_watcher, options)?;
    // A new informer is not stopped, so it takes the handler.
    let _ = informer.add_handler(handler(ResourceEventHandlerFuncs::new()));
    Ok((informer.indexer(), informer))
}
