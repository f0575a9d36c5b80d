//! The rules as tables, and as random histories against a shell that keeps the invariants in view.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// All there is to do, as text.
fn steps(stages: &mut Stages) -> String {
    let all: Vec<_> = std::iter::from_fn(|| stages.next()).map(|step| format!("{step:?}")).collect();
    all.join(" ")
}

/// Tells it, and gives what there is to do.
fn after(stages: &mut Stages, event: Event) -> String {
    stages.handle(event);
    steps(stages)
}

const GROUPS: [Group; 5] = [Group::Http, Group::Webhooks, Group::Caches, Group::Always, Group::Leader];

/// One member a group: 0 is the server, 4 the leader's.
fn one_each(elects: bool) -> Stages {
    let mut stages = Stages::new(elects);
    for group in GROUPS {
        stages.add(group, true).unwrap();
    }
    stages
}

#[test]
fn groups_start_one_after_the_other_each_when_the_one_before_is_ready() {
    let mut stages = one_each(false);
    assert!(stages.start());
    assert_eq!(steps(&mut stages), "Launch(0)");
    assert_eq!(after(&mut stages, Event::Ready(0)), "Launch(1)");
    assert_eq!(after(&mut stages, Event::Ready(1)), "Launch(2)");
    assert_eq!(after(&mut stages, Event::Ready(2)), "Launch(3) SayStarted Launch(4) SayElected");
    assert_eq!(after(&mut stages, Event::Ready(3)), "");
    assert_eq!(after(&mut stages, Event::Ready(4)), "SaySynced");
    assert!(!stages.start(), "once");
}

#[test]
fn groups_stop_one_after_the_other_each_when_the_one_before_has_ended() {
    let mut stages = one_each(false);
    let _ = stages.start();
    (0..5).for_each(|id| stages.handle(Event::Ready(id)));
    steps(&mut stages);
    assert_eq!(after(&mut stages, Event::Stop), "Arm(Grace) StopWarmUps StopGroup(Always)");
    assert_eq!(after(&mut stages, Event::Stop), "", "once");
    assert_eq!(after(&mut stages, Event::Ended(3, Ending::Ok)), "StopGroup(Leader)");
    assert_eq!(after(&mut stages, Event::Ended(4, Ending::Failed)), "StopGroup(Caches)");
    assert_eq!(after(&mut stages, Event::Ended(2, Ending::Ok)), "StopGroup(Webhooks)");
    assert_eq!(after(&mut stages, Event::Ended(1, Ending::Ok)), "StopGroup(Http)");
    assert_eq!(after(&mut stages, Event::Ended(0, Ending::Ok)), "Finish");
    assert_eq!(stages.add(Group::Always, false), Err(Refused));
}

#[test]
fn with_an_election_the_leaders_are_warmed_up_and_wait_for_it() {
    let mut stages = one_each(true);
    let _ = stages.start();
    (0..3).for_each(|id| stages.handle(Event::Ready(id)));
    assert_eq!(
        steps(&mut stages),
        "Launch(0) Launch(1) Launch(2) Launch(3) SayStarted WarmUp(4) Elect",
        "the elector comes last"
    );
    assert_eq!(after(&mut stages, Event::Ready(3)), "SaySynced");
    assert_eq!(after(&mut stages, Event::WarmedUp(4, Ending::Ok)), "");
    let late = stages.add(Group::Leader, true).unwrap();
    assert_eq!(steps(&mut stages), format!("WarmUp({late})"));
    let always = stages.add(Group::Always, true).unwrap();
    assert_eq!(steps(&mut stages), format!("Launch({always})"));
    assert_eq!(after(&mut stages, Event::Elected), format!("Launch(4) Launch({late}) SayElected"));
    let later = stages.add(Group::Leader, true).unwrap();
    assert_eq!(steps(&mut stages), format!("Launch({later})"), "it leads: there is nothing to be warm for");
}

