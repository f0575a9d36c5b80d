//! Who may read the metrics: asked of the API server.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube_client::api::PostParams;
use kube_client::{Api, Client};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// Lets in who shows a token that the API server knows (TokenReview), and has the right to `get` the path there
/// (SubjectAccessReview of a non-resource URL). As controller-runtime's authentication and authorization filter.
///
/// What the API server said is remembered: of a token for a minute; of a right for five minutes, of its lack for half a
/// minute. At most 1024 tokens and 1024 rights are remembered, a token by its SHA-256 alone.
///
/// The process needs the rights to create `tokenreviews` and `subjectaccessreviews`, as the ClusterRole
/// `system:auth-delegator` gives them.
#[derive(Clone)]
pub struct TokenAccess {
    client: Client,
    remembered: Arc<Mutex<Remembered>>,
}

/// Nothing is called under its lock.
#[derive(Default)]
struct Remembered {
    users: Memory<[u8; 32], Option<User>>,
    rights: Memory<(User, String, String), bool>,
}

/// Who a token belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct User {
    name: String,
    uid: String,
    groups: Vec<String>,
}

/// Why somebody was not let in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// No token, or one that is not known.
    #[error("unauthorized")]
    Unauthorized,
    /// The right to the path is missing.
    #[error("authorization denied for user {0:?}")]
    Forbidden(String),
    /// The API server did not say.
    #[error("the API server could not be asked")]
    Failed,
}

impl Refusal {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

const TOKEN_TTL: Duration = Duration::from_secs(60);
const ALLOWED_TTL: Duration = Duration::from_secs(300);
const DENIED_TTL: Duration = Duration::from_secs(30);
const REMEMBERED_MAX: usize = 1024;
/// The API server is given this long.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

impl TokenAccess {
    /// Asks the API server of this client.
    pub fn new(client: Client) -> Self {
        Self { client, remembered: Arc::default() }
    }

    pub(super) async fn check(&self, request: &Parts) -> Result<(), Refusal> {
        let token = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer);
        let token = token.ok_or(Refusal::Unauthorized)?;
        let asked = async {
            let user = self.user(token).await?.ok_or(Refusal::Unauthorized)?;
            let verb = request.method.as_str().to_ascii_lowercase();
            match self.may(&user, &verb, request.uri.path()).await? {
                true => Ok(()),
                false => Err(Refusal::Forbidden(user.name)),
            }
        };
        tokio::time::timeout(REVIEW_TIMEOUT, asked).await.unwrap_or(Err(Refusal::Failed))
    }

    async fn user(&self, token: &str) -> Result<Option<User>, Refusal> {
        let key: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(known) = self.remembered.lock().users.get(&key, Instant::now()) {
            return Ok(known);
        }
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviewed = Api::<TokenReview>::all(self.client.clone()).create(&PostParams::default(), &review).await;
        let status = reviewed.map_err(|error| failed("TokenReview", &error))?.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true)).map(User::from);
        self.remembered.lock().users.put(key, user.clone(), Instant::now(), TOKEN_TTL);
        Ok(user)
    }

    async fn may(&self, user: &User, verb: &str, path: &str) -> Result<bool, Refusal> {
        let key = (user.clone(), verb.to_owned(), path.to_owned());
        if let Some(known) = self.remembered.lock().rights.get(&key, Instant::now()) {
            return Ok(known);
        }
        let attributes = NonResourceAttributes { path: Some(path.to_owned()), verb: Some(verb.to_owned()) };
        let spec = SubjectAccessReviewSpec {
            user: Some(user.name.clone()),
            uid: Some(user.uid.clone()),
            groups: Some(user.groups.clone()),
            non_resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviewed =
            Api::<SubjectAccessReview>::all(self.client.clone()).create(&PostParams::default(), &review).await;
        let allowed =
            reviewed.map_err(|error| failed("SubjectAccessReview", &error))?.status.is_some_and(|s| s.allowed);
        let ttl = if allowed { ALLOWED_TTL } else { DENIED_TTL };
        self.remembered.lock().rights.put(key, allowed, Instant::now(), ttl);
        Ok(allowed)
    }
}

impl From<UserInfo> for User {
    fn from(user: UserInfo) -> Self {
        Self {
            name: user.username.unwrap_or_default(),
            uid: user.uid.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
        }
    }
}

impl fmt::Debug for TokenAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenAccess")
    }
}

fn failed(review: &str, error: &kube_client::Error) -> Refusal {
    tracing::warn!(review, %error, "who asks for metrics cannot be checked");
    Refusal::Failed
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

/// PURE. Values that are forgotten after their time, of which there is a bounded number.
struct Memory<K, V> {
    entries: HashMap<K, (V, Instant)>,
}

impl<K, V> Default for Memory<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new() }
    }
}

impl<K: std::hash::Hash + Eq + Clone, V: Clone> Memory<K, V> {
    fn get(&self, key: &K, now: Instant) -> Option<V> {
        self.entries.get(key).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
    }

    fn put(&mut self, key: K, value: V, now: Instant, ttl: Duration) {
        if self.entries.len() >= REMEMBERED_MAX {
            self.entries.retain(|_, (_, until)| now < *until);
        }
        if self.entries.len() >= REMEMBERED_MAX {
            // Full of what is true: begin anew, rather than keep an order of use.
            self.entries.clear();
        }
        self.entries.insert(key, (value, now + ttl));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_token_is_one() {
        // header, token
        for (header, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Bearer ", None),
            ("Basic abc", None),
            ("abc", None),
        ] {
            assert_eq!(bearer(header), token, "{header}");
        }
    }

    #[test]
    fn what_is_remembered_is_forgotten_in_time_and_never_more_than_the_bound() {
        let now = Instant::now();
        let mut memory = Memory::default();
        memory.put(0, "a", now, Duration::from_secs(1));
        assert_eq!(memory.get(&0, now), Some("a"));
        assert_eq!(memory.get(&0, now + Duration::from_secs(1)), None);
        for key in 0..3000 {
            memory.put(key, "b", now, Duration::from_secs(60));
            assert!(memory.entries.len() <= REMEMBERED_MAX);
            assert_eq!(memory.get(&key, now), Some("b"));
        }
    }
}
