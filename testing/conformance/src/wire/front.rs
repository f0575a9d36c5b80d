//! TLS before a port that has none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::tls::Tls;

/// Passes on what comes, in both directions; counts connections, and can fall silent. Dropping it closes the port and
/// every connection.
pub struct Front {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    accepted: AtomicU64,
    open: AtomicUsize,
    /// Falls silent for the connections that are open when it changes.
    silence: watch::Sender<()>,
}

impl Front {
    /// Before a server on this machine.
    ///
    /// # Panics
    ///
    /// Where there is no port.
    pub async fn before(server: SocketAddr, tls: &Tls) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let silence = watch::Sender::new(());
        let shared = Arc::new(Shared { accepted: AtomicU64::new(0), open: AtomicUsize::new(0), silence });
        let accepting = tokio::spawn(accept(listener, server, tls.clone(), Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections there have been.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open, silent ones among them.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Nothing passes any more on the connections that are open, and nobody closes them. Later ones are well.
    pub fn falls_silent(&self) {
        self.shared.silence.send_replace(());
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, tls: Tls, shared: Arc<Shared>) {
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        shared.open.fetch_add(1, Ordering::SeqCst);
        let (tls, shared) = (tls.clone(), Arc::clone(&shared));
        connections.spawn(async move {
            let mut silence = shared.silence.subscribe();
            silence.mark_unchanged();
            let mut passing = std::pin::pin!(pass(stream, server, tls));
            tokio::select! {
                _ = &mut passing => {}
                // What is being passed stays where it is.
                _ = silence.changed() => std::future::pending().await,
            }
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn pass(stream: TcpStream, server: SocketAddr, tls: Tls) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut near = tls.accept(stream).await?;
    let mut far = TcpStream::connect(server).await?;
    far.set_nodelay(true)?;
    copy_bidirectional(&mut near, &mut far).await?;
    Ok(())
}
