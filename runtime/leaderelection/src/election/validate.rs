//! What always holds of an election.

use super::{DOUBTS_MAX, Election, Phase};

impl Election {
    /// Panics where one of these does not hold:
    ///
    /// 1. A term is there only while the lease that was seen last is ours, and nobody stops.
    /// 2. What is done awaits nothing and has no term.
    /// 3. Tickets rise.
    /// 4. What is remembered of writes is bounded.
    #[doc(hidden)]
    pub fn validate(&self) {
        if self.term.is_some() {
            assert!(self.stopping.is_none(), "1: a term while stopping");
            let seen = self.observed.as_ref().expect("1: a term without a lease");
            assert!(self.is_mine(&seen.record), "1: a term with the lease of {:?}", seen.record);
        }
        if self.phase == Phase::Done {
            assert!(self.awaited.is_none() && self.term.is_none(), "2: done, and not done");
        }
        assert!(
            self.awaited.as_ref().is_none_or(|awaited| awaited.ticket < self.next_ticket),
            "3: a ticket of the future"
        );
        assert!(self.wrote.len() <= DOUBTS_MAX + 1, "4: {} writes", self.wrote.len());
    }
}
