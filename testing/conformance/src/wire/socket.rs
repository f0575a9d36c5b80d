//! The server on a loopback port, written byte by byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinHandle};

use super::answer::{Answer, Part};
use super::server::Server;
use super::tls::{Duplex, Tls};

/// A scripted server that listens. Dropping it closes the port and every connection.
pub struct Socket {
    server: Server,
    tls: Option<Tls>,
    address: SocketAddr,
    /// The accepting task and those of the connections.
    tasks: Mutex<Tasks>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Tasks {
    accepting: Option<JoinHandle<()>>,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
}

#[derive(Default)]
struct Shared {
    /// No write is longer than this many bytes; 0 means no limit.
    write_len: AtomicUsize,
    accepted: AtomicU64,
    handshakes_failed: AtomicU64,
    open: AtomicUsize,
}

impl Socket {
    /// Listens on a free port.
    ///
    /// # Panics
    ///
    /// Where there is none.
    pub async fn listen(server: Server) -> Self {
        Self::listen_with(server, None).await
    }

    /// Listens on a free port, and speaks TLS there.
    ///
    /// # Panics
    ///
    /// Where there is none.
    pub async fn listen_tls(server: Server, tls: &Tls) -> Self {
        Self::listen_with(server, Some(tls.clone())).await
    }

    async fn listen_with(server: Server, tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let socket = Self { server, tls, address, tasks: Mutex::default(), shared: Arc::default() };
        socket.accept(listener);
        socket
    }

    /// Cuts everything that is written, heads and chunk sizes too, into writes of this many bytes.
    #[must_use]
    pub fn writes_of(self, write_len: usize) -> Self {
        self.shared.write_len.store(write_len, Ordering::Relaxed);
        self
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Script, truth and log.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// How many connections were accepted.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many of them came to no end of their TLS handshake.
    pub fn handshakes_failed(&self) -> u64 {
        self.shared.handshakes_failed.load(Ordering::SeqCst)
    }

    /// How many connections are open at this end.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Nobody listens any more, and connections are closed: further ones are refused.
    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.abort();
        if let Some(accepting) = tasks.accepting.take() {
            let _ = accepting.await;
        }
    }

    /// Listens again, on the same port.
    ///
    /// # Panics
    ///
    /// Where somebody else has taken the port.
    pub async fn reopen(&self) {
        let listener = TcpListener::bind(self.address).await.expect("the port of before");
        self.accept(listener);
    }

    fn accept(&self, listener: TcpListener) {
        let mut tasks = self.tasks.lock();
        let connections = Arc::clone(&tasks.connections);
        let (server, tls, shared) = (self.server.clone(), self.tls.clone(), Arc::clone(&self.shared));
        tasks.accepting = Some(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
                let (server, tls, shared) = (server.clone(), tls.clone(), Arc::clone(&shared));
                shared.open.fetch_add(1, Ordering::SeqCst);
                let closed = Closed(Arc::clone(&shared));
                let task = tokio::spawn(async move {
                    let _closed = closed;
                    let stream: Box<dyn Duplex> = match tls {
                        None => Box::new(stream),
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => stream,
                            Err(_) => {
                                shared.handshakes_failed.fetch_add(1, Ordering::SeqCst);
                                return;
                            }
                        },
                    };
                    let connection = Connection { stream, ahead: Vec::new(), number, server, shared };
                    // However it ends, it ends.
                    let _ = connection.serve().await;
                });
                connections.lock().push(task.abort_handle());
            }
        }));
    }
}

impl Tasks {
    fn abort(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
        for connection in self.connections.lock().drain(..) {
            connection.abort();
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.tasks.get_mut().abort();
    }
}

/// Counts a connection off.
struct Closed(Arc<Shared>);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Connection {
    stream: Box<dyn Duplex>,
    /// What the client has sent before its answer was over.
    ahead: Vec<u8>,
    number: u64,
    server: Server,
    shared: Arc<Shared>,
}

impl Connection {
    async fn serve(mut self) -> std::io::Result<()> {
        self.stream.tcp().set_nodelay(true)?;
        while let Some(head) = self.read_head().await? {
            let mut answer = self.answer(&head);
            if let Some(status) = answer.status {
                let mut head = format!("HTTP/1.1 {status} As Scripted\r\nTransfer-Encoding: chunked\r\n");
                if !answer.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                    head.push_str("Content-Type: application/json\r\n");
                }
                for (name, value) in &answer.headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                self.write(format!("{head}\r\n").as_bytes()).await?;
            }
            loop {
                match self.next(&mut answer).await {
                    Some(Part::Bytes(bytes)) => {
                        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                        chunk.extend(bytes);
                        chunk.extend(b"\r\n");
                        self.write(&chunk).await?;
                    }
                    Some(Part::End) => {
                        self.write(b"0\r\n\r\n").await?;
                        break;
                    }
                    Some(Part::Reset) => return self.stream.tcp().set_zero_linger(),
                    Some(Part::Dead) => {
                        // Neither reads nor writes; but the system tells when the other end is gone.
                        self.gone().await;
                        return Ok(());
                    }
                    Some(Part::Cut | Part::Refused) | None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// The next part, or `None` where the client has gone.
    async fn next(&mut self, answer: &mut Answer) -> Option<Part> {
        tokio::select! {
            biased;
            part = answer.next() => Some(part),
            () = self.gone() => None,
        }
    }

    /// Until the client has closed its end. Cancel-safe.
    async fn gone(&mut self) {
        let mut byte = [0];
        while matches!(self.stream.read(&mut byte).await, Ok(len) if len > 0) {
            self.ahead.push(byte[0]);
        }
    }

    async fn read_head(&mut self) -> std::io::Result<Option<String>> {
        let mut head = std::mem::take(&mut self.ahead);
        while !head.ends_with(b"\r\n\r\n") {
            match self.stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(String::from_utf8_lossy(&head).into_owned()))
    }

    fn answer(&self, head: &str) -> Answer {
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        self.server.answer(self.number, method, target, headers)
    }

    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self.shared.write_len.load(Ordering::Relaxed) {
            0 => self.stream.write_all(bytes).await?,
            len => {
                for piece in bytes.chunks(len) {
                    self.stream.write_all(piece).await?;
                    self.stream.flush().await?;
                    // Lets the other end read this much by itself.
                    tokio::task::yield_now().await;
                }
            }
        }
        self.stream.flush().await
    }
}
