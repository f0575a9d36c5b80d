//! PURE. The order of a merged list: elements that the patch names stand in the patch's order, the others keep the
//! order they had, and both are interleaved by where they stood before.

use serde_json::Value;

/// What tells an element of a list from the others: its merge key, or a scalar itself.
pub(super) fn id<'v>(item: &'v Value, key: Option<&str>) -> &'v Value {
    key.map_or(item, |key| &item[key])
}

/// Orders `merged`, whose elements `key` tells apart.
///
/// Elements whose id is in `wanted` follow each other as there; the others (known to the server only) follow each
/// other as in `before`. An element of the server's goes before one of the patch's when it stood before it; thus what
/// the patch adds goes first, as the API server does it.
pub(super) fn arrange(merged: Vec<Value>, key: Option<&str>, wanted: &[Value], before: &[Value]) -> Vec<Value> {
    let position = |order: &[Value], item: &Value| order.iter().position(|known| known == id(item, key));
    let (mut named, mut others): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|item| position(wanted, item).is_some());
    named.sort_by_cached_key(|item| position(wanted, item));
    others.sort_by_cached_key(|item| position(before, item));

    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        if let Some(at) = position(before, &item) {
            while let Some(other) = others.next_if(|other| position(before, other).is_some_and(|o| o < at)) {
                arranged.push(other);
            }
        }
        arranged.push(item);
    }
    arranged.extend(others);
    arranged
}
