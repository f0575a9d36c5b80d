//! The files that a TLS connection is made from, and whether they have changed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use kube_client::Config;

/// The CA bundle, the client's certificate and its key, as far as a config names files.
///
/// kube-client reads certificate and key once, and the bundle once a minute.
pub(crate) struct TlsFiles {
    paths: Vec<PathBuf>,
}

impl TlsFiles {
    pub(crate) fn of(config: &Config) -> Self {
        let auth = &config.auth_info;
        let own = [&auth.client_certificate, &auth.client_key].into_iter().flatten().map(PathBuf::from);
        Self { paths: config.root_cert_file.iter().cloned().chain(own).collect() }
    }

    pub(crate) fn are_none(&self) -> bool {
        self.paths.is_empty()
    }

    /// A number that is another one when the contents are others; `None` where a file cannot be read, as happens while
    /// it is replaced. Blocks; certificates are small.
    pub(crate) fn fingerprint(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        for path in &self.paths {
            std::fs::read(path).ok()?.hash(&mut hasher);
        }
        Some(hasher.finish())
    }
}
