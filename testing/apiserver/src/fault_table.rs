//! PURE. The faults that are to come, and what they do to a request.

use std::time::Duration;

use crate::fault::{Action, Answer, BodyFault, Fault};
use crate::matching::RequestInfo;

/// Names a fault that was given to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FaultId(u64);

/// What is done to one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    pub(crate) delay: Option<Duration>,
    pub(crate) answer: Option<Answer>,
    pub(crate) stream: Vec<BodyFault>,
    /// The names of those that have met the request already.
    pub(crate) met: Vec<&'static str>,
}

/// The faults that are to come.
#[derive(Debug, Default)]
pub(crate) struct FaultTable {
    faults: Vec<(FaultId, Fault)>,
    last: u64,
}

impl FaultTable {
    pub(crate) fn add(&mut self, fault: Fault) -> FaultId {
        self.last += 1;
        let id = FaultId(self.last);
        self.faults.push((id, fault));
        id
    }

    pub(crate) fn remove(&mut self, id: FaultId) {
        self.faults.retain(|(other, _)| *other != id);
    }

    pub(crate) fn clear(&mut self) {
        self.faults.clear();
    }

    /// How many faults are still to come; those for ever count.
    pub(crate) fn len(&self) -> usize {
        self.faults.len()
    }

    /// What is done to this request: of the answers the first fault's counts, later ones wait for the next request;
    /// delays and what is done to a body add up.
    pub(crate) fn apply(&mut self, request: &RequestInfo) -> Applied {
        let mut applied = Applied::default();
        for (_, fault) in &mut self.faults {
            let has_answer = applied.answer.is_some();
            if !fault.requests.meets(request) || (has_answer && !matches!(fault.action, Action::Delay(_))) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            fault.times = fault.times.map(|times| times.saturating_sub(1));
            match &fault.action {
                Action::Delay(delay) => applied.delay = Some(applied.delay.unwrap_or_default() + *delay),
                Action::Answer(answer) => applied.answer = Some(answer.clone()),
                Action::Stream(what) => {
                    applied.stream.push(BodyFault { name: fault.name, what: what.clone() });
                    continue;
                }
            }
            applied.met.push(fault.name);
        }
        self.faults.retain(|(_, fault)| fault.times != Some(0));
        applied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verb;

    fn request(verb: Verb, resource: &str) -> RequestInfo {
        RequestInfo { verb: Some(verb), resource: Some(resource.into()), ..RequestInfo::default() }
    }

    fn code(table: &mut FaultTable, verb: Verb, resource: &str) -> u16 {
        match table.apply(&request(verb, resource)).answer {
            Some(Answer::Status(status)) => status.code,
            None => 200,
            Some(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_fault_meets_the_requests_it_is_about_as_often_as_it_says() {
        let mut table = FaultTable::default();
        table.add(Fault::unavailable().on_list().resource("pods").after(1).times(2));
        assert_eq!(code(&mut table, Verb::Watch, "pods"), 200);
        assert_eq!(code(&mut table, Verb::List, "nodes"), 200);
        let codes: Vec<u16> = (0..5).map(|_| code(&mut table, Verb::List, "pods")).collect();
        assert_eq!(codes, [200, 503, 503, 200, 200]);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn of_two_answers_the_second_waits_for_the_next_request() {
        let mut table = FaultTable::default();
        table.add(Fault::unavailable());
        table.add(Fault::gone());
        let codes: Vec<u16> = (0..3).map(|_| code(&mut table, Verb::List, "pods")).collect();
        assert_eq!(codes, [503, 410, 200]);
    }

    #[test]
    fn what_is_done_to_a_body_adds_up_and_lasts_until_removed() {
        let mut table = FaultTable::default();
        let dropped = table.add(Fault::drop_bookmarks().always());
        table.add(Fault::delay(Duration::from_secs(1)));
        table.add(Fault::delay(Duration::from_secs(2)));
        table.add(Fault::end_watch(3));
        let applied = table.apply(&request(Verb::Watch, "pods"));
        assert_eq!((applied.stream.len(), applied.delay), (2, Some(Duration::from_secs(3))));
        assert_eq!(table.apply(&request(Verb::Watch, "pods")).stream.len(), 1);
        table.remove(dropped);
        assert_eq!(table.apply(&request(Verb::Watch, "pods")).stream.len(), 0);
    }
}
