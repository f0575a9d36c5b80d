//! Starts a real etcd and kube-apiserver for tests, as controller-runtime's envtest.
//!
//! Use it for what only the real server does: admission, validation by schemas, conversion, roles, garbage in its own
//! words. For all else `kubewire-apiserver` is faster: it runs in the process, knows virtual time and makes faults.
//!
//! ```no_run
//! use kubewire_envtest::{Manifests, TestEnv};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnv::start().await?;
//! env.install(&Manifests::from_path("config/crd")?).await?;
//! let client = env.client()?;                                    // may do everything
//! let alice = env.user("alice", &["developers"]).await?;         // may do nothing yet
//! println!("kubectl --kubeconfig {}", env.kubeconfig().unwrap().display());
//! # let _ = (client, alice);
//! env.stop().await?;                                             // or just drop it
//! # Ok(())
//! # }
//! ```
//!
//! # In the order in which they are met
//! - [`TestEnv`] and its [`builder`](TestEnv::builder), [`Flags`] for both programs;
//! - [`User`]: client configuration and kubeconfig, by client certificates of the [`Authority`];
//! - [`Manifests`]: definitions and webhook configurations from files, texts and values;
//! - [`LocalWebhooks`]: port and certificate for a webhook server of the tests, see `kubewire-webhook`;
//! - [`Component`]: to kill, revive, pause and resume a program; [`EnvError`], [`InstallError`], [`ManifestError`].
//!
//! # Where the programs come from
//! As controller-runtime's envtest: `TEST_ASSET_ETCD` and `TEST_ASSET_KUBE_APISERVER`, then the directory
//! `KUBEBUILDER_ASSETS` (`setup-envtest use -p path` prints one), then [`TestEnvBuilder::assets`], then
//! `/usr/local/kubebuilder/bin`. Within this repository, last: what `testing/realcluster/build.sh` built, or builds now where
//! Go is there. `USE_EXISTING_CLUSTER=true` starts nothing.
//!
//! # What ends when
//! Both programs run in process groups of their own. Dropping the [`TestEnv`], by a panic too, kills them at once and removes
//! their directory: the data are nobody's. When the test process is killed, aborts, or exits with the environment in a static,
//! a shell that waits for that does it. Parallel test binaries never choose the same port.
//!
//! # Costs and caveats
//! A start takes some seconds, and a hundred megabytes of memory or three: share an environment within a test binary, in
//! a static if need be, and give each test a namespace. A [`Client`](kube_client::Client) belongs to the runtime that made
//! it, so each test makes its own.
//!
//! There is no controller manager, no scheduler and no kubelet: nothing is collected, deleted namespaces stay terminating,
//! deployments make no pods, and what is owned by a deleted object stays. Unix only.
#![forbid(unsafe_code)]

mod assets;
mod authority;
mod builder;
mod component;
mod control_plane;
mod env_error;
mod flags;
mod install;
mod kubeconfig;
mod local_webhooks;
mod manifests;
mod port;
mod process;
mod tail;
mod test_env;
mod timeouts;
mod user;
mod watchdog;

pub use authority::{Authority, Certificate};
pub use builder::TestEnvBuilder;
pub use component::Component;
pub use env_error::EnvError;
pub use flags::Flags;
pub use install::InstallError;
pub use local_webhooks::LocalWebhooks;
pub use manifests::{ManifestError, Manifests};
pub use test_env::TestEnv;
pub use user::User;
