//! PURE. The server's random numbers, all from one seed.

/// SplitMix64: small, fast, and the same numbers from the same seed for ever.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // The bias is below `end / 2^64`.
        self.next() % end
    }

    /// A version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let bytes = (u128::from(self.next()) << 64 | u128::from(self.next())).to_be_bytes();
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// `len` of the characters of generated names.
    pub(crate) fn suffix(&mut self, len: usize) -> String {
        (0..len).map(|_| char::from(NAME_CHARACTERS[self.below(NAME_CHARACTERS.len() as u64) as usize])).collect()
    }
}

/// No vowels, so that no words come out; no characters that are mistaken for others. As in Kubernetes.
pub(crate) const NAME_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
