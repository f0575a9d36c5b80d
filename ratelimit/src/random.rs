//! Random numbers for jitter: small, seedable, and not for secrets.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A source of random numbers for jitter. Tests fix it by a seed; never use it for secrets.
///
/// ```
/// use kubewire_ratelimit::Random;
///
/// let mut random = Random::seeded(7);
/// let fraction = random.fraction();
/// assert!((0.0..1.0).contains(&fraction));
/// assert_eq!(fraction, Random::seeded(7).fraction());
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The source that gives the same numbers for the same seed, in every process and version.
    pub const fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A source with a seed of its own, different in each process and for each call.
    pub fn new() -> Self {
        Self::seeded(RandomState::new().build_hasher().finish())
    }

    /// The next number, equally likely anywhere in `0.0..1.0`.
    pub fn fraction(&mut self) -> f64 {
        // 53 bits are what a double holds.
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// SplitMix64: one addition and a mix of the bits for each number.
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_fill_the_interval_evenly() {
        let mut random = Random::seeded(1);
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            tenths[(random.fraction() * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|&count| (850..1150).contains(&count)), "{tenths:?}");
    }

    #[test]
    fn unseeded_sources_differ() {
        assert_ne!(Random::new().bits(), Random::new().bits());
    }
}
