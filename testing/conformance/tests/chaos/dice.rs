//! All chance of a run, from one seed.

use std::time::Duration;

use kubewire_ratelimit::Random;

pub(crate) struct Dice {
    random: Random,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::seeded(seed) }
    }

    /// Dice of their own for somebody else, so that nobody's throws depend on who runs first.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.below(u64::from(u32::MAX)))
    }

    /// A source of jitter for the code under test.
    pub(crate) fn jitter(&mut self) -> Random {
        Random::seeded(self.below(u64::from(u32::MAX)))
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.random.fraction() < probability
    }

    /// A number from 0 to `end` - 1.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.random.fraction() * end as f64) as u64
    }

    pub(crate) fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }

    pub(crate) fn up_to(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.random.fraction())
    }

    pub(crate) fn seconds(&mut self, longest: u64) -> Duration {
        self.up_to(Duration::from_secs(longest))
    }
}
