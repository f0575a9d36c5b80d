//! How items and events are read for somebody who may hold some of them already.

use std::sync::Arc;

use kubewire_indexer::Object;

use crate::client::codec::sealed::Reader;
use crate::client::pipeline::Read;
use crate::{DecodeOptions, Held, ItemError, Relisted, RequestError, WatchEvent};

/// Reads items of a list: those that are `held` are only looked at.
pub(crate) fn items<O: Object>(
    reader: Reader<O>,
    held: Option<Held<O>>,
    options: Arc<DecodeOptions>,
) -> Read<Result<Relisted<O>, ItemError>> {
    Arc::new(move |item, position| {
        let same = held.as_ref().and_then(|held| held((reader.item_state)(item)?));
        match same {
            Some(object) => Ok(Relisted::Unchanged(object)),
            None => (reader.item)(item, &options).map(Relisted::New).map_err(|error| error.at_position(position)),
        }
    })
}

/// Reads events of a watch: `ADDED` ones whose object is `held` are only looked at.
pub(crate) fn events<O: Object>(
    reader: Reader<O>,
    held: Option<Held<O>>,
    options: Arc<DecodeOptions>,
) -> Read<Result<WatchEvent<O>, RequestError>> {
    Arc::new(move |event, _| {
        let same = held.as_ref().and_then(|held| held((reader.added_state)(event)?));
        same.map_or_else(|| (reader.event)(event, &options), |object| Ok(WatchEvent::Unchanged(object)))
    })
}
