//! The real kubectl against the server: every command of a working day, each without a warning.
//!
//! The environment variable `KUBECTL` names another kubectl than the one in the path. Where there is none, each test
//! says so and passes.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use kubewire_apiserver::{ApiServer, PrinterColumn, Resource, Verb};
use serde_json::{Value, json};

/// A server on a port, and kubectl with its own kubeconfig, cache and working directory.
struct Cluster {
    runtime: tokio::runtime::Runtime,
    server: ApiServer,
    program: String,
    directory: PathBuf,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.server.shut_down();
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

/// What a command printed.
#[derive(Debug)]
struct Output {
    is_ok: bool,
    stdout: String,
    stderr: String,
}

impl Cluster {
    /// `None`, and a line that says why, where there is no kubectl.
    fn start(test: &str) -> Option<Self> {
        let program = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
        if Command::new(&program).args(["version", "--client"]).output().is_err() {
            println!("SKIPPED: no kubectl");
            return None;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let foos = Resource::custom("example.com", "v1", "Foo", "foos")
            .with_status()
            .with_short_names(["fo"])
            .with_columns([PrinterColumn::new("Size", "integer", ".spec.size")])
            .with_schema(json!({"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer", "description": "How large."}}}}}));
        let builder = ApiServer::builder().port(0).seed(1).custom_resource(foos);
        let server = runtime.block_on(builder.start()).unwrap();
        let directory = std::env::temp_dir().join(format!("kubewire-kubectl-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("kubeconfig"), server.kubeconfig().unwrap()).unwrap();
        Some(Self { runtime, server, program, directory })
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments.split_whitespace())
            .current_dir(&self.directory)
            .env("KUBECONFIG", self.directory.join("kubeconfig"))
            .env("HOME", &self.directory)
            .env("KUBE_EDITOR", "sh edit.sh")
            .env_remove("HTTP_PROXY")
            .env_remove("http_proxy")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs kubectl with these arguments, separated by spaces, and this input.
    fn run_with(&self, arguments: &str, input: &str) -> Output {
        let mut child = self.command(arguments).spawn().unwrap();
        // A kubectl that does not read its input has closed the pipe.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Output { is_ok: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// As [`run_with`](Self::run_with); it must end well and print no warning. Returns what it printed.
    fn ok_with(&self, arguments: &str, input: &str) -> String {
        let output = self.run_with(arguments, input);
        assert!(output.is_ok && output.stderr.is_empty(), "kubectl {arguments}: {output:?}");
        output.stdout
    }

    fn ok(&self, arguments: &str) -> String {
        self.ok_with(arguments, "")
    }

    /// It must fail; returns what it printed as error.
    fn fails_with(&self, arguments: &str, input: &str) -> String {
        let output = self.run_with(arguments, input);
        assert!(!output.is_ok, "kubectl {arguments}: {output:?}");
        output.stderr
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.directory.join(name), text).unwrap();
    }

    /// The words of each line, to compare tables whatever their widths.
    fn table(&self, arguments: &str) -> Vec<Vec<String>> {
        self.ok(arguments).lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    }

    /// Starts kubectl in the background; its lines are read one by one. It ends by itself after a minute.
    fn follow(&self, arguments: &str) -> Following {
        let mut child = self.command(&format!("{arguments} --request-timeout=60s")).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Following { child, lines }
    }

    /// As [`follow`](Self::follow), and returns when the server has seen its watch.
    fn follow_until_it_watches(&self, arguments: &str) -> Following {
        self.server.clear_requests();
        let following = self.follow(arguments);
        // Another process: there is nothing to be woken by.
        let tries = (0..3000).find(|_| {
            std::thread::sleep(Duration::from_millis(10));
            self.server.requests().iter().any(|request| request.verb == Some(Verb::Watch))
        });
        assert!(tries.is_some(), "kubectl {arguments} did not watch");
        following
    }

    fn object(&self, resource: &str, name: &str) -> Value {
        self.server.get(resource, "default", name).unwrap_or_else(|| panic!("no {resource} {name}"))
    }
}

/// A kubectl that goes on until it is dropped.
struct Following {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Following {
    fn words(&mut self) -> Vec<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// Waits for its end; all that it printed since.
    fn rest(&mut self) -> String {
        let mut text = String::new();
        self.lines.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "x:1", "env": [{"name": "A", "value": "1"}]}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
                   "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0, "image": "x:1", "imageID": "",
                                          "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]},
    })
}

