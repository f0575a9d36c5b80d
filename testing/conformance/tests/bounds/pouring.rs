//! A server that writes without an end, and holds nothing of it.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What it writes to each connection, once it has read the head of a request.
#[derive(Clone)]
pub(crate) struct Pour {
    first: Vec<u8>,
    /// Some repetitions of what comes again and again.
    ever: Vec<u8>,
    /// How often `ever`; then what comes last.
    times: Option<usize>,
    last: Vec<u8>,
    slowly: bool,
}

impl Pour {
    pub(crate) fn for_ever(first: &str, ever: &str) -> Self {
        let repeat = (32_768 / ever.len()).max(1);
        let ever = ever.repeat(repeat).into_bytes();
        Self { first: first.into(), ever, times: None, last: Vec::new(), slowly: false }
    }

    /// A thousand at once.
    pub(crate) fn times(first: &str, ever: &str, times: usize, last: &str) -> Self {
        assert_eq!(times % 1000, 0);
        let ever = ever.repeat(1000).into_bytes();
        Self { first: first.into(), ever, times: Some(times / 1000), last: last.into(), slowly: false }
    }

    /// With a pause of a millisecond between writes.
    pub(crate) fn slowly(self) -> Self {
        Self { slowly: true, ..self }
    }

    async fn write(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        stream.write_all(&self.first).await?;
        let mut left = self.times;
        while left != Some(0) {
            stream.write_all(&self.ever).await?;
            if self.slowly {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            left = left.map(|left| left - 1);
        }
        stream.write_all(&self.last).await
    }
}

/// A server that is ended when this is dropped.
pub(crate) struct Pouring {
    pub(crate) address: String,
    task: JoinHandle<()>,
}

pub(crate) async fn pour(pour: Pour) -> Pouring {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // It ends when the client has gone.
            let _ = pour.write(&mut stream).await;
        }
    });
    Pouring { address, task }
}

impl Drop for Pouring {
    fn drop(&mut self) {
        self.task.abort();
    }
}
