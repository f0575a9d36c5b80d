//! A kubeconfig as text. PURE: certificates in, text out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::authority::Certificate;

/// A kubeconfig of one user, in JSON, which is YAML as well.
pub(crate) fn kubeconfig(server: &str, ca_pem: &str, user: &str, certificate: &Certificate) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "envtest",
            "cluster": { "server": server, "certificate-authority-data": STANDARD.encode(ca_pem) },
        }],
        "users": [{
            "name": user,
            "user": {
                "client-certificate-data": STANDARD.encode(&certificate.certificate_pem),
                "client-key-data": STANDARD.encode(&certificate.key_pem),
            },
        }],
        "contexts": [{ "name": user, "context": { "cluster": "envtest", "user": user } }],
        "current-context": user,
    });
    format!("{config:#}\n")
}

#[cfg(test)]
mod tests {
    use kube_client::Config;
    use kube_client::config::{KubeConfigOptions, Kubeconfig};

    use super::*;
    use crate::Authority;

    #[tokio::test]
    async fn a_kubeconfig_is_read_back_with_server_authority_and_certificate() {
        let authority = Authority::new("test").unwrap();
        // A name with everything that YAML could take for something else.
        let name = "system:node: \"a\" # 'b'";
        let certificate = authority.user(name, &[]).unwrap();
        let text = kubeconfig("https://127.0.0.1:6443", &authority.pem(), name, &certificate);

        let parsed = Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(parsed.current_context.as_deref(), Some(name));
        let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://127.0.0.1:6443/");
        assert_eq!(config.root_cert.unwrap().len(), 1);
        let data = config.auth_info.client_certificate_data.unwrap();
        assert_eq!(STANDARD.decode(data).unwrap(), certificate.certificate_pem.as_bytes());
    }
}