#[test]
fn a_leader_gives_its_lease_up_when_nothing_runs_any_more_and_a_standby_first_of_all() {
    let mut leader = Stages::new(true);
    let id = leader.add(Group::Leader, false).unwrap();
    let _ = leader.start();
    leader.handle(Event::Elected);
    steps(&mut leader);
    after(&mut leader, Event::Stop);
    assert_eq!(
        after(&mut leader, Event::Ended(id, Ending::Ok)),
        "StopGroup(Caches) StopGroup(Webhooks) StopGroup(Http) StopElector"
    );
    assert_eq!(after(&mut leader, Event::ElectorEnded), "Finish");

    let mut standby = Stages::new(true);
    standby.add(Group::Always, false).unwrap();
    standby.add(Group::Leader, false).unwrap();
    let _ = standby.start();
    steps(&mut standby);
    assert_eq!(after(&mut standby, Event::Stop), "Arm(Grace) StopElector StopWarmUps StopGroup(Always)");
    assert_eq!(after(&mut standby, Event::Elected), "", "too late to lead");
    assert_eq!(after(&mut standby, Event::ElectorEnded), "");
    assert_eq!(
        after(&mut standby, Event::Ended(0, Ending::Ok)),
        "StopGroup(Leader) StopGroup(Caches) StopGroup(Webhooks) StopGroup(Http) Finish"
    );
}

#[test]
fn a_lost_lease_cancels_all_without_grace() {
    let mut stages = Stages::new(true);
    let id = stages.add(Group::Leader, false).unwrap();
    let _ = stages.start();
    stages.handle(Event::Elected);
    steps(&mut stages);
    assert_eq!(after(&mut stages, Event::ElectorEnded), "Arm(Cancel) CancelAll");
    assert_eq!(after(&mut stages, Event::TimeOver(Timer::Cancel)), "Arm(Abort) Abort");
    assert_eq!(after(&mut stages, Event::Ended(id, Ending::Ok)), "Finish", "there is no lease to give up");
}

#[test]
fn after_the_grace_period_all_is_cancelled_then_aborted_and_the_lease_given_up_only_when_it_is_gone() {
    let mut stages = Stages::new(true);
    let id = stages.add(Group::Leader, false).unwrap();
    let _ = stages.start();
    stages.handle(Event::Elected);
    stages.handle(Event::Ready(id));
    steps(&mut stages);
    after(&mut stages, Event::Stop);
    assert_eq!(after(&mut stages, Event::TimeOver(Timer::Grace)), "Arm(Cancel) CancelAll");
    assert_eq!(after(&mut stages, Event::TimeOver(Timer::Grace)), "", "a late one");
    assert_eq!(after(&mut stages, Event::TimeOver(Timer::Cancel)), "Arm(Abort) Abort");
    let mut gone = Stages { steps: VecDeque::new(), members: stages.members.clone(), ..stages };
    assert_eq!(after(&mut gone, Event::Ended(id, Ending::Ok)), "StopElector");
    assert_eq!(after(&mut gone, Event::ElectorEnded), "Finish");
    assert_eq!(after(&mut gone, Event::TimeOver(Timer::Abort)), "", "a late one");
}

#[test]
fn what_survives_the_abort_keeps_the_lease_and_the_end_does_not_wait_for_it() {
    let mut stages = Stages::new(true);
    stages.add(Group::Leader, false).unwrap();
    let _ = stages.start();
    stages.handle(Event::Elected);
    steps(&mut stages);
    for event in [Event::Stop, Event::TimeOver(Timer::Grace), Event::TimeOver(Timer::Cancel)] {
        after(&mut stages, event);
    }
    assert_eq!(after(&mut stages, Event::TimeOver(Timer::Abort)), "Finish");
}

#[test]
fn a_stop_or_an_error_ends_the_start_at_any_point_and_nothing_more_is_launched() {
    for event in [Event::Stop, Event::NotReady, Event::Ended(0, Ending::Failed)] {
        let mut stages = one_each(true);
        let _ = stages.start();
        assert_eq!(steps(&mut stages), "Launch(0)");
        let first = after(&mut stages, event);
        assert!(first.starts_with("Arm(Grace) StopWarmUps StopGroup(Always) StopGroup(Leader)"), "{first}");
        stages.handle(Event::Ready(0));
        let rest = after(&mut stages, Event::Ended(0, Ending::Ok));
        assert!(!rest.contains("Launch") && !rest.contains("Elect"), "{rest}");
        assert!(first.ends_with("Finish") || rest.ends_with("Finish"), "{first} / {rest}");
    }
    // Already cancelled: nothing starts at all.
    let mut stages = one_each(false);
    let _ = stages.start();
    let all = after(&mut stages, Event::Stop);
    assert!(!all.contains("Launch") && all.ends_with("Finish"), "{all}");
}