fn foo(name: &str, size: usize) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": name, "namespace": "default"},
           "spec": {"size": size}})
}

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: x:1
        env:
        - {name: A, value: '1'}
        - {name: B, value: '2'}
        ports: [{containerPort: 80}]
      - {name: side, image: y:1}
";

#[test]
fn get_shows_objects_as_tables_and_as_documents() {
    let Some(cluster) = Cluster::start("get") else { return };
    for name in ["a", "b"] {
        cluster.server.create("pods", pod(name)).unwrap();
    }
    cluster.server.create("example.com/v1/foos", foo("f", 3)).unwrap();

    let rows = cluster.table("get pods");
    assert_eq!(rows[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(rows[1][..4], ["a", "1/1", "Running", "0"]);
    assert_eq!(rows.len(), 3);
    let rows = cluster.table("get po a -o wide");
    assert_eq!(rows[0][5..7], ["IP", "NODE"]);
    assert_eq!(rows[1][5..7], ["10.0.0.1", "n1"]);
    assert_eq!(cluster.table("get pods -A -l app=b --no-headers")[0][..3], ["default", "b", "1/1"]);
    assert_eq!(cluster.table("get pods --show-labels -L app --no-headers")[0][5..], ["a", "app=a"]);
    assert_eq!(cluster.ok("get pods --field-selector metadata.name=b -o name"), "pod/b\n");
    assert_eq!(cluster.ok("get pods -o jsonpath={.items[*].metadata.name}"), "a b");
    assert_eq!(cluster.ok("get pod a -o go-template={{.kind}}"), "Pod");
    assert_eq!(cluster.ok("get pods --sort-by=.metadata.name -o custom-columns=N:.metadata.name"), "N\na\nb\n");
    assert!(cluster.ok("get pods -o yaml").contains("kind: List"));
    assert_eq!(cluster.ok("get pods --chunk-size=1 -o name"), "pod/a\npod/b\n");

    assert_eq!(cluster.table("get foos")[0], ["NAME", "SIZE"]);
    assert_eq!(cluster.table("get fo f")[1], ["f", "3"]);
    assert_eq!(cluster.ok("get foo.v1.example.com -o name"), "foo.example.com/f\n");
    let all = cluster.ok("get all,foos --no-headers");
    assert!(all.contains("pod/a") && all.contains("foo.example.com/f"), "{all}");
    assert_eq!(cluster.table("get ns default")[1][..2], ["default", "Active"]);

    let error = cluster.fails_with("get pod nope", "");
    assert_eq!(error, "Error from server (NotFound): pods \"nope\" not found\n");
    let error = cluster.fails_with("get nopes", "");
    assert_eq!(error, "error: the server doesn't have a resource type \"nopes\"\n");
    let nothing = cluster.run_with("get secrets", "");
    assert_eq!((nothing.is_ok, nothing.stderr.as_str()), (true, "No resources found in default namespace.\n"));
}

#[test]
fn api_resources_lists_what_is_served_and_explain_its_fields() {
    let Some(cluster) = Cluster::start("api-resources") else { return };
    let rows = cluster.table("api-resources --no-headers");
    let row = |name: &str| rows.iter().find(|row| row[0] == name).cloned().unwrap_or_else(|| panic!("{name}"));
    assert_eq!(row("pods"), ["pods", "po", "v1", "true", "Pod"]);
    assert_eq!(row("nodes"), ["nodes", "no", "v1", "false", "Node"]);
    assert_eq!(row("deployments"), ["deployments", "deploy", "apps/v1", "true", "Deployment"]);
    assert_eq!(row("foos"), ["foos", "fo", "example.com/v1", "true", "Foo"]);
    assert!(cluster.ok("api-versions").contains("example.com/v1"));
    // It warns of the distance between its version and the server's.
    assert!(cluster.run_with("version", "").stdout.contains("Server Version"));

    let explained = cluster.ok("explain pods.spec.containers.image");
    assert!(explained.contains("FIELD: image <string>"), "{explained}");
    let explained = cluster.ok("explain foos.spec");
    assert!(explained.contains("size\t<integer>") && explained.contains("How large."), "{explained}");
}

#[test]
fn describe_tells_an_object_with_its_events() {
    let Some(cluster) = Cluster::start("describe") else { return };
    let created = cluster.server.create("pods", pod("a")).unwrap();
    let event = json!({
        "metadata": {"name": "a.1", "namespace": "default"}, "type": "Normal", "reason": "Pulled", "message": "it is here",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a", "uid": created["metadata"]["uid"]},
        "lastTimestamp": "2026-01-01T00:00:00Z", "source": {"component": "kubelet"},
    });
    cluster.server.create("events", event).unwrap();
    let text = cluster.ok("describe pod a");
    assert!(text.contains("Image:          x:1") && text.contains("it is here"), "{text}");
    assert!(cluster.ok("describe ns default").contains("Active"));
    cluster.ok_with("create -f -", DEPLOYMENT);
    assert!(cluster.ok("describe deployment web").contains("2 desired"));
    let rows = cluster.table("get events --no-headers");
    assert_eq!(rows[0][1..4], ["Normal", "Pulled", "pod/a"]);
    assert!(cluster.ok("events --no-headers").contains("it is here"));
}

#[test]
fn create_validates_strictly_and_says_what_is_wrong() {
    let Some(cluster) = Cluster::start("create") else { return };
    assert_eq!(cluster.ok_with("create -f -", DEPLOYMENT), "deployment.apps/web created\n");
    let error = cluster.fails_with("create -f -", DEPLOYMENT);
    assert!(error.contains("(AlreadyExists)") && error.contains("deployments.apps \"web\" already exists"), "{error}");

    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "stringData": {"k": "v"}},
        foo("c", 1),
    ]});
    let created = cluster.ok_with("create -f -", &list.to_string());
    assert_eq!(created, "configmap/a created\nsecret/b created\nfoo.example.com/c created\n");
    assert_eq!(cluster.ok("create configmap made --from-literal=k=v"), "configmap/made created\n");
    assert_eq!(cluster.ok("create namespace other"), "namespace/other created\n");
    assert_eq!(cluster.ok("create deployment d -n other --image=x"), "deployment.apps/d created\n");
    assert!(cluster.ok("create configmap dry --dry-run=server -o yaml").contains("name: dry"));
    assert!(cluster.server.get("configmaps", "default", "dry").is_none());

    let shown = cluster.ok("get deployment web -o yaml");
    assert_eq!(cluster.ok_with("replace -f -", &shown), "deployment.apps/web replaced\n");
    let stale = cluster.fails_with(
        "replace -f -",
        &shown.replace("x:1", "x:2").replace("resourceVersion: \"", "resourceVersion: \"0"),
    );
    assert!(stale.contains("(Conflict)") || stale.contains("resourceVersion"), "{stale}");

    let error = cluster.fails_with("create -f -", &DEPLOYMENT.replace("replicas", "replicaz").replace("web", "w2"));
    assert!(error.contains("strict decoding error: unknown field \"spec.replicaz\""), "{error}");
    let error =
        cluster.fails_with("create -f -", &DEPLOYMENT.replace("replicas: 2", "replicas: two").replace("web", "w2"));
    assert!(error.contains("spec.replicas"), "{error}");
    let error = cluster.fails_with("create -f -", r#"{"apiVersion": "v1", "kind": "Nope", "metadata": {"name": "x"}}"#);
    assert!(error.contains("no matches for kind \"Nope\""), "{error}");
    let error = cluster
        .fails_with("create -f -", r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not_Valid"}}"#);
    assert!(error.contains("is invalid: metadata.name"), "{error}");
    let error = cluster.fails_with("create -n nowhere configmap x", "");
    assert!(error.contains("namespaces \"nowhere\" not found"), "{error}");
}

#[test]
fn apply_changes_what_changed_and_keeps_what_others_set() {
    let Some(cluster) = Cluster::start("apply") else { return };
    assert_eq!(cluster.ok_with("apply -f -", DEPLOYMENT), "deployment.apps/web created\n");
    assert_eq!(cluster.ok_with("apply -f -", DEPLOYMENT), "deployment.apps/web unchanged\n");
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "C", "value": "3"}]}]}}}});
    cluster.ok(&format!("patch deployment web -p {}", patch.to_string().replace(' ', "")));

    let changed = DEPLOYMENT.replace("x:1", "x:2").replace("        - {name: B, value: '2'}\n", "");
    assert!(cluster.ok_with("diff -f -", DEPLOYMENT).is_empty());
    assert!(cluster.run_with("diff -f -", &changed).stdout.contains("+        image: x:2"));
    assert_eq!(cluster.ok_with("apply -f -", &changed), "deployment.apps/web configured\n");
    let containers = cluster.object("apps/v1/deployments", "web")["spec"]["template"]["spec"]["containers"].clone();
    assert_eq!(containers[0]["image"], "x:2");
    let env: Vec<&str> = containers[0]["env"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert!(env.contains(&"A") && env.contains(&"C") && !env.contains(&"B"), "{env:?}");
    assert_eq!(containers[1]["name"], "side");

    assert_eq!(cluster.ok_with("apply -f -", &foo("c", 1).to_string()), "foo.example.com/c created\n");
    assert_eq!(cluster.ok_with("apply -f -", &foo("c", 2).to_string()), "foo.example.com/c configured\n");
    assert_eq!(cluster.object("example.com/v1/foos", "c")["spec"]["size"], 2);

    let error = cluster.fails_with("apply -f -", &changed.replace("replicas", "replicaz"));
    assert!(error.contains("unknown field \"spec.replicaz\""), "{error}");
    let error = cluster.fails_with("apply --server-side -f -", DEPLOYMENT);
    assert!(error.contains("Apply failed with"), "{error}");
    let forced = cluster.ok_with("apply --server-side --force-conflicts -f -", DEPLOYMENT);
    assert_eq!(forced, "deployment.apps/web serverside-applied\n");
}

