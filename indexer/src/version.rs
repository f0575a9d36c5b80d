//! PURE. A version of an object, held by itself.

use smallvec::SmallVec;

/// The text of a version. One as short as those of Kubernetes (20 digits at most) is held without an allocation, since
/// a store takes a copy of one at each write.
#[derive(Clone, Default)]
pub(crate) struct Version(SmallVec<[u8; 24]>);

impl Version {
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("it was made of a text")
    }
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        Self(SmallVec::from_slice(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_twenty_digits_needs_no_allocation_and_a_longer_one_is_kept_whole() {
        assert!(!Version::from("18446744073709551615").0.spilled());
        let long = "ä".repeat(100);
        assert_eq!(Version::from(&*long).as_str(), long);
    }
}
