//! PURE. What starts and stops when: the rules of a manager, without a lock, a task or a clock.
//!
//! The shell tells what has happened by [`Stages::handle`], and does what [`Stages::next`] says until it says nothing.
//!
//! # Invariants
//!
//! 1. While it starts, no member is launched before all launched ones of the groups before are ready; the groups are
//!    [`BEFORE_ALL`], then those that run on every replica, then those of the leader.
//! 2. A member of [`Group::Leader`] is launched only while this replica leads.
//! 3. Once it stops, nothing is launched.
//! 4. A group is told to stop only when nobody of the groups that stop before it runs any more; warm-ups are told with
//!    the first group. Only [`Step::CancelAll`] tells all at once.
//! 5. A leader gives up its lease only when no member runs any more. One that does not lead gives it up first of all.
//! 6. From the first [`Step::Arm`] on some timer runs or was refused by choice, so that the end does not depend on
//!    anybody's good will. [`Step::Finish`] comes last and once.

mod step;

use std::collections::{BTreeMap, VecDeque};

use crate::Group;

pub(crate) use self::step::{Ending, Event, Step, Timer};

/// What a member is known by. Never used twice.
pub(crate) type MemberId = u64;

/// These groups start one after the other, each when the one before is ready. Then come [`Group::Always`] and
/// [`Group::Leader`].
pub(crate) const BEFORE_ALL: [Group; 3] = [Group::Http, Group::Webhooks, Group::Caches];

/// The order in which groups stop.
pub(crate) const STOP_ORDER: [Group; 5] = [Group::Always, Group::Leader, Group::Caches, Group::Webhooks, Group::Http];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    /// The groups of [`BEFORE_ALL`] up to this place are launched.
    Starting(usize),
    Running,
    /// This place of [`STOP_ORDER`] is waited for; beyond the last one, the elector.
    Stopping(usize),
    /// Everything was cancelled; and, where this says so, aborted.
    Cancelled {
        aborted: bool,
    },
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Queued,
    /// Launched, not ready yet.
    Launched,
    Ready,
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    group: Group,
    life: Life,
    warm_up: WarmUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarmUp {
    /// None, or over.
    None,
    Wanted,
    Running,
}