#[test]
fn edit_patches_what_the_editor_changed() {
    let Some(cluster) = Cluster::start("edit") else { return };
    cluster.ok_with("create -f -", DEPLOYMENT);
    cluster.file("edit.sh", "sed -i -e 's/image: y:1/image: y:2/' -e 's/replicas: 2/replicas: 5/' \"$1\"\n");
    assert_eq!(cluster.ok("edit deployment web"), "deployment.apps/web edited\n");
    let spec = cluster.object("apps/v1/deployments", "web")["spec"].clone();
    assert_eq!((&spec["replicas"], &spec["template"]["spec"]["containers"][1]["image"]), (&json!(5), &json!("y:2")));
    let unchanged = cluster.run_with("edit deployment web", "");
    assert!(unchanged.is_ok && unchanged.stderr.contains("no changes made"), "{unchanged:?}");

    cluster.ok_with("create -f -", &foo("c", 1).to_string());
    cluster.file("edit.sh", "sed -i 's/size: 1/size: 7/' \"$1\"\n");
    assert_eq!(cluster.ok("edit foo c"), "foo.example.com/c edited\n");
    assert_eq!(cluster.object("example.com/v1/foos", "c")["spec"]["size"], 7);
}

#[test]
fn patch_takes_all_three_types_and_the_status() {
    let Some(cluster) = Cluster::start("patch") else { return };
    cluster.server.create("pods", pod("a")).unwrap();
    let strategic = r#"{"spec":{"containers":[{"name":"main","image":"x:2"}]}}"#;
    assert_eq!(cluster.ok(&format!("patch pod a -p {strategic}")), "pod/a patched\n");
    let merge = r#"{"metadata":{"labels":{"app":null,"tier":"1"}}}"#;
    assert_eq!(cluster.ok(&format!("patch pod a --type=merge -p {merge}")), "pod/a patched\n");
    let json = r#"[{"op":"add","path":"/metadata/annotations","value":{"k":"v"}}]"#;
    assert_eq!(cluster.ok(&format!("patch pod a --type=json -p {json}")), "pod/a patched\n");
    assert_eq!(cluster.ok(&format!("patch pod a --type=json -p {json}")), "pod/a patched (no change)\n");
    let status = r#"{"status":{"phase":"Succeeded"}}"#;
    assert_eq!(cluster.ok(&format!("patch pod a --subresource=status -p {status}")), "pod/a patched\n");
    let pod = cluster.object("pods", "a");
    assert_eq!(pod["spec"]["containers"][0]["image"], "x:2");
    assert_eq!(pod["spec"]["containers"][0]["env"][0]["name"], "A");
    assert_eq!(pod["metadata"]["labels"], json!({"tier": "1"}));
    assert_eq!(pod["metadata"]["annotations"]["k"], "v");
    assert_eq!(pod["status"]["phase"], "Succeeded");

    cluster.server.create("example.com/v1/foos", foo("f", 3)).unwrap();
    let error = cluster.fails_with(r#"patch foo f -p {"spec":{"size":4}}"#, "");
    assert!(error.contains("strategic-merge-patch+json is not supported by example.com/v1, Kind=Foo"), "{error}");
    assert_eq!(cluster.ok(r#"patch foo f --type=merge -p {"spec":{"size":4}}"#), "foo.example.com/f patched\n");

    let error = cluster.fails_with(r#"patch pod a --type=json -p [{"op":"remove","path":"/spec/nope"}]"#, "");
    assert!(error.contains("/spec/nope"), "{error}");
    assert_eq!(cluster.ok("label pod a color=red"), "pod/a labeled\n");
    assert!(cluster.ok("annotate pod a note=x").starts_with("pod/a annotate"));
    assert_eq!(cluster.ok("label pod a color-"), "pod/a unlabeled\n");
    cluster.ok_with("create -f -", DEPLOYMENT);
    assert_eq!(cluster.ok("set image deployment/web side=y:3"), "deployment.apps/web image updated\n");
    assert_eq!(cluster.ok("set env deployment/web -c main A-"), "deployment.apps/web env updated\n");
    let containers = cluster.object("apps/v1/deployments", "web")["spec"]["template"]["spec"]["containers"].clone();
    assert_eq!((&containers[1]["image"], &containers[0]["env"][0]["name"]), (&json!("y:3"), &json!("B")));
}

#[test]
fn delete_removes_one_some_and_all() {
    let Some(cluster) = Cluster::start("delete") else { return };
    for name in ["a", "b", "c", "d"] {
        cluster.server.create("pods", pod(name)).unwrap();
    }
    let deleted = cluster.ok("delete pod a --grace-period=1");
    assert!(deleted.starts_with("pod \"a\" deleted"), "{deleted}");
    let output = cluster.run_with("delete pod b --force --grace-period=0", "");
    assert!(output.is_ok && output.stdout.contains("force deleted"), "{output:?}");
    cluster.ok("delete pods -l app=c --now");
    assert_eq!(cluster.ok("get pods -o name"), "pod/d\n");
    cluster.ok("delete pods --all --now");
    cluster.ok_with("create -f -", DEPLOYMENT);
    cluster.ok_with("delete -f -", DEPLOYMENT);
    assert_eq!((cluster.server.count("pods"), cluster.server.count("apps/v1/deployments")), (0, 0));
    assert!(cluster.fails_with("delete pod a", "").contains("(NotFound)"));
    assert!(cluster.ok("delete pod a --ignore-not-found").is_empty());

    cluster.ok("create configmap held --from-literal=k=v");
    cluster.ok(r#"patch configmap held -p {"metadata":{"finalizers":["example.com/hold"]}}"#);
    cluster.ok("delete configmap held --wait=false");
    assert!(cluster.object("configmaps", "held")["metadata"]["deletionTimestamp"].is_string());
    cluster.ok(r#"patch configmap held -p {"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/hold"]}}"#);
    assert!(cluster.server.get("configmaps", "default", "held").is_none());
}

#[test]
fn get_follows_changes_and_wait_sees_them() {
    let Some(cluster) = Cluster::start("watch") else { return };
    cluster.server.create("pods", pod("a")).unwrap();
    let mut lines = cluster.follow("get pods -w");
    assert_eq!(lines.words()[0], "NAME");
    assert_eq!(lines.words()[..3], ["a", "1/1", "Running"]);
    cluster
        .server
        .modify("pods", "default", "a", |pod| pod["status"]["containerStatuses"][0]["ready"] = false.into())
        .unwrap();
    assert_eq!(lines.words()[..3], ["a", "0/1", "Running"]);
    cluster.server.create("pods", pod("b")).unwrap();
    assert_eq!(lines.words()[..3], ["b", "1/1", "Running"]);
    drop(lines);

    let mut lines = cluster.follow("get pods -w --output-watch-events -o wide --field-selector=metadata.name=b");
    assert_eq!(lines.words()[..2], ["EVENT", "NAME"]);
    assert_eq!(lines.words()[..2], ["ADDED", "b"]);
    cluster.server.delete("pods", "default", "b").unwrap();
    assert_eq!(lines.words()[..2], ["DELETED", "b"]);
    drop(lines);

    let mut waiting = cluster.follow_until_it_watches("wait pod/a --for=condition=Ready --timeout=30s");
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    cluster.server.modify("pods", "default", "a", |pod| pod["status"]["conditions"] = conditions.clone()).unwrap();
    assert_eq!(waiting.rest(), "pod/a condition met\n");
    let mut waiting = cluster.follow_until_it_watches("wait pod/a --for=delete --timeout=30s");
    cluster.server.delete("pods", "default", "a").unwrap();
    assert_eq!(waiting.rest(), "pod/a condition met\n");
}

#[test]
fn auth_tells_what_a_user_may_do_and_a_server_that_is_down_is_told_apart() {
    let Some(cluster) = Cluster::start("auth") else { return };
    assert_eq!(cluster.ok("auth can-i list pods"), "yes\n");
    assert_eq!(cluster.ok("cluster-info").lines().next().map(|line| line.contains("is running at")), Some(true));
    cluster.runtime.block_on(cluster.server.go_down());
    let error = cluster.fails_with("get pods", "");
    assert!(error.contains("was refused"), "{error}");
}