#[test]
fn who_ends_early_without_an_error_just_ends_and_counts_as_ready() {
    let mut stages = one_each(false);
    let _ = stages.start();
    steps(&mut stages);
    assert_eq!(after(&mut stages, Event::Ended(0, Ending::Ok)), "Launch(1)");
    assert!(!stages.is_stopping());
}

#[test]
fn one_that_is_added_to_an_earlier_group_while_it_starts_begins_at_once_and_is_waited_for() {
    let mut stages = one_each(false);
    let _ = stages.start();
    (0..2).for_each(|id| stages.handle(Event::Ready(id)));
    steps(&mut stages);
    let server = stages.add(Group::Http, false).unwrap();
    assert_eq!(steps(&mut stages), format!("Launch({server})"));
    assert_eq!(after(&mut stages, Event::Ready(2)), "");
    assert!(after(&mut stages, Event::Ready(server)).starts_with("Launch(3)"));
}

#[test]
fn an_elector_that_ends_before_it_leads_stops_all_and_so_does_a_warm_up_that_fails() {
    for event in [Event::ElectorEnded, Event::WarmedUp(0, Ending::Failed)] {
        let mut stages = Stages::new(true);
        stages.add(Group::Leader, true).unwrap();
        let _ = stages.start();
        steps(&mut stages);
        assert!(after(&mut stages, event).starts_with("Arm(Grace)"), "{event:?}");
    }
}

#[test]
fn a_member_that_ends_while_it_warms_up_is_waited_for_until_that_has_ended_too() {
    let mut stages = Stages::new(true);
    stages.add(Group::Leader, true).unwrap();
    let _ = stages.start();
    stages.handle(Event::Elected);
    assert!(steps(&mut stages).contains("Launch(0)"));
    after(&mut stages, Event::Stop);
    assert_eq!(after(&mut stages, Event::Ended(0, Ending::Ok)), "");
    assert!(after(&mut stages, Event::WarmedUp(0, Ending::Ok)).ends_with("StopElector"));
}

/// What a shell sees, kept as plainly as can be.
#[derive(Default)]
struct Seen {
    elects: bool,
    groups: BTreeMap<MemberId, Group>,
    launched: Vec<MemberId>,
    ready: Vec<MemberId>,
    runs: Vec<MemberId>,
    warms: Vec<MemberId>,
    stopped: Vec<Group>,
    leads: bool,
    electing: bool,
    cancelled: bool,
    stopping: bool,
    started: bool,
    finished: bool,
}

impl Seen {
    fn running(&self) -> impl Iterator<Item = MemberId> {
        self.runs.iter().chain(&self.warms).copied()
    }

    /// Checks a step against the invariants of the file, and does it.
    fn see(&mut self, step: Step) {
        assert!(!self.finished, "6: {step:?} after the end");
        match step {
            Step::Launch(id) => {
                assert!(!self.stopping && !self.cancelled, "3: {id}");
                assert!(!self.launched.contains(&id), "twice: {id}");
                let group = self.groups[&id];
                let before = BEFORE_ALL.iter().take_while(|before| **before != group);
                for other in self.runs.iter().filter(|_| !self.started) {
                    let earlier = before.clone().any(|group| *group == self.groups[other]);
                    assert!(!earlier || self.ready.contains(other), "1: {id} before {other} is ready");
                }
                assert!(group != Group::Leader || !self.elects || self.leads, "2: {id}");
                self.launched.push(id);
                self.runs.push(id);
            }
            Step::WarmUp(id) => {
                assert!(!self.stopping && !self.cancelled, "3: {id}");
                assert_eq!(self.groups[&id], Group::Leader);
                self.warms.push(id);
            }
            Step::Elect => self.electing = true,
            Step::SayStarted => self.started = true,
            Step::SayElected | Step::SaySynced | Step::Abort | Step::StopWarmUps => {}
            Step::Arm(Timer::Grace) => self.stopping = true,
            Step::Arm(_) => {}
            Step::StopGroup(group) => {
                let before = STOP_ORDER.iter().take_while(|before| **before != group);
                for before in before {
                    assert!(self.stopped.contains(before), "4: {group:?} before {before:?}");
                    assert!(self.running().all(|id| self.groups[&id] != *before), "4: {before:?} still runs");
                }
                self.stopped.push(group);
            }
            Step::StopElector => {
                assert!(!self.leads || self.running().next().is_none(), "5: somebody runs");
            }
            Step::CancelAll => self.cancelled = true,
            Step::Finish => self.finished = true,
        }
    }
}

