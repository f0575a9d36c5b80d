//! A kubeconfig that names the server.

/// A kubeconfig with one context for a server without credentials.
pub(crate) fn text(url: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: kubewire
clusters:
- name: kubewire
  cluster:
    server: {url}
contexts:
- name: kubewire
  context:
    cluster: kubewire
    user: kubewire
    namespace: default
users:
- name: kubewire
  user: {{}}
"
    )
}
