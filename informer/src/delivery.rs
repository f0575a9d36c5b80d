//! The order in which deltas are delivered, and what is merged on the way.

/// How a delta FIFO orders and merges what comes in, and so in which order handlers are told.
///
/// All kinds lead to the same store and tell every net change; they differ in what happens between two states
/// of a key, in the place of the deletes that a list reveals, and in what a slow consumer costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// One entry for each key, with all the deltas of the key that wait, taken as a whole: client-go's
    /// `DeltaFIFO`. Keys keep the place of their first waiting delta. A list gives its adds and updates first,
    /// then the deletes that it reveals. The deletion of an unknown object is dropped, and of two deletions in
    /// a row one is told.
    ///
    /// Costs memory by deltas.
    #[default]
    PerKey,
    /// As [`PerKey`](Self::PerKey), and consecutive updates of a key that wait become one, from the state
    /// before the first to the state after the last. What was added and deleted again behind a deletion that
    /// waits is left out.
    ///
    /// Costs memory by keys: at most three deltas for each.
    Coalescing,
    /// Every delta by itself, in the order in which it came; a list, a resync and a bookmark are one entry
    /// each: what client-go's informers use today (`RealFIFO` with atomic events). The deletes that a list
    /// reveals come first. Every deletion is told, that of an unknown object too.
    ///
    /// Costs memory by deltas.
    InOrder,
    /// Every delta by itself, in the order in which it came; a list and a resync become one entry for each
    /// object (`RealFIFO` without atomic events), and bookmarks are left out. For those who drive a
    /// [`DeltaFifo`](crate::DeltaFifo) by hand.
    ///
    /// Costs memory by deltas.
    InOrderItems,
}

impl Delivery {
    /// Whether a delta joins the entry of its key that waits.
    pub(crate) fn merges(self) -> bool {
        matches!(self, Self::PerKey | Self::Coalescing)
    }
}
