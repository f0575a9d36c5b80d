//! Checks by name.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kubewire_ratelimit::FailureLog;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::report::{Asked, report};
use crate::BoxError;

type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// Checks, each with a name, that answer one endpoint together, such as `/readyz`. Cloning gives another handle.
///
/// Each request runs them anew, all at the same time; one that takes more than ten seconds, or panics, has failed. The log says
/// why, at growing distances as long as it goes on, and that it is over.
///
/// ```
/// use kubewire_controller::HealthChecks;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let checks = HealthChecks::new();
/// checks.add("ping", || Ok::<(), std::io::Error>(()))?;
/// checks.add("disk", || Err("there is none"))?;
///
/// let (ok, text) = checks.run("readyz", "").await;
/// assert!(!ok);
/// assert_eq!(text, "[-]disk failed: reason withheld\n[+]ping ok\nreadyz check failed\n");
/// assert_eq!(checks.run("readyz", "exclude=disk").await, (true, "ok".to_owned()));
/// assert_eq!(checks.run_one("disk").await.unwrap().unwrap_err().to_string(), "there is none");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct HealthChecks {
    /// Nothing is called or dropped under its lock.
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    checks: BTreeMap<String, Check>,
    /// Of those that have failed once: probes ask every few seconds.
    failures: BTreeMap<String, FailureLog<()>>,
    /// A server has begun with them.
    sealed: bool,
}

/// A server has begun with these checks: none is taken any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("checks cannot be added once their server has started: add them before the start")]
pub struct AddCheckError;

/// A check that takes longer has failed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

impl HealthChecks {
    /// No checks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check, or replaces the one of this name. It is called for each request, so it is quick.
    ///
    /// # Errors
    /// The server has started.
    pub fn add<E: Into<BoxError>>(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<(), AddCheckError> {
        let check = move || {
            let result: Result<(), BoxError> = check().map_err(Into::into);
            Box::pin(std::future::ready(result)) as BoxFuture<'static, Result<(), BoxError>>
        };
        self.insert(name.into(), Arc::new(check))
    }

    /// [`add`](Self::add) for a check that waits.
    ///
    /// # Errors
    /// The server has started.
    pub fn add_async<F, E>(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<(), AddCheckError>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let check = move || {
            let result = check();
            Box::pin(async move { result.await.map_err(Into::into) }) as BoxFuture<'static, Result<(), BoxError>>
        };
        self.insert(name.into(), Arc::new(check))
    }

    fn insert(&self, name: String, check: Check) -> Result<(), AddCheckError> {
        let before = {
            let mut shared = self.shared.lock();
            if shared.sealed {
                return Err(AddCheckError);
            }
            shared.checks.insert(name, check)
        };
        drop(before);
        Ok(())
    }

    /// Whether there are none: then there is no such endpoint.
    pub fn is_empty(&self) -> bool {
        self.shared.lock().checks.is_empty()
    }

    /// The names of all checks, sorted.
    pub fn names(&self) -> Vec<String> {
        self.shared.lock().checks.keys().cloned().collect()
    }

    pub(super) fn seal(&self) {
        self.shared.lock().sealed = true;
    }

    fn all(&self) -> Vec<(String, Check)> {
        self.shared.lock().checks.iter().map(|(name, check)| (name.clone(), Arc::clone(check))).collect()
    }

    /// Runs all checks that the query does not exclude: whether all is well, and the text to answer. `endpoint` is what that
    /// calls itself. Cancel-safe.
    pub async fn run(&self, endpoint: &str, query: &str) -> (bool, String) {
        let asked = Asked::parse(query);
        let checks = self.all();
        let results = checks.into_iter().map(|(name, check)| {
            let excluded = asked.exclude.contains(&name);
            async move {
                if excluded {
                    return (name, None);
                }
                let result = run(&check).await;
                self.log(endpoint, &name, result.as_ref().err());
                (name, Some(result.is_ok()))
            }
        });
        let results = join_all(results).await.into_iter().collect();
        report(endpoint, &asked, &results)
    }

    fn log(&self, endpoint: &str, check: &str, failed: Option<&BoxError>) {
        let now = Instant::now().into_std();
        let Some(error) = failed else {
            let recovery = self.shared.lock().failures.get_mut(check).and_then(|failures| failures.recovered(now));
            if let Some(recovery) = recovery {
                tracing::info!(check, endpoint, failures = recovery.failures, lasted = ?recovery.lasted, "a health check is well again");
            }
            return;
        };
        let left_out = self.shared.lock().failures.entry(check.to_owned()).or_default().failed((), now);
        if let Some(left_out) = left_out {
            tracing::warn!(check, endpoint, %error, left_out, "a health check failed");
        }
    }

    /// Runs one check; `None` where there is none of this name. Cancel-safe.
    pub async fn run_one(&self, name: &str) -> Option<Result<(), BoxError>> {
        let check = self.shared.lock().checks.get(name).cloned()?;
        Some(run(&check).await)
    }
}

async fn run(check: &Check) -> Result<(), BoxError> {
    // Also what it does before it waits.
    let result = AssertUnwindSafe(async { check().await }).catch_unwind();
    match tokio::time::timeout(CHECK_TIMEOUT, result).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err("the check panicked".into()),
        Err(_) => Err(format!("the check took more than {CHECK_TIMEOUT:?}").into()),
    }
}

impl fmt::Debug for HealthChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HealthChecks").field(&self.names()).finish()
    }
}
