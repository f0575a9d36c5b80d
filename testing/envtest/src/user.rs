//! Those who may use the API server.

use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};

use crate::EnvError;

/// A user that an API server knows by a client certificate. What it may do, roles and their bindings say; one of the group
/// `system:masters` may do everything.
#[derive(Clone, Debug)]
pub struct User {
    name: String,
    kubeconfig: String,
    config: Config,
}

impl User {
    pub(crate) async fn new(name: &str, kubeconfig: String) -> Result<Self, EnvError> {
        let parsed = Kubeconfig::from_yaml(&kubeconfig)?;
        let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await?;
        Ok(Self { name: name.to_owned(), kubeconfig, config })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How a client reaches the API server as this user.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A new client. It lives on the runtime on which it is made: tests that share an environment make one each.
    ///
    /// # Errors
    /// There is no TLS.
    pub fn client(&self) -> Result<Client, EnvError> {
        Ok(Client::try_from(self.config.clone())?)
    }

    /// The kubeconfig, as a file holds it, with the certificates in it.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }
}
