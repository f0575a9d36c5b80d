//! Who follows.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_core::{PartialObjectMeta, Resource};
use kubewire_informer::Delivery;
use kubewire_listwatch::{Decode, Json, ListWatch, Packed, Represented, Timeouts};

use crate::dice::Dice;
use crate::follower::{Follow, Follower, Manner};
use crate::rights::Rights;

type Metadata = Arc<PartialObjectMeta<Pod>>;

/// Several representations, both ways to list, all orders of delivery; and one with nothing but defaults.
/// With `sabotage` the first one loses some deletions.
pub(crate) fn all(rights: &Rights, dice: &mut Dice, sabotage: bool) -> anyhow::Result<Vec<Box<dyn Follow>>> {
    let manner = |name, delivery, streams| Manner { name, delivery, streams, is_patient: false, leaks: false };
    let first = Manner { leaks: sabotage, ..manner("typed-streamed-per-key", Delivery::PerKey, true) };
    let patient = Manner { is_patient: true, ..manner("packed-all-defaults", Delivery::default(), true) };
    Ok(vec![
        follow::<Arc<Pod>>(rights, first, dice)?,
        follow::<Arc<Pod>>(rights, manner("typed-paged-in-order", Delivery::InOrder, false), dice)?,
        follow::<Packed<Pod>>(rights, manner("packed-streamed-in-order", Delivery::InOrder, true), dice)?,
        follow::<Packed<Pod>>(rights, manner("packed-paged-per-key", Delivery::PerKey, false), dice)?,
        follow::<Metadata>(rights, manner("metadata-streamed-coalescing", Delivery::Coalescing, true), dice)?,
        follow::<Metadata>(rights, manner("metadata-paged-per-key", Delivery::PerKey, false), dice)?,
        follow::<Packed<Pod>>(rights, patient, dice)?,
    ])
}

/// One that begins when there is nothing to begin with.
pub(crate) fn newcomer(rights: &Rights, dice: &mut Dice) -> anyhow::Result<Box<dyn Follow>> {
    let manner =
        Manner { name: "newcomer", delivery: Delivery::PerKey, streams: true, is_patient: false, leaks: false };
    follow::<Packed<Pod>>(rights, manner, dice)
}

fn follow<O>(rights: &Rights, manner: Manner, dice: &mut Dice) -> anyhow::Result<Box<dyn Follow>>
where
    O: Represented<Resource: Resource<DynamicType = ()>> + Decode<Json>,
{
    let mut list_watch = ListWatch::<O>::all(rights.client()?);
    if !manner.is_patient {
        list_watch = list_watch.timeouts(Timeouts::default().headers(Duration::from_secs(6)));
    }
    Follower::start(list_watch, manner, dice)
}
