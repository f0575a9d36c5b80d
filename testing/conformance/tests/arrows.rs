//! The arrows between the crates, and what every member has in common, read from `cargo metadata`,
//! `cargo tree` and the files themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// Which of our crates each of our crates may depend on. Tests may also use the crates of `testing`.
const ARROWS: &[(&str, &[&str])] = &[
    ("kubewire-ratelimit", &[]),
    ("kubewire-workqueue", &["kubewire-ratelimit"]),
    ("kubewire-indexer", &["kubewire-indexer-derive"]),
    ("kubewire-indexer-derive", &[]),
    ("kubewire-listwatch", &["kubewire-indexer", "kubewire-ratelimit"]),
    ("kubewire-informer", &["kubewire-indexer", "kubewire-listwatch", "kubewire-ratelimit"]),
    (
        "kubewire-controller",
        &[
            "kubewire-certificate",
            "kubewire-events",
            "kubewire-http-server",
            "kubewire-indexer",
            "kubewire-informer",
            "kubewire-leaderelection",
            "kubewire-listwatch",
            "kubewire-prometheus",
            "kubewire-ratelimit",
            "kubewire-workqueue",
        ],
    ),
    ("kubewire-prometheus", &["kubewire-informer", "kubewire-workqueue"]),
    ("kubewire-certificate", &[]),
    ("kubewire-http-server", &["kubewire-certificate"]),
    ("kubewire-webhook", &["kubewire-certificate", "kubewire-controller", "kubewire-http-server"]),
    ("kubewire-envtest", &[]),
    ("kubewire-leaderelection", &["kubewire-ratelimit"]),
    ("kubewire-events", &["kubewire-ratelimit"]),
    ("kubewire-apiserver", &["kubewire-indexer"]),
    ("kubewire-conformance", &[]),
    ("kubewire-mutants", &[]),
    ("kubewire-properties", &["kubewire-indexer", "kubewire-informer", "kubewire-listwatch"]),
    // What is built from the blocks, and depended on by nobody.
    ("kubewire-examples", ANY),
    ("kubewire-realcluster", ANY),
    ("kubewire-benches", ANY),
];

/// Stands for all of our crates.
const ANY: &[&str] = &["any"];

/// Those that may speak to an API server: of the five blocks, only listwatch.
const WITHOUT_HTTP: &[&str] =
    &["kubewire-ratelimit", "kubewire-workqueue", "kubewire-indexer", "kubewire-indexer-derive", "kubewire-informer"];

/// A member, as `cargo metadata` shows it.
#[derive(Deserialize)]
struct Package {
    name: String,
    edition: String,
    rust_version: Option<String>,
    license: Option<String>,
    description: Option<String>,
    repository: Option<String>,
    keywords: Vec<String>,
    readme: Option<String>,
    /// `Some` of nothing where it is never published.
    publish: Option<Vec<String>>,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Absent for an ordinary one, else `dev` or `build`.
    kind: Option<String>,
    optional: bool,
}

impl Package {
    fn folder(&self) -> &Path {
        self.manifest_path.parent().expect("a manifest lies in a folder")
    }

    /// Whether it lies in this folder of the workspace.
    fn is_in(&self, folder: &str) -> bool {
        self.folder().parent().is_some_and(|parent| parent.ends_with(folder))
    }

    /// What it depends on outside of its tests.
    fn depends_on(&self) -> impl Iterator<Item = &Dependency> {
        self.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"))
    }
}

