//! Who the informers are to the server, and what they may do.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use http::Method;
use kube_client::config::AuthInfo;
use kube_client::{Client, Config};
use kubewire_listwatch::client_from_config;
use serde_json::{Value, json};

use crate::requests::{post, send};
use crate::servers::Servers;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const NAME: &str = "follower";

/// A service account that may list and watch pods, and its token in a file.
pub(crate) struct Rights {
    admin: Client,
    token_file: PathBuf,
    config: Config,
}

impl Rights {
    pub(crate) async fn new(servers: &Servers, admin: Client) -> anyhow::Result<Self> {
        let token_file = servers.file("token");
        let mut config = servers.config().await?;
        config.auth_info = AuthInfo { token_file: Some(token_file.display().to_string()), ..AuthInfo::default() };
        let this = Self { admin, token_file, config };
        let role = json!({
            "metadata": { "name": NAME },
            "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"] }],
        });
        let _: Value = post(&this.admin, "/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await?;
        this.give().await?;
        let _: Value = post(&this.admin, ACCOUNTS, &json!({ "metadata": { "name": NAME } })).await?;
        this.write_token().await?;
        this.until_answered(200).await?;
        Ok(this)
    }

    /// A client for the service account, with connections of its own.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(client_from_config(self.config.clone())?)
    }

    /// Takes the right to list and watch pods; open watches go on.
    pub(crate) async fn take(&self) -> anyhow::Result<()> {
        let _: Value = send(&self.admin, Method::DELETE, &format!("{BINDINGS}/{NAME}"), None).await?;
        self.until_answered(403).await
    }

    /// Gives it back.
    pub(crate) async fn give(&self) -> anyhow::Result<()> {
        let binding = json!({
            "metadata": { "name": NAME },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME },
            "subjects": [{ "kind": "ServiceAccount", "namespace": "default", "name": NAME }],
        });
        let _: Value = post(&self.admin, BINDINGS, &binding).await?;
        Ok(())
    }

    /// Puts another service account of the same name in place of this one: its tokens hold no more.
    pub(crate) async fn revoke_token(&self) -> anyhow::Result<()> {
        let _: Value = send(&self.admin, Method::DELETE, &format!("{ACCOUNTS}/{NAME}"), None).await?;
        let _: Value = post(&self.admin, ACCOUNTS, &json!({ "metadata": { "name": NAME } })).await?;
        self.until_answered(401).await
    }

    /// A new token in the file, in one step.
    pub(crate) async fn write_token(&self) -> anyhow::Result<()> {
        let answer: Value = post(&self.admin, &format!("{ACCOUNTS}/{NAME}/token"), &json!({ "spec": {} })).await?;
        let token = answer["status"]["token"].as_str().context("the server gave no token")?;
        let next = self.token_file.with_extension("next");
        std::fs::write(&next, token)?;
        std::fs::rename(next, &self.token_file)?;
        Ok(())
    }

    /// Until a request with what is in the token file is answered so: the server keeps what it knows of a token for
    /// ten seconds, and learns of rights by a watch of its own.
    async fn until_answered(&self, wanted: u16) -> anyhow::Result<()> {
        let mut last = String::new();
        for _ in 0..300 {
            let client = self.client()?;
            let answer: Result<Value, _> = send(&client, Method::GET, "/api/v1/pods?limit=1", None).await;
            match answer {
                Ok(_) if wanted == 200 => return Ok(()),
                Err(failure) if failure.code() == Some(wanted) => return Ok(()),
                Ok(_) => "200".clone_into(&mut last),
                Err(failure) => last = failure.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        anyhow::bail!("the server does not come to answer {wanted}, but: {last}")
    }
}
