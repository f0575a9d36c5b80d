//! Names of candidates.

/// A name that no other process has: the host's, an underscore and a random UUID; as controller-runtime's.
pub fn unique_identity() -> String {
    let host = hostname::get().ok().and_then(|host| host.into_string().ok()).unwrap_or_default();
    format!("{host}_{}", uuid::Uuid::new_v4())
}
