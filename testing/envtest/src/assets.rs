//! Where the two programs are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::EnvError;

/// The programs of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assets {
    pub(crate) etcd: PathBuf,
    pub(crate) kube_apiserver: PathBuf,
}

/// What decides where they are. A plain value, so that the rule can be tested.
pub(crate) struct Search<'a> {
    /// Variables of the environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) exists: &'a dyn Fn(&Path) -> bool,
    /// The directory that the builder was given.
    pub(crate) configured: Option<PathBuf>,
}

/// What the search found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Here(PathBuf),
    /// Somebody said that it is here, and it is not.
    Missing(PathBuf),
    /// Nobody said anything, and it is in none of the usual places.
    Nowhere,
}

/// Where controller-runtime's tools put them.
const USUAL: &str = "/usr/local/kubebuilder/bin";

impl Search<'_> {
    /// As controller-runtime's envtest: the variable of the program, then the one of the directory, then what was configured,
    /// then the usual place. The first that says something decides, even if the file is missing. Ours, last: where
    /// `testing/realcluster/build.sh` puts them.
    pub(crate) fn find(&self, program: &str) -> Found {
        let of_program = format!("TEST_ASSET_{}", program.to_uppercase().replace('-', "_"));
        let variable = |name: &str| (self.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let said = variable(&of_program)
            .or_else(|| variable("KUBEBUILDER_ASSETS").map(|directory| directory.join(program)))
            .or_else(|| self.configured.as_ref().map(|directory| directory.join(program)));
        match said {
            Some(path) if (self.exists)(&path) => return Found::Here(path),
            Some(path) => return Found::Missing(path),
            None => {}
        }
        let built = self.built().map(|directory| directory.join(program));
        let usual = [Some(Path::new(USUAL).join(program)), built];
        usual.into_iter().flatten().find(|path| (self.exists)(path)).map_or(Found::Nowhere, Found::Here)
    }

    /// Where `build.sh` puts what it builds.
    fn built(&self) -> Option<PathBuf> {
        (self.variable)("HOME").map(|home| Path::new(&home).join(".cache/kubewire/assets"))
    }
}

/// Finds the programs, or builds them where Go and this repository are there. That takes minutes, once.
///
/// Blocks.
pub(crate) fn locate(configured: Option<PathBuf>) -> Result<Assets, EnvError> {
    let variable = |name: &str| std::env::var(name).ok();
    let search = Search { variable: &variable, exists: &|path| path.is_file(), configured };
    let one = |program: &'static str| match search.find(program) {
        Found::Here(path) => Ok(Some(path)),
        Found::Missing(path) => Err(EnvError::Missing { program, path }),
        Found::Nowhere => Ok(None),
    };
    if let (Some(etcd), Some(kube_apiserver)) = (one("etcd")?, one("kube-apiserver")?) {
        return Ok(Assets { etcd, kube_apiserver });
    }
    build()
}

fn build() -> Result<Assets, EnvError> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../realcluster/build.sh");
    let has_go = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !script.is_file() || !has_go.is_ok_and(|status| status.success()) {
        return Err(EnvError::NoAssets);
    }
    tracing::info!("building etcd and kube-apiserver; this takes minutes, once");
    let built = Command::new(&script).env_remove("KUBEBUILDER_ASSETS").stdin(Stdio::null()).output();
    let built = built.map_err(|source| EnvError::Io { what: "run the build of kube-apiserver", source })?;
    if !built.status.success() {
        return Err(EnvError::Build { output: String::from_utf8_lossy(&built.stderr).into_owned() });
    }
    let text = String::from_utf8_lossy(&built.stdout);
    // Its last line says where.
    let directory = PathBuf::from(text.lines().last().unwrap_or_default());
    Ok(Assets { etcd: directory.join("etcd"), kube_apiserver: directory.join("kube-apiserver") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// variables | configured | files → what is found of kube-apiserver.
    fn find(variables: &[(&str, &str)], configured: Option<&str>, files: &[&str]) -> Found {
        let variable =
            |name: &str| variables.iter().find(|(have, _)| *have == name).map(|(_, value)| (*value).to_owned());
        let exists = |path: &Path| files.iter().any(|file| Path::new(file) == path);
        let configured = configured.map(PathBuf::from);
        Search { variable: &variable, exists: &exists, configured }.find("kube-apiserver")
    }

    #[test]
    fn the_first_place_that_is_named_decides_in_envtests_order() {
        let files = ["/t/api", "/k/kube-apiserver", "/c/kube-apiserver", "/usr/local/kubebuilder/bin/kube-apiserver"];
        let all = [("TEST_ASSET_KUBE_APISERVER", "/t/api"), ("KUBEBUILDER_ASSETS", "/k")];
        assert_eq!(find(&all, Some("/c"), &files), Found::Here("/t/api".into()));
        assert_eq!(find(&all[1..], Some("/c"), &files), Found::Here("/k/kube-apiserver".into()));
        assert_eq!(find(&[], Some("/c"), &files), Found::Here("/c/kube-apiserver".into()));
        assert_eq!(find(&[], None, &files), Found::Here(files[3].into()));
        assert_eq!(find(&[("KUBEBUILDER_ASSETS", "")], None, &files), Found::Here(files[3].into()));
    }

    #[test]
    fn a_place_that_is_named_and_empty_is_an_error_not_a_reason_to_look_elsewhere() {
        let usual = ["/usr/local/kubebuilder/bin/kube-apiserver"];
        let missing = find(&[("KUBEBUILDER_ASSETS", "/k")], None, &usual);
        assert_eq!(missing, Found::Missing("/k/kube-apiserver".into()));
        assert_eq!(find(&[], Some("/c"), &usual), Found::Missing("/c/kube-apiserver".into()));
    }

    #[test]
    fn what_was_built_before_is_found_and_else_nothing() {
        let home = [("HOME", "/home/me")];
        let built = "/home/me/.cache/kubewire/assets/kube-apiserver";
        assert_eq!(find(&home, None, &[built]), Found::Here(built.into()));
        assert_eq!(find(&home, None, &[]), Found::Nowhere);
    }
}