impl Member {
    fn is_running(&self) -> bool {
        matches!(self.life, Life::Launched | Life::Ready) || self.warm_up == WarmUp::Running
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Election {
    /// There is none: every replica leads.
    None,
    NotBegun,
    Candidate,
    Leader,
    /// It was told to stop.
    Stopping,
    Over,
}

/// Nothing is taken in any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// See the file.
#[derive(Debug)]
pub(crate) struct Stages {
    phase: Phase,
    election: Election,
    /// Those that have not ended; once it stops, those of them that run. Ended ones are forgotten.
    members: BTreeMap<MemberId, Member>,
    next_id: MemberId,
    /// What to do, and was not asked for yet.
    steps: VecDeque<Step>,
    said_elected: bool,
    said_synced: bool,
}

impl Stages {
    /// Nothing has begun. `elects`: whether one of several replicas leads.
    pub(crate) fn new(elects: bool) -> Self {
        Self {
            phase: Phase::New,
            election: if elects { Election::NotBegun } else { Election::None },
            members: BTreeMap::new(),
            next_id: 0,
            steps: VecDeque::new(),
            said_elected: false,
            said_synced: false,
        }
    }

    /// Takes a member in, before the start or after it.
    pub(crate) fn add(&mut self, group: Group, warms_up: bool) -> Result<MemberId, Refused> {
        if self.is_stopping() {
            return Err(Refused);
        }
        let id = self.next_id;
        self.next_id += 1;
        // Without an election all begin at once: there is nothing to be warm for.
        let warms_up = warms_up && group == Group::Leader && self.election != Election::None;
        let warm_up = if warms_up { WarmUp::Wanted } else { WarmUp::None };
        self.members.insert(id, Member { group, life: Life::Queued, warm_up });
        self.advance();
        Ok(id)
    }

    /// Begins. False where it has begun before.
    #[must_use = "a manager starts once"]
    pub(crate) fn start(&mut self) -> bool {
        if self.phase != Phase::New {
            return false;
        }
        self.phase = Phase::Starting(0);
        self.advance();
        true
    }

    /// Whether it is about to end, or has ended.
    pub(crate) fn is_stopping(&self) -> bool {
        !matches!(self.phase, Phase::New | Phase::Starting(_) | Phase::Running)
    }

    /// Those that have been launched, or warm up, and have not ended.
    pub(crate) fn running(&self) -> impl Iterator<Item = MemberId> {
        self.members.iter().filter(|(_, member)| member.is_running()).map(|(id, _)| *id)
    }

    /// Whether this replica leads by an election.
    pub(crate) fn leads(&self) -> bool {
        self.election == Election::Leader
    }

    /// Everything is dropped: nothing is taken in, and nothing is to be done any more.
    pub(crate) fn give_up(&mut self) {
        self.phase = Phase::Stopped;
        self.members.clear();
        self.steps.clear();
    }

    /// What to do next; nothing where all there is to do is to wait.
    pub(crate) fn next(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Takes in what has happened.
    pub(crate) fn handle(&mut self, event: Event) {
        match event {
            Event::Ready(id) => self.ready(id),
            Event::NotReady | Event::Stop => self.stop(),
            Event::Ended(id, ending) => self.ended(id, ending, |member| member.life = Life::Ended),
            Event::WarmedUp(id, ending) => self.ended(id, ending, |member| member.warm_up = WarmUp::None),
            Event::Elected if self.election == Election::Candidate => self.election = Election::Leader,
            Event::Elected => {}
            Event::ElectorEnded => self.elector_ended(),
            Event::TimeOver(timer) => self.time_over(timer),
        }
        self.advance();
    }

    fn ready(&mut self, id: MemberId) {
        if let Some(member) = self.members.get_mut(&id)
            && member.life == Life::Launched
        {
            member.life = Life::Ready;
        }
    }

    fn ended(&mut self, id: MemberId, ending: Ending, change: impl FnOnce(&mut Member)) {
        let stopping = self.is_stopping();
        if let Some(member) = self.members.get_mut(&id) {
            change(member);
            let will_run = member.life == Life::Queued && !stopping;
            if !member.is_running() && !will_run {
                self.members.remove(&id);
            }
        }
        if ending == Ending::Failed {
            self.stop();
        }
    }

    fn elector_ended(&mut self) {
        match std::mem::replace(&mut self.election, Election::Over) {
            // The lease is lost: another one may lead from now on, so nothing of this may go on.
            Election::Leader => self.cancel_all(),
            // Nobody will ever lead here.
            Election::Candidate => self.stop(),
            _ => {}
        }
    }

    fn time_over(&mut self, timer: Timer) {
        match (timer, self.phase) {
            (Timer::Grace, Phase::Stopping(_)) => self.cancel_all(),
            (Timer::Cancel, Phase::Cancelled { aborted: false }) => {
                self.phase = Phase::Cancelled { aborted: true };
                self.steps.extend([Step::Arm(Timer::Abort), Step::Abort]);
            }
            (Timer::Abort, Phase::Cancelled { aborted: true }) => self.finish(),
            // A late one.
            _ => {}
        }
    }

    /// Begins to stop, once.
    fn stop(&mut self) {
        if self.is_stopping() {
            return;
        }
        self.launch_no_more();
        self.phase = Phase::Stopping(0);
        self.steps.push_back(Step::Arm(Timer::Grace));
        if self.election == Election::Candidate {
            // It protects nobody, and must not come to lead while the rest ends.
            self.stop_elector();
        }
        self.steps.extend([Step::StopWarmUps, Step::StopGroup(STOP_ORDER[0])]);
    }

    fn cancel_all(&mut self) {
        if matches!(self.phase, Phase::Cancelled { .. } | Phase::Stopped) {
            return;
        }
        self.launch_no_more();
        self.phase = Phase::Cancelled { aborted: false };
        if self.election == Election::Candidate {
            self.stop_elector();
        }
        self.steps.extend([Step::Arm(Timer::Cancel), Step::CancelAll]);
    }

    /// Takes back what was said and not begun. Who has not been launched never will be.
    fn launch_no_more(&mut self) {
        for step in std::mem::take(&mut self.steps) {
            match step {
                Step::Launch(id) => self.members.entry(id).and_modify(|member| member.life = Life::Ended),
                Step::WarmUp(id) => self.members.entry(id).and_modify(|member| member.warm_up = WarmUp::None),
                Step::Elect => {
                    self.election = Election::Over;
                    continue;
                }
                step => {
                    self.steps.push_back(step);
                    continue;
                }
            };
        }
        self.members.retain(|_, member| member.is_running());
        if self.election == Election::NotBegun {
            self.election = Election::Over;
        }
    }

    fn stop_elector(&mut self) {
        self.election = Election::Stopping;
        self.steps.push_back(Step::StopElector);
    }

    fn finish(&mut self) {
        self.phase = Phase::Stopped;
        self.members.clear();
        self.steps.push_back(Step::Finish);
    }

    /// Does what has become possible.
    fn advance(&mut self) {
        match self.phase {
            Phase::New | Phase::Stopped => {}
            Phase::Starting(_) | Phase::Running => self.advance_start(),
            Phase::Stopping(_) => self.advance_stop(),
            Phase::Cancelled { .. } => self.advance_end(),
        }
    }

    fn advance_start(&mut self) {
        while let Phase::Starting(place) = self.phase {
            for group in &BEFORE_ALL[..=place] {
                self.launch(*group);
                if self.members.values().any(|member| member.life == Life::Launched) {
                    return;
                }
            }
            self.phase = match place + 1 {
                place if place < BEFORE_ALL.len() => Phase::Starting(place),
                _ => self.end_start(),
            };
        }
        [BEFORE_ALL.as_slice(), &[Group::Always]].concat().into_iter().for_each(|group| self.launch(group));
        if matches!(self.election, Election::None | Election::Leader) {
            self.launch(Group::Leader);
            if !std::mem::replace(&mut self.said_elected, true) {
                self.steps.push_back(Step::SayElected);
            }
        } else {
            self.warm_up();
        }
        let all_ready = self.members.values().all(|member| member.life != Life::Launched);
        if all_ready && !std::mem::replace(&mut self.said_synced, true) {
            self.steps.push_back(Step::SaySynced);
        }
    }

    fn end_start(&mut self) -> Phase {
        self.launch(Group::Always);
        self.steps.push_back(Step::SayStarted);
        if self.election == Election::NotBegun {
            self.warm_up();
            self.election = Election::Candidate;
            self.steps.push_back(Step::Elect);
        }
        Phase::Running
    }

    fn launch(&mut self, group: Group) {
        for (id, member) in self.members.iter_mut().filter(|(_, member)| member.group == group) {
            if member.life == Life::Queued {
                member.life = Life::Launched;
                self.steps.push_back(Step::Launch(*id));
            }
        }
    }

    fn warm_up(&mut self) {
        for (id, member) in &mut self.members {
            if member.warm_up == WarmUp::Wanted {
                member.warm_up = WarmUp::Running;
                self.steps.push_back(Step::WarmUp(*id));
            }
        }
    }

    fn advance_stop(&mut self) {
        while let Phase::Stopping(place) = self.phase {
            let Some(group) = STOP_ORDER.get(place) else { break };
            if self.members.values().any(|member| member.group == *group) {
                return;
            }
            self.phase = Phase::Stopping(place + 1);
            self.steps.extend(STOP_ORDER.get(place + 1).map(|group| Step::StopGroup(*group)));
        }
        self.advance_end();
    }

    /// Nobody is left but the elector, or is waited for.
    fn advance_end(&mut self) {
        if !self.members.is_empty() {
            return;
        }
        match self.election {
            Election::Leader => self.stop_elector(),
            Election::Stopping => {}
            _ => self.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
