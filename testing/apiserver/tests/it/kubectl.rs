//! kubectl against the port. Skipped, with the reason printed, where there is no kubectl.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use kubewire_apiserver::{ApiServer, Resource};

/// A folder of its own, removed at the end.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Kubectl {
    folder: Folder,
}

impl Kubectl {
    fn new(server: &ApiServer) -> Self {
        let port = server.address().unwrap().port();
        let folder = Folder(std::env::temp_dir().join(format!("kubewire-kubectl-{}-{port}", std::process::id())));
        std::fs::create_dir_all(&folder.0).unwrap();
        std::fs::write(folder.0.join("config"), server.kubeconfig().unwrap()).unwrap();
        Self { folder }
    }

    fn command(&self, arguments: &str) -> Command {
        let path: &Path = &self.folder.0;
        let mut command = Command::new("kubectl");
        command.args(arguments.split(' ')).env("KUBECONFIG", path.join("config")).env("HOME", path);
        command.current_dir(path).stdin(Stdio::null());
        command
    }

    fn output(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What it prints; it must not fail.
    fn run(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments}: {out}{error}");
        out.into_owned()
    }

    /// What it says when it fails.
    fn fail(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "kubectl {arguments} should fail");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn pipe(&self, arguments: &str, input: &str) -> Output {
        let piped =
            |command: &mut Command| command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = piped(&mut self.command(arguments)).unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }
}

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: app, image: 'nginx:1.27'}]}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 2
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: a, image: 'a:1'}, {name: b, image: 'b:1'}]}
";

const FOO: &str = "
apiVersion: example.com/v1
kind: Foo
metadata: {name: f}
spec: {any: [thing, {goes: 1}]}
";

#[test]
fn kubectl_creates_gets_describes_applies_edits_patches_watches_and_deletes() {
    if let Err(error) = Command::new("kubectl").arg("--help").stdout(Stdio::null()).status() {
        println!("SKIPPED: kubectl cannot be run ({error})");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let foos = Resource::custom("example.com", "v1", "Foo", "foos").with_status().with_short_names(["fo"]);
    let server = runtime.block_on(ApiServer::builder().port(0).custom_resource(foos).start()).unwrap();
    let kubectl = Kubectl::new(&server);

    // A watch from the start to the end of the test.
    let watch = kubectl.command("get pods -w --output-watch-events").stdout(Stdio::piped()).spawn().unwrap();
    while !server.requests().iter().any(|request| request.query.get("watch").is_some()) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }

    let bad = kubectl.pipe("create -f -", &POD.replace("image", "imagge"));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("unknown field \"spec.containers[0].imagge\""), "{bad:?}");
    assert!(kubectl.pipe("create -f -", POD).status.success());
    let again = kubectl.pipe("create -f -", POD);
    assert!(String::from_utf8_lossy(&again.stderr).contains("AlreadyExists"), "{again:?}");
    assert!(kubectl.run("get pods -l app=web").contains("web    0/1     Pending"));
    assert!(kubectl.run("get po web -o yaml").contains("image: nginx:1.27"));
    assert!(kubectl.run("describe pod web").contains("Image:        nginx:1.27"));
    assert!(kubectl.fail("get pods nope").contains("pods \"nope\" not found"));

    for (image, replicas) in [("a:1", "2"), ("a:2", "3")] {
        let text = DEPLOYMENT.replace("a:1", image).replace("replicas: 2", &format!("replicas: {replicas}"));
        let applied = kubectl.pipe("apply -f -", &text);
        assert!(applied.status.success(), "{applied:?}");
        let shown = kubectl.run("get deploy d -o jsonpath={.spec.replicas},{.spec.template.spec.containers[*].image}");
        assert_eq!(shown, format!("{replicas},{image} b:1"));
    }
    let mut edit = kubectl.command("edit deploy d");
    assert!(edit.env("KUBE_EDITOR", "sed -i s/b:1/b:2/").output().unwrap().status.success());
    kubectl.run(
        "patch deploy d -p {\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"a:3\"}]}}}}",
    );
    kubectl.run("patch deploy d --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":5}]");
    kubectl.run("patch deploy d --subresource=status --type=merge -p {\"status\":{\"replicas\":1}}");
    let shown = kubectl
        .run("get deploy d -o jsonpath={.spec.replicas},{.spec.template.spec.containers[*].image},{.status.replicas}");
    assert_eq!(shown, "5,a:3 b:2,1");
    let applied = kubectl.pipe("apply --server-side -f -", DEPLOYMENT);
    assert!(String::from_utf8_lossy(&applied.stderr).contains("server-side apply is not supported"), "{applied:?}");

    let applied = kubectl.pipe("apply -f -", FOO);
    assert!(applied.status.success(), "{applied:?}");
    let applied = kubectl.pipe("apply -f -", &FOO.replace("goes: 1", "goes: 2"));
    assert!(String::from_utf8_lossy(&applied.stdout).contains("configured"), "{applied:?}");
    assert!(kubectl.run("get fo").contains("f      "));

    kubectl.run("label pod web x=y");
    assert_eq!(kubectl.run("delete pod web --wait=true"), "pod \"web\" deleted\n");
    assert_eq!(kubectl.run("delete deploy d"), "deployment.apps \"d\" deleted\n");
    assert!(kubectl.run("get pods,deploy").is_empty());

    runtime.block_on(async {
        server.shut_down();
        drop(server);
    });
    let told = watch.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout);
    let kinds: Vec<&str> = told.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["ADDED", "MODIFIED", "DELETED"], "{told}");
}
