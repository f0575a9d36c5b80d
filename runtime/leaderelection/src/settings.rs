//! PURE: how long a lease holds, how long a leader tries to renew it, and how often everybody tries.

use std::time::Duration;

/// How much a wait may be longer than the retry period, as a part of it: waits of candidates are 1 to 2.2 periods.
pub(crate) const JITTER: f64 = 1.2;

/// The durations of an election. All replicas should have the same; that they do not is safe as long as each one's are
/// [valid](Self::validate), since a lease says itself how long it holds.
///
/// ```
/// use kubewire_leaderelection::Settings;
/// use std::time::Duration;
///
/// let settings = Settings { renew_deadline: Duration::from_secs(20), ..Settings::default() };
/// assert!(settings.validate().is_err(), "a leader must give up before its lease is over");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long others wait, from the moment at which they saw the lease change, until they take it. Default 15 s. The
    /// lease says it in whole seconds, rounded up.
    pub lease_duration: Duration,
    /// How long a leader acts without a renewal, counted from before the last one that worked was sent. Default 10 s.
    pub renew_deadline: Duration,
    /// How long a leader waits between two renewals, and a candidate (1 to 2.2 times as long, or until the lease is over)
    /// between two tries. Default 2 s.
    pub retry_period: Duration,
    /// Whether a leader that is stopped empties the lease, so that the next one need not wait until it is over. It comes
    /// after the work of [`on_started_leading`](crate::ElectorBuilder::on_started_leading) has ended; of other work the
    /// elector knows nothing: end it before the elector is stopped. Default false.
    pub release_on_stop: bool,
    /// Whether others choose the leader (coordinated election): then a lease is never made nor taken from somebody, and
    /// one that names a preferred holder is not renewed. Default false.
    pub coordinated: bool,
}

impl Default for Settings {
    /// client-go's customary 15 s, 10 s and 2 s.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_stop: false,
            coordinated: false,
        }
    }
}

/// Why settings would not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Others could lead while this leader still acts.
    #[error("lease_duration must be longer than renew_deadline: else others lead while this one still acts")]
    LeaseNotLonger,
    /// There would be no time for a second try.
    #[error("renew_deadline must be longer than 1.2 times retry_period: else one failed renewal ends leadership")]
    RenewNotLonger,
    /// A duration is zero.
    #[error("{0} must be above zero")]
    Zero(&'static str),
    /// A lease says its duration in whole seconds.
    #[error("lease_duration must be a second at least: a lease says it in whole seconds")]
    LeaseTooShort,
    /// A lease says its duration as a number of 32 bits.
    #[error("lease_duration is longer than a lease can say: take {} s at most", i32::MAX)]
    LeaseTooLong,
    /// The candidate has no name.
    #[error("the identity is empty: name each candidate, differently, by unique_identity() for example")]
    NoIdentity,
}

impl Settings {
    /// Whether these can work, as client-go checks it, and a lease of a second at least.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), SettingsError> {
        for (name, value) in [
            ("lease_duration", self.lease_duration),
            ("renew_deadline", self.renew_deadline),
            ("retry_period", self.retry_period),
        ] {
            if value.is_zero() {
                return Err(SettingsError::Zero(name));
            }
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(SettingsError::LeaseNotLonger);
        }
        if self.renew_deadline.as_secs_f64() <= JITTER * self.retry_period.as_secs_f64() {
            return Err(SettingsError::RenewNotLonger);
        }
        if self.lease_duration < Duration::from_secs(1) {
            return Err(SettingsError::LeaseTooShort);
        }
        if self.lease_duration > Duration::from_secs(i32::MAX as u64) {
            return Err(SettingsError::LeaseTooLong);
        }
        Ok(())
    }

    /// The duration as a lease says it: never shorter than it is.
    pub(crate) fn lease_duration_seconds(&self) -> i32 {
        let seconds = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(seconds).unwrap_or(i32::MAX)
    }

    /// How long one request may take: half of the renew deadline, so that a second one has its time, but a second at
    /// least; as controller-runtime.
    pub(crate) fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(lease: u64, renew: u64, retry: u64) -> Settings {
        let millis = Duration::from_millis;
        Settings {
            lease_duration: millis(lease),
            renew_deadline: millis(renew),
            retry_period: millis(retry),
            ..Settings::default()
        }
    }

    #[test]
    fn each_rule_of_the_durations_is_checked() {
        use SettingsError::*;
        for (lease, renew, retry, wanted) in [
            (15_000, 10_000, 2_000, Ok(())),
            (10_000, 10_000, 2_000, Err(LeaseNotLonger)),
            (15_000, 2_400, 2_000, Err(RenewNotLonger)),
            (15_000, 2_401, 2_000, Ok(())),
            (0, 10_000, 2_000, Err(Zero("lease_duration"))),
            (15_000, 0, 2_000, Err(Zero("renew_deadline"))),
            (15_000, 10_000, 0, Err(Zero("retry_period"))),
            (500, 400, 100, Err(LeaseTooShort)),
            (u64::MAX / 2, 10_000, 2_000, Err(LeaseTooLong)),
        ] {
            assert_eq!(settings(lease, renew, retry).validate(), wanted, "{lease} {renew} {retry}");
        }
    }

    #[test]
    fn a_lease_never_says_less_than_its_duration() {
        assert_eq!(settings(15_000, 1, 1).lease_duration_seconds(), 15);
        assert_eq!(settings(15_001, 1, 1).lease_duration_seconds(), 16);
    }
}
