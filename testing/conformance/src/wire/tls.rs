//! TLS for the server on a port, with authorities and certificates that are made on the spot.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A connection, with TLS or without.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {
    fn tcp(&self) -> &TcpStream;
}

impl Duplex for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Duplex for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// An authority that signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new one, with a key of its own.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("its own signature"))
    }

    /// Its certificate, as a CA file holds it.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Its certificate, as `kube_client::Config::root_cert` holds it.
    pub fn der(&self) -> Vec<u8> {
        self.0.der().to_vec()
    }

    /// A certificate for a host name or an address, for servers and clients.
    pub fn issue(&self, name: &str) -> Leaf {
        self.sign(name, |_| {})
    }

    /// One that was good in 2001.
    pub fn issue_expired(&self, name: &str) -> Leaf {
        self.sign(name, |params| {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2001, 12, 31);
        })
    }

    fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Leaf {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a signature");
        Leaf { pem: certificate.pem(), key_pem: key.serialize_pem(), der: certificate.der().clone(), key }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a certificate");
        Arc::new(roots)
    }
}

/// A certificate that an [`Authority`] signed, and its key.
pub struct Leaf {
    /// The certificate, as a file holds it.
    pub pem: String,
    /// The key, as a file holds it.
    pub key_pem: String,
    der: CertificateDer<'static>,
    key: KeyPair,
}

/// How a server speaks TLS with the connections that come next. Cloning gives another handle.
#[derive(Clone)]
pub struct Tls(Arc<Mutex<Arc<ServerConfig>>>);

impl Tls {
    /// Shows this certificate, and asks for none.
    pub fn new(leaf: &Leaf) -> Self {
        Self(Arc::new(Mutex::new(config(leaf, None))))
    }

    /// From now on it shows this certificate.
    pub fn shows(&self, leaf: &Leaf) {
        *self.0.lock() = config(leaf, None);
    }

    /// From now on it shows this certificate, and demands one that this authority signed.
    pub fn shows_and_demands(&self, leaf: &Leaf, clients: &Authority) {
        *self.0.lock() = config(leaf, Some(clients));
    }

    /// From now on it takes the first of these protocols that a client offers too (ALPN), such as `h2`, `http/1.1`.
    pub fn takes(&self, protocols: &[&str]) {
        let mut config = self.0.lock();
        Arc::make_mut(&mut config).alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Box<dyn Duplex>> {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.0.lock()));
        Ok(Box::new(acceptor.accept(stream).await?))
    }
}

fn config(leaf: &Leaf, clients: Option<&Authority>) -> Arc<ServerConfig> {
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().expect("the provider has ciphers");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(clients.roots(), provider);
            builder.with_client_cert_verifier(verifier.build().expect("one root"))
        }
    };
    let key = PrivateKeyDer::try_from(leaf.key.serialize_der()).expect("a key");
    Arc::new(builder.with_single_cert(vec![leaf.der.clone()], key).expect("key and certificate fit"))
}
