//! PURE: how often errors are logged.

use std::time::{Duration, Instant};

use kubewire_listwatch::ErrorClass;

/// The shortest time between two logged errors of one class.
const GAP: Duration = Duration::from_secs(10);

/// Lets one error of a class through each ten seconds. Bounded by the number of classes.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    /// The class, when one was last let through, and how many were left out since.
    classes: Vec<(ErrorClass, Instant, u64)>,
}

impl LogLimit {
    /// Whether to log an error of this class: if so, how many were left out before.
    pub(crate) fn admit(&mut self, class: ErrorClass, now: Instant) -> Option<u64> {
        let Some((_, last, left_out)) = self.classes.iter_mut().find(|(known, ..)| *known == class) else {
            self.classes.push((class, now, 0));
            return Some(0);
        };
        if now.duration_since(*last) < GAP {
            *left_out += 1;
            return None;
        }
        *last = now;
        Some(std::mem::take(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_of_a_class_is_logged_each_ten_seconds_with_the_number_left_out() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut limit = LogLimit::default();
        assert_eq!(limit.admit(ErrorClass::Decode, at(0)), Some(0));
        assert_eq!(limit.admit(ErrorClass::Forbidden, at(1)), Some(0));
        assert_eq!(limit.admit(ErrorClass::Decode, at(1)), None);
        assert_eq!(limit.admit(ErrorClass::Decode, at(9)), None);
        assert_eq!(limit.admit(ErrorClass::Decode, at(10)), Some(2));
    }
}