fn cargo(args: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(args).arg("--offline").current_dir(root).output().expect("cargo starts");
    assert!(output.status.success(), "cargo {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

fn members() -> Vec<Package> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    serde_json::from_str::<Metadata>(&text).expect("the format of version 1").packages
}

fn is_ours(name: &str) -> bool {
    name.starts_with("kubewire-")
}

/// Whether a crate is made for Kubernetes or for HTTP.
fn knows_kubernetes_or_http(name: &str) -> bool {
    const FAMILIES: &[&str] = &["kube", "k8s", "http", "hyper", "tower", "h2", "h3", "reqwest", "axum", "tonic"];
    !is_ours(name) && FAMILIES.iter().any(|family| name == *family || name.starts_with(&format!("{family}-")))
}

/// Everything that a package pulls in when it is built alone.
fn tree(package: &str, features: &[&str]) -> BTreeSet<String> {
    let args = ["tree", "-p", package, "-e", "normal,build", "--prefix", "none", "--format", "{p}"];
    let text = cargo(&[&args, features].concat());
    let names: BTreeSet<String> = text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert!(names.contains(package), "{package} is not in its own tree: {text}");
    names
}

#[test]
fn every_arrow_between_our_crates_is_one_of_the_design() {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let members = members();
    for package in &members {
        let allowed = arrows.get(package.name.as_str());
        let allowed = allowed.unwrap_or_else(|| panic!("{}: say in ARROWS where it stands", package.name));
        for dependency in package.depends_on().filter(|dependency| is_ours(&dependency.name)) {
            let fits = *allowed == ANY || allowed.contains(&dependency.name.as_str());
            assert!(fits, "{} must not depend on {}", package.name, dependency.name);
        }
    }
    for (name, _) in ARROWS {
        assert!(members.iter().any(|package| package.name == *name), "{name} is no member any more");
    }
}

#[test]
fn nothing_ties_informer_and_workqueue_not_even_a_test() {
    for (from, to) in [("kubewire-informer", "kubewire-workqueue"), ("kubewire-workqueue", "kubewire-informer")] {
        let members = members();
        let package = members.iter().find(|package| package.name == from).expect("a member");
        assert!(package.dependencies.iter().all(|dependency| dependency.name != to), "{from} depends on {to}");
    }
}

#[test]
fn the_blocks_pull_in_nothing_of_kubernetes_or_http_but_by_listwatch() {
    // package | features
    let alone: &[(&str, &[&str])] = &[
        ("kubewire-ratelimit", &[]),
        ("kubewire-workqueue", &[]),
        ("kubewire-indexer", &[]),
        ("kubewire-indexer-derive", &[]),
        ("kubewire-informer", &[]),
        ("kubewire-listwatch", &["--no-default-features"]),
    ];
    for (package, features) in alone {
        let tree = tree(package, features);
        let strangers: Vec<&String> = tree.iter().filter(|name| knows_kubernetes_or_http(name)).collect();
        assert!(strangers.is_empty(), "{package} {features:?} pulls in {strangers:?}");
    }
    assert!(tree("kubewire-listwatch", &[]).contains("kube-client"), "this test looks for the wrong names");
}

/// How many packages are built for who uses a block alone, on Linux, itself counted. A number is changed on purpose only:
/// who makes it larger says in the change why all users are to build that.
///
/// package | features | packages
const BUILT_WITH: &[(&str, &[&str], usize)] = &[
    ("kubewire-ratelimit", &[], 29),
    ("kubewire-workqueue", &[], 31),
    ("kubewire-indexer", &[], 24),
    ("kubewire-indexer", &["--features", "derive,kube"], 49),
    ("kubewire-listwatch", &["--no-default-features"], 42),
    ("kubewire-listwatch", &[], 130),
    ("kubewire-informer", &[], 47),
];

/// What nobody may have to build who does without the controller layer. Hyper comes with `listwatch`'s client.
const OF_THE_CONTROLLER_LAYER: &[&str] = &["axum", "prometheus", "prometheus-client", "rustls", "openssl", "uuid"];

/// As `cargo tree` has it: features and all are those of a build of that package alone, which `cargo metadata` mixes with
/// those of all other members.
#[test]
fn who_uses_a_block_alone_builds_so_many_packages_and_nothing_of_the_controller_layer() {
    let members = members();
    let runtime: Vec<&str> =
        members.iter().filter(|package| package.is_in("runtime")).map(|package| package.name.as_str()).collect();
    assert!(runtime.contains(&"kubewire-controller"), "this test looks in the wrong folder: {runtime:?}");
    for (package, features, count) in BUILT_WITH {
        let tree = tree(package, &[features, ["--target", "x86_64-unknown-linux-gnu"].as_slice()].concat());
        let names: Vec<&str> = tree.iter().map(String::as_str).collect();
        for strange in runtime.iter().chain(OF_THE_CONTROLLER_LAYER) {
            assert!(!names.contains(strange), "{package} {features:?} pulls in {strange}");
        }
        let speaks_http = *package == "kubewire-listwatch" && features.is_empty();
        assert_eq!(names.contains(&"hyper"), speaks_http, "{package} {features:?} and HTTP");
        assert_eq!(names.len(), *count, "{package} {features:?} is built with {names:#?}");
    }
}

#[test]
fn of_the_blocks_only_listwatch_names_an_http_crate() {
    for package in members().iter().filter(|package| WITHOUT_HTTP.contains(&package.name.as_str())) {
        for dependency in package.depends_on().filter(|dependency| knows_kubernetes_or_http(&dependency.name)) {
            // The trait that makes an object of every `kube_core::Resource`; no request can be made with it.
            let fits = package.name == "kubewire-indexer" && dependency.name == "kube-core" && dependency.optional;
            assert!(fits, "{} must not depend on {}", package.name, dependency.name);
        }
    }
}

#[test]
fn libraries_leave_tls_and_the_version_of_kubernetes_to_their_users() {
    let ours = members();
    let libraries =
        ours.iter().filter(|package| !["kubewire-examples", "kubewire-benches"].contains(&package.name.as_str()));
    for package in libraries.filter(|package| package.folder().join("src/lib.rs").exists()) {
        let manifest = std::fs::read_to_string(&package.manifest_path).expect("a manifest");
        let (_, after) = manifest.split_once("\n[dependencies]\n").unwrap_or_default();
        let dependencies = after.split("\n[").next().unwrap_or_default();
        for word in ["v1_", "\"latest\"", "\"earliest\""] {
            assert!(!dependencies.contains(word), "{} chooses a version of Kubernetes: {word}", package.name);
        }
    }
    for package in ["kubewire-listwatch", "kubewire-informer"] {
        let tree = tree(package, &[]);
        for name in ["rustls", "openssl", "native-tls"] {
            assert!(!tree.contains(name), "{package} chooses a TLS stack: {name}");
        }
    }
}

#[test]
fn all_members_have_the_workspaces_edition_version_licence_and_lints() {
    let members = members();
    assert!(members.len() >= ARROWS.len());
    for package in members {
        let name = &package.name;
        assert_eq!(package.edition, "2024", "{name}");
        assert_eq!(package.rust_version.as_deref(), Some("1.89"), "{name}");
        assert_eq!(package.license.as_deref(), Some("MIT OR Apache-2.0"), "{name}");
        assert!(package.description.is_some_and(|text| !text.is_empty()), "{name} has no description");
        let manifest = std::fs::read_to_string(&package.manifest_path).expect("a manifest");
        for line in ["edition.workspace = true", "rust-version.workspace = true", "license.workspace = true"] {
            assert!(manifest.contains(line), "{name} has no line `{line}`");
        }
        let lints = manifest.split("\n[lints]\n").nth(1).unwrap_or_default();
        assert!(lints.starts_with("workspace = true"), "{name} does not take the workspace's lints");
    }
}

/// What a registry shows, and what the licences ask for.
#[test]
fn whatever_is_published_has_a_readme_keywords_and_the_texts_of_its_licences() {
    for package in members().into_iter().filter(|package| package.publish.is_none()) {
        let name = &package.name;
        assert!(package.repository.is_some() && !package.keywords.is_empty(), "{name} lacks repository or keywords");
        assert_eq!(package.readme.as_deref(), Some("README.md"), "{name}");
        for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            let text = std::fs::read_to_string(package.folder().join(file));
            assert!(text.is_ok_and(|text| text.len() > 300), "{name} has no {file}");
        }
    }
}

