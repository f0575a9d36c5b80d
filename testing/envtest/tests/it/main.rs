//! Against the real programs. Run by `testing/envtest/check.sh`, which finds them or builds them.

use std::path::Path;
use std::time::Duration;

use http::Request;
use kube_client::Client;
use kubewire_envtest::{Component, EnvError, Flags, InstallError, Manifests, TestEnv};
use serde_json::{Value, json};

/// What an API server answers, or the code of its refusal.
async fn get(client: &Client, path: &str) -> Result<Value, u16> {
    match client.request(Request::get(path).body(Vec::new()).unwrap()).await {
        Ok(value) => Ok(value),
        Err(kube_client::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

async fn create(client: &Client, path: &str, object: &Value) -> Result<Value, u16> {
    let body = serde_json::to_vec(object).unwrap();
    let request = Request::post(path).header("content-type", "application/json").body(body).unwrap();
    match client.request(request).await {
        Ok(value) => Ok(value),
        Err(kube_client::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

/// A process that runs; one that is dead and not yet buried does not.
fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn pids(env: &TestEnv) -> [u32; 2] {
    [Component::Etcd, Component::KubeApiserver].map(|component| env.pid(component).unwrap())
}

/// Definitions in one text; the first of the two `widgets` is replaced by the second.
const DEFINITIONS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: { name: not-installed }
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: gadgets.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: gadgets, singular: gadget, kind: Gadget }
  versions:
  - { name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } } }
  - { name: v0, served: false, storage: false, schema: { openAPIV3Schema: { type: object } } }
";

#[tokio::test]
#[ignore = "needs kube-apiserver and etcd: run testing/envtest/check.sh"]
async fn a_control_plane_serves_users_by_their_groups_installs_definitions_and_leaves_nothing() {
    let env = TestEnv::start().await.unwrap();
    let (directory, pids) = (env.directory().unwrap().to_owned(), pids(&env));
    let client = env.client().unwrap();
    assert_eq!(get(&client, "/api/v1/namespaces/default").await.unwrap()["metadata"]["name"], "default");

    // Users are who they say, and may do what is bound to them or to one of their groups.
    let alice = env.user("alice", &["developers", "testers", "readers"]).await.unwrap();
    let as_alice = alice.client().unwrap();
    assert_eq!(get(&as_alice, "/api/v1/pods").await.unwrap_err(), 403);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let review = create(&as_alice, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await.unwrap();
    let info = &review["status"]["userInfo"];
    assert_eq!(info["username"], "alice");
    assert_eq!(info["groups"], json!(["developers", "testers", "readers", "system:authenticated"]));
    // Without a controller manager the roles `view`, `edit` and `admin` are empty: they are put together by it.
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "pod-reader"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
    });
    create(&client, "/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.unwrap();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pod-reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}],
    });
    create(&client, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.unwrap();
    while get(&as_alice, "/api/v1/pods").await.is_err() {
        // The authorizer hears of the binding by a watch.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(std::fs::read_to_string(env.kubeconfig().unwrap()).unwrap().contains("client-certificate-data"));

    // Definitions are there when `install` returns, again when they change, and gone when they are removed.
    let definitions = Manifests::from_text(DEFINITIONS).unwrap();
    env.install(&definitions).await.unwrap();
    assert_eq!(get(&client, "/apis/example.com/v1/gadgets").await.unwrap()["kind"], "GadgetList");
    let changed =
        Manifests::from_text(&DEFINITIONS.replace("name: v0, served: false", "name: v0, served: true")).unwrap();
    env.install(&changed).await.unwrap();
    assert_eq!(get(&client, "/apis/example.com/v0/gadgets").await.unwrap()["kind"], "GadgetList");
    let none = Manifests::from_text("kind: Pod\nmetadata: { name: a }").unwrap();
    assert!(matches!(env.install(&none).await, Err(InstallError::Nothing)));
    let wrong = Manifests::from_text(&DEFINITIONS.replace("name: gadgets.example.com", "name: wrong")).unwrap();
    assert!(matches!(env.install(&wrong).await, Err(InstallError::Api { name, .. }) if name == "wrong"));
    env.uninstall(&changed).await.unwrap();
    env.uninstall(&changed).await.unwrap();

    assert!(pids.into_iter().all(is_alive) && directory.exists());
    env.stop().await.unwrap();
    assert!(!pids.into_iter().any(is_alive) && !directory.exists());
}

#[tokio::test]
#[ignore = "needs kube-apiserver and etcd: run testing/envtest/check.sh"]
async fn an_api_server_that_is_killed_or_paused_comes_back_with_its_data_and_a_panic_leaves_nothing() {
    let mut env = TestEnv::start().await.unwrap();
    let client = env.client().unwrap();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}});
    create(&client, "/api/v1/namespaces/default/configmaps", &map).await.unwrap();
    let [etcd, before] = pids(&env);
    env.kill(Component::KubeApiserver).unwrap();
    assert!(!is_alive(before) && is_alive(etcd));
    assert!(env.pid(Component::KubeApiserver).is_none());
    env.revive(Component::KubeApiserver).await.unwrap();
    assert_ne!(env.pid(Component::KubeApiserver), Some(before));
    // At the same address, for the same client.
    assert_eq!(get(&client, "/api/v1/namespaces/default/configmaps/kept").await.unwrap()["metadata"]["name"], "kept");
    env.kill(Component::Etcd).unwrap();
    env.revive(Component::Etcd).await.unwrap();
    env.revive(Component::KubeApiserver).await.unwrap();
    get(&env.client().unwrap(), "/api/v1/namespaces/default/configmaps/kept").await.unwrap();

    env.pause(Component::KubeApiserver).unwrap();
    let request = tokio::spawn({
        let client = env.client().unwrap();
        async move { get(&client, "/api/v1/namespaces/default").await }
    });
    env.resume(Component::KubeApiserver).unwrap();
    request.await.unwrap().unwrap();

    // Paused, so that it could not end by itself.
    env.pause(Component::KubeApiserver).unwrap();
    let (directory, pids) = (env.directory().unwrap().to_owned(), pids(&env));
    let panicked = tokio::spawn(async move {
        let _env = env;
        panic!("as a test that fails");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert!(!pids.into_iter().any(is_alive) && !directory.exists());
}

#[tokio::test]
#[ignore = "needs kube-apiserver and etcd: run testing/envtest/check.sh"]
async fn a_flag_that_the_api_server_does_not_know_is_an_error_with_its_last_words_and_leaves_nothing() {
    let flags = Flags::new().set("no-such-flag", "1");
    let error = TestEnv::builder().api_server_flags(flags).start().await.err().unwrap();
    assert!(matches!(error, EnvError::Exited { component: Component::KubeApiserver, .. }));
    assert!(error.to_string().contains("unknown flag: --no-such-flag"), "{error}");
}

#[tokio::test]
#[ignore = "needs kube-apiserver and etcd: run testing/envtest/check.sh"]
async fn two_control_planes_at_once_do_not_meet() {
    let flags = Flags::new().append("disable-admission-plugins", "NamespaceLifecycle");
    let (one, two) = tokio::join!(TestEnv::builder().api_server_flags(flags).start(), TestEnv::start());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.config().cluster_url, two.config().cluster_url);
    // A flag that was appended is minded: nobody asks for the namespace.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    create(&one.client().unwrap(), "/api/v1/namespaces/nowhere/configmaps", &map).await.unwrap();
    assert_eq!(create(&two.client().unwrap(), "/api/v1/namespaces/nowhere/configmaps", &map).await.unwrap_err(), 404);
    create(&two.client().unwrap(), "/api/v1/namespaces/default/configmaps", &map).await.unwrap();
    assert_eq!(get(&one.client().unwrap(), "/api/v1/namespaces/default/configmaps/a").await.unwrap_err(), 404);
    // The certificate of one is nothing to the other.
    let mut foreign = two.config().clone();
    foreign.auth_info = one.config().auth_info.clone();
    assert_eq!(get(&Client::try_from(foreign).unwrap(), "/api/v1/pods").await.unwrap_err(), 401);
}

/// The victim of the next test: it starts a control plane, says where, and waits to be killed.
#[tokio::test]
#[ignore = "needs kube-apiserver and etcd: run testing/envtest/check.sh"]
async fn victim() {
    let Some(file) = std::env::var_os("KUBEWIRE_ENVTEST_VICTIM") else { return };
    let env = TestEnv::start().await.unwrap();
    let [etcd, api_server] = pids(&env);
    let (new, text) =
        (Path::new(&file).with_extension("new"), format!("{etcd} {api_server} {}", env.directory().unwrap().display()));
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, file).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
#[ignore = "needs kube-apiserver and etcd: run testing/envtest/check.sh"]
async fn a_test_process_that_is_killed_leaves_neither_programs_nor_directory() {
    let folder = std::env::temp_dir().join(format!("kubewire-envtest-victim-{}", std::process::id()));
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "victim"])
        .env("KUBEWIRE_ENVTEST_VICTIM", &folder)
        .spawn()
        .unwrap();
    let text = loop {
        if let Ok(text) = std::fs::read_to_string(&folder) {
            break text;
        }
        assert!(victim.try_wait().unwrap().is_none(), "it ended before it was killed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    std::fs::remove_file(&folder).unwrap();
    let mut words = text.split(' ');
    let pids = [words.next().unwrap(), words.next().unwrap()].map(|pid| pid.parse::<u32>().unwrap());
    let directory = Path::new(words.next().unwrap());
    assert!(pids.into_iter().all(is_alive) && directory.exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    for _ in 0..600 {
        if !pids.into_iter().any(is_alive) && !directory.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{text} is left");
}