/// What may happen next, in numbers.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Add(usize),
    Ready(usize),
    End(usize, bool),
    WarmedUp(usize, bool),
    Elected,
    ElectorEnds,
    Stop,
    Grace,
    Cancel,
    Abort,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0..5usize).prop_map(Happening::Add),
        8 => any::<usize>().prop_map(Happening::Ready),
        4 => (any::<usize>(), prop::bool::weighted(0.9)).prop_map(|(n, ok)| Happening::End(n, ok)),
        2 => (any::<usize>(), prop::bool::weighted(0.9)).prop_map(|(n, ok)| Happening::WarmedUp(n, ok)),
        2 => Just(Happening::Elected),
        1 => Just(Happening::ElectorEnds),
        1 => Just(Happening::Stop),
        1 => Just(Happening::Grace),
        1 => Just(Happening::Cancel),
        1 => Just(Happening::Abort),
    ]
}

fn nth(of: &[MemberId], n: usize) -> Option<MemberId> {
    of.get(n.checked_rem(of.len())?).copied()
}

fn ending(ok: bool) -> Ending {
    if ok { Ending::Ok } else { Ending::Failed }
}

proptest! {
    #[test]
    fn in_any_history_the_invariants_hold_and_it_ends(
        elects: bool,
        first in prop::collection::vec(0..5usize, 0..6),
        history in prop::collection::vec(happening(), 0..60),
        orderly: bool,
    ) {
        let mut stages = Stages::new(elects);
        let mut seen = Seen { elects, ..Seen::default() };
        for group in first {
            let id = stages.add(GROUPS[group], true).unwrap();
            seen.groups.insert(id, GROUPS[group]);
        }
        prop_assert!(stages.start());
        // In the end it is stopped; then all end well and in time, or all times run out.
        let times = [Happening::Stop, Happening::Grace, Happening::Cancel, Happening::Abort].to_vec();
        let ends = [Happening::End(0, true), Happening::WarmedUp(0, true), Happening::ElectorEnds].repeat(70);
        let end = if orderly { [vec![Happening::Stop], ends].concat() } else { times };
        for happening in history.into_iter().chain(end) {
            while let Some(step) = stages.next() {
                seen.see(step);
            }
            let event = match happening {
                Happening::Add(group) => {
                    let group = GROUPS[group];
                    match stages.add(group, true) {
                        Ok(id) => drop(seen.groups.insert(id, group)),
                        Err(Refused) => prop_assert!(stages.is_stopping()),
                    }
                    continue;
                }
                Happening::Ready(n) => nth(&seen.runs, n).map(|id| {
                    seen.ready.push(id);
                    Event::Ready(id)
                }),
                Happening::End(n, ok) => nth(&seen.runs, n).map(|id| {
                    seen.runs.retain(|other| *other != id);
                    Event::Ended(id, ending(ok))
                }),
                Happening::WarmedUp(n, ok) => nth(&seen.warms, n).map(|id| {
                    seen.warms.retain(|other| *other != id);
                    Event::WarmedUp(id, ending(ok))
                }),
                Happening::Elected => {
                    seen.leads |= seen.electing && !stages.is_stopping();
                    seen.electing.then_some(Event::Elected)
                }
                Happening::ElectorEnds => {
                    seen.leads = false;
                    std::mem::take(&mut seen.electing).then_some(Event::ElectorEnded)
                }
                Happening::Stop => Some(Event::Stop),
                Happening::Grace => Some(Event::TimeOver(Timer::Grace)),
                Happening::Cancel => Some(Event::TimeOver(Timer::Cancel)),
                Happening::Abort => Some(Event::TimeOver(Timer::Abort)),
            };
            if let Some(event) = event {
                stages.handle(event);
            }
        }
        while let Some(step) = stages.next() {
            seen.see(step);
        }
        prop_assert!(seen.finished, "6: it does not end");
        let running: Vec<_> = stages.running().collect();
        prop_assert!(running.is_empty());
    }
}
