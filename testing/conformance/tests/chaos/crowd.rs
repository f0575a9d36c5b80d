//! Handlers of all kinds that come and go.

use std::time::Duration;

use futures::StreamExt;
use kubewire_indexer::Object;
use kubewire_informer::{Buffering, HandlerOptions, Informer, Registration};

use crate::Contents;
use crate::dice::Dice;
use crate::witness::{Fragile, Witness};

const HANDLERS_MAX: usize = 8;

pub(crate) struct Crowd<O: Object> {
    informer: Informer<O>,
    in_order: bool,
    dice: Dice,
    present: Vec<Member>,
    /// Who has left, and how much each had been told by then.
    gone: Vec<(Member, u64)>,
}

struct Member {
    name: String,
    registration: Registration,
    witness: Witness,
}

impl<O: Object> Crowd<O> {
    pub(crate) fn new(informer: &Informer<O>, in_order: bool, dice: Dice) -> Self {
        Self { informer: informer.clone(), in_order, dice, present: Vec::new(), gone: Vec::new() }
    }

    /// One more handler.
    pub(crate) fn come(&mut self) {
        let witness = Witness::new(self.in_order);
        let kind = ["called", "fragile", "lazy stream"][self.dice.below(3) as usize];
        let buffering = if self.dice.chance(0.3) { Buffering::Coalescing } else { Buffering::Unbounded };
        let name = format!("{kind} {}, {buffering:?}", self.present.len() + self.gone.len());
        let mut options = HandlerOptions::new().name(name.as_str()).buffering(buffering);
        if self.dice.chance(0.5) {
            options = options.resync_period(self.dice.up_to(Duration::from_secs(100)));
        }
        let registration = match kind {
            "called" => self.informer.add_handler_with(witness.clone(), options).expect("it is not stopped"),
            "fragile" => {
                let fragile = Fragile { witness: witness.clone(), dice: self.dice.fork() };
                self.informer.add_handler_with(fragile, options).expect("it is not stopped")
            }
            _ => self.stream(witness.clone(), options),
        };
        self.present.push(Member { name, registration, witness });
    }

    /// A handler that takes its time over each notification.
    fn stream(&mut self, witness: Witness, options: HandlerOptions) -> Registration {
        let mut subscription = self.informer.subscribe_with(options).expect("it is not stopped");
        let registration = subscription.registration();
        let mut dice = self.dice.fork();
        tokio::spawn(async move {
            while let Some(notification) = subscription.next().await {
                witness.note(&notification);
                tokio::time::sleep(dice.up_to(Duration::from_millis(300))).await;
            }
        });
        registration
    }

    /// Somebody comes, or leaves.
    pub(crate) async fn stir(&mut self) {
        if self.present.len() < 2 || (self.present.len() < HANDLERS_MAX && self.dice.chance(0.5)) {
            return self.come();
        }
        let member = self.present.swap_remove(self.dice.below(self.present.len() as u64) as usize);
        member.registration.remove();
        // The call that was running, or about to begin, has ended by then.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let told = member.witness.told();
        self.gone.push((member, told));
    }

    /// Nothing waits for anybody, and nobody is at anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.present.iter().all(|member| {
            let status = member.registration.status();
            status.synced && status.backlog == 0 && status.told == member.witness.told()
        })
    }

    pub(crate) fn check(&self, contents: &Contents) {
        for member in &self.present {
            member.witness.check(&member.name, contents);
        }
        for (member, told) in &self.gone {
            member.witness.check_order(&member.name);
            assert_eq!(member.witness.told(), *told, "{} was told something after it had left", member.name);
        }
        assert!(self.gone.len() > 5, "hardly anybody has come and gone");
    }

    /// Everybody leaves.
    pub(crate) async fn leave(self) {
        for member in self.present {
            member.registration.shut_down().await;
            assert!(member.registration.is_removed());
        }
    }
}
