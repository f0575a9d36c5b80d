//! PURE. The random numbers of Go's `math/rand/v2`, so that the peers' pods can be made here.

/// Go's `rand.New(rand.NewPCG(seed1, seed2))`.
pub(crate) struct GoRandom(u128);

impl GoRandom {
    pub(crate) fn seeded(seed1: u64, seed2: u64) -> Self {
        Self(u128::from(seed1) << 64 | u128::from(seed2))
    }

    /// `Uint64`: a step of the generator, then a double xorshift multiply.
    pub(crate) fn next_u64(&mut self) -> u64 {
        const MULTIPLIER: u128 = 2_549_297_995_355_413_924 << 64 | 4_865_540_595_714_422_341;
        const INCREMENT: u128 = 6_364_136_223_846_793_005 << 64 | 1_442_695_040_888_963_407;
        const CHEAP_MULTIPLIER: u64 = 0xda94_2042_e4dd_58b5;
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        let (mut high, low) = ((self.0 >> 64) as u64, self.0 as u64);
        high ^= high >> 32;
        high = high.wrapping_mul(CHEAP_MULTIPLIER);
        high ^= high >> 48;
        high.wrapping_mul(low | 1)
    }

    /// `Uint64N`: below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound.is_power_of_two() {
            return self.next_u64() & (bound - 1);
        }
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// One of these.
    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}
