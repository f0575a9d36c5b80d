//! What always holds of an outbox.

use super::Outbox;
use super::series::State;

impl Outbox {
    /// Panics where one of these does not hold:
    ///
    /// 1. A series stands in `ready` once if it is ready, else not; the same for flights.
    /// 2. What is looked at later has its place in `later` and in `delayed`, and nothing else has.
    /// 3. `unwritten` counts the series that are to be created.
    /// 4. The server is never said to know more than was seen.
    pub(crate) fn validate(&self) {
        let (mut ready, mut flying, mut later, mut unwritten) = (0, 0, 0, 0);
        for key in self.series.keys() {
            let series = self.series.peek(key).unwrap();
            match series.state {
                State::Ready => {
                    ready += 1;
                    assert_eq!(self.ready.iter().filter(|other| *other == key).count(), 1, "1: {series:?}");
                }
                State::InFlight => {
                    flying += 1;
                    assert_eq!(self.in_flight.values().filter(|flight| flight.key == *key).count(), 1, "1");
                }
                State::Retry(at) | State::Heartbeat(at) => {
                    later += 1;
                    assert!(self.later.contains(&at) && self.delayed.get(&at.1) == Some(key), "2: {series:?}");
                }
                State::Idle => {}
            }
            unwritten += usize::from(series.written == 0 && !matches!(series.state, State::Idle));
            assert!(series.written <= series.seen.count, "4: {series:?}");
        }
        assert_eq!((self.ready.len(), self.in_flight.len()), (ready, flying), "1");
        assert_eq!((self.later.len(), self.delayed.len()), (later, later), "2");
        assert_eq!(self.unwritten, unwritten, "3");
        self.series.validate();
        self.similar.validate();
        self.sources.validate();
    }
}