#[test]
fn library_crates_forbid_unsafe_code() {
    for package in members() {
        let lib = package.manifest_path.with_file_name("src").join("lib.rs");
        let Ok(text) = std::fs::read_to_string(lib) else { continue };
        assert!(text.contains("#![forbid(unsafe_code)]"), "{} does not forbid unsafe code", package.name);
    }
}

#[test]
fn pure_files_know_no_runtime_and_read_no_clock() {
    let mut pure = 0;
    for package in members() {
        let nested: Vec<PathBuf> = Vec::new();
        for file in rust_files(&package.folder().join("src"), nested) {
            let text = std::fs::read_to_string(&file).expect("a source file");
            if !text.lines().take(12).any(|line| line.starts_with("//!") && line.contains("PURE")) {
                continue;
            }
            pure += 1;
            for (number, line) in code_lines(&text) {
                for word in ["tokio", "async", "await", "Instant::now", "SystemTime::now"] {
                    let found = line
                        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
                        .any(|part| part == word || (word.contains("::") || word == "tokio") && part.contains(word));
                    assert!(!found, "{}:{number} is PURE and says {word}: {line}", file.display());
                }
            }
        }
    }
    assert!(pure > 0, "no file says that it is PURE: has the word changed?");
}

/// Lines of code before the tests of a file, with their numbers, without comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

fn rust_files(folder: &Path, mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return files };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            files = rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
