//! Rate limiters as the traces describe them.

use std::time::Duration;

use kubewire_ratelimit::{
    BucketRateLimiter, ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter, MaxOfRateLimiter, RateLimiter,
    WithMaxWaitRateLimiter, default_controller_rate_limiter, default_item_based_rate_limiter,
};
use serde::Deserialize;

/// What `config.limiter` says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Description {
    r#type: String,
    base_ns: u64,
    max_ns: u64,
    fast_ns: u64,
    slow_ns: u64,
    max_fast_attempts: u32,
    qps: f64,
    burst: u32,
    limiters: Vec<Description>,
    limiter: Option<Box<Description>>,
    tolerance_ns: u64,
}

pub(crate) type Limiter = Box<dyn RateLimiter<String> + Send>;

impl Description {
    pub(crate) fn build(&self) -> Result<Limiter, String> {
        Ok(match self.r#type.as_str() {
            "exponential" => Box::new(ItemExponentialFailureRateLimiter::new(
                Duration::from_nanos(self.base_ns),
                Duration::from_nanos(self.max_ns),
            )),
            "fast_slow" => Box::new(ItemFastSlowRateLimiter::new(
                Duration::from_nanos(self.fast_ns),
                Duration::from_nanos(self.slow_ns),
                self.max_fast_attempts,
            )),
            "bucket" => Box::new(BucketRateLimiter::new(self.qps, self.burst)),
            "max_of" => Box::new(
                self.limiters
                    .iter()
                    .try_fold(MaxOfRateLimiter::new(), |all, one| Ok::<_, String>(all.with(one.build()?)))?,
            ),
            "with_max_wait" => {
                let inner = self.limiter.as_ref().ok_or("with_max_wait has no limiter")?.build()?;
                Box::new(WithMaxWaitRateLimiter::new(inner, Duration::from_nanos(self.max_ns)))
            }
            "default_controller" => Box::new(default_controller_rate_limiter()),
            "default_item_based" => Box::new(default_item_based_rate_limiter()),
            other => return Err(format!("unknown type of limiter {other:?}")),
        })
    }

    /// How much its delays may differ: the most that is allowed to it or to any within it.
    pub(crate) fn tolerance_ns(&self) -> u64 {
        let within = self.limiters.iter().chain(self.limiter.as_deref()).map(Self::tolerance_ns);
        within.fold(self.tolerance_ns, u64::max)
    }
}

/// A delay as the traces write it. None is longer than 2⁶³−1 ns there.
pub(crate) fn whole_nanos(delay: Duration) -> u64 {
    u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX).min(i64::MAX.unsigned_abs())
}
