//! Handlers of all kinds that come and go.

use std::time::Duration;

use futures::StreamExt;
use kubewire_indexer::Object;
use kubewire_informer::{Buffering, HandlerOptions, Informer, Registration, Subscription};

use crate::dice::Dice;
use crate::digest::Digest;
use crate::scope::Contents;
use crate::witness::{Fragile, Witness};

const HANDLERS_MAX: usize = 5;
const KINDS: [&str; 4] = ["called", "fragile", "slow stream", "short stream"];

pub(crate) struct Crowd<O: Object> {
    name: &'static str,
    informer: Informer<O>,
    in_order: bool,
    dice: Dice,
    digest: Digest,
    /// How many have come.
    come: usize,
    present: Vec<Member>,
    /// Who has left, and how much each had been told by then.
    gone: Vec<(Member, u64)>,
}

struct Member {
    registration: Registration,
    witness: Witness,
}

impl<O: Object> Crowd<O> {
    pub(crate) fn new(name: &'static str, informer: &Informer<O>, in_order: bool, dice: Dice, digest: &Digest) -> Self {
        let (informer, digest) = (informer.clone(), digest.clone());
        Self { name, informer, in_order, dice, digest, come: 0, present: Vec::new(), gone: Vec::new() }
    }

    /// One more handler: the first ones one of each kind.
    pub(crate) fn come(&mut self) {
        let kind = KINDS.get(self.come).copied().unwrap_or_else(|| self.dice.one_of(&KINDS));
        let buffering = if self.dice.chance(0.3) { Buffering::Coalescing } else { Buffering::Unbounded };
        let name = format!("{} {kind} {}, {buffering:?}", self.name, self.come);
        self.come += 1;
        let witness = Witness::new(&name, self.in_order, buffering, &self.digest);
        let mut options = HandlerOptions::new().name(name).buffering(buffering);
        if self.dice.chance(0.5) {
            options = options.resync_period(self.dice.seconds(100));
        }
        let registration = match kind {
            "called" => self.informer.add_handler_with(witness.clone(), options).expect("it is not stopped"),
            "fragile" => {
                let fragile = Fragile { witness: witness.clone(), dice: self.dice.fork() };
                self.informer.add_handler_with(fragile, options).expect("it is not stopped")
            }
            kind => self.stream(kind == "short stream", witness.clone(), options),
        };
        self.present.push(Member { registration, witness });
    }

    /// A handler that takes its time over each notification; a `short` one leaves by itself, by being dropped.
    fn stream(&mut self, short: bool, witness: Witness, options: HandlerOptions) -> Registration {
        let mut subscription = self.informer.subscribe_with(options).expect("it is not stopped");
        let registration = subscription.registration();
        let mut dice = self.dice.fork();
        let length = if short { dice.below(200) as usize } else { usize::MAX };
        tokio::spawn(async move {
            read(&mut subscription, &witness, &mut dice, length).await;
        });
        registration
    }

    /// Somebody comes, or leaves.
    pub(crate) async fn stir(&mut self) {
        let left = self.present.extract_if(.., |member| member.registration.is_removed());
        self.gone.extend(left.map(|member| {
            let told = member.witness.told();
            (member, told)
        }));
        if self.present.len() < KINDS.len().min(self.come + 1)
            || (self.present.len() < HANDLERS_MAX && self.dice.chance(0.5))
        {
            return self.come();
        }
        let member = self.present.swap_remove(self.dice.below(self.present.len() as u64) as usize);
        if self.dice.chance(0.5) {
            member.registration.remove();
            // The call that was running, or about to begin, has ended by then.
            tokio::time::sleep(Duration::from_millis(1)).await;
        } else {
            member.registration.shut_down().await;
        }
        let told = member.witness.told();
        self.gone.push((member, told));
    }

    /// Nothing waits for anybody, and nobody is at anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.present.iter().all(|member| {
            let status = member.registration.status();
            let is_idle = status.synced && status.backlog == 0 && status.told == member.witness.told();
            is_idle || member.registration.is_removed()
        })
    }

    pub(crate) fn check(&self, contents: &Contents, restores: usize) {
        for member in &self.present {
            if member.registration.is_removed() {
                member.witness.check_order(restores);
            } else {
                member.witness.check(contents, restores);
            }
        }
        for (member, told) in &self.gone {
            member.witness.check_order(restores);
            let name = member.witness.name();
            assert_eq!(member.witness.told(), *told, "{name} was told something after it had left");
        }
    }

    fn witnesses(&self) -> impl Iterator<Item = &Witness> {
        self.present.iter().chain(self.gone.iter().map(|(member, _)| member)).map(|member| &member.witness)
    }

    pub(crate) fn gone(&self) -> usize {
        self.gone.len()
    }

    pub(crate) fn told(&self) -> u64 {
        self.witnesses().map(Witness::told).sum()
    }

    pub(crate) fn tombstones(&self) -> u64 {
        self.witnesses().map(Witness::tombstones).sum()
    }

    /// Every other one leaves. The rest is for the informer's stop to let go.
    pub(crate) async fn leave(self) -> Vec<Registration> {
        let mut left = Vec::new();
        for (n, member) in self.present.into_iter().enumerate() {
            if n % 2 == 0 {
                member.registration.shut_down().await;
                assert!(member.registration.is_removed());
            } else {
                left.push(member.registration);
            }
        }
        left
    }
}

async fn read<O: Object>(from: &mut Subscription<O>, witness: &Witness, dice: &mut Dice, length: usize) {
    for _ in 0..length {
        let Some(notification) = from.next().await else { return };
        witness.note(&notification);
        tokio::time::sleep(dice.up_to(Duration::from_millis(300))).await;
    }
}
