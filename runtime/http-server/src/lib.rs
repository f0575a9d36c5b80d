//! The HTTP server beneath the health and metrics endpoints and the webhooks: one port, with or without TLS, in bounded time
//! and memory, and drained when it is told to stop.
//!
//! ```
//! use http::StatusCode;
//! use kubewire_http_server::{HttpServer, text};
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let server = HttpServer::new("hello", ([127, 0, 0, 1], 0).into());
//! let stop = CancellationToken::new();
//! let (running, stopped) = (server.clone(), stop.clone());
//! let running = tokio::spawn(async move {
//!     running.run(|_| async { text(StatusCode::OK, "hello\n") }, stopped, CancellationToken::new()).await
//! });
//! server.started().await;
//! assert!(server.is_serving() && server.local_address().is_some());
//! stop.cancel();
//! running.await??;
//! assert!(!server.is_serving());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # The types
//! [`HttpServer`], which clones share; [`Answer`], which a request is answered with, and [`text`] for a simple one.
//!
//! # Bounds
//!
//! | what | at most | then |
//! |---|---|---|
//! | connections | 256 | more wait in the backlog of the socket |
//! | TLS handshake | 10 s | the connection is closed |
//! | head of a request | 1 MiB (HTTP/2: 16 kB), 32 s | 431, or the connection is closed; idle connections of HTTP/1.1 end by it too |
//! | time in which nothing of an answer can be sent, because the client does not read | 60 s | the connection is closed |
//! | time in which an answer of HTTP/2 goes no further, by 16 KiB or to its end, because the client does not grant it | 60 s | the connection is closed |
//! | begin of a connection of HTTP/2 | 32 s | the connection is closed |
//! | requests at once on a connection of HTTP/2 | 250 | more wait |
//! | answer to a ping of HTTP/2, sent every 30 s | 20 s | the connection is closed |
//! | requests that are open at the stop | 60 s, or until the cancellation | given up |
//! | connections without one at the stop | 1 s | closed, also in the midst of a head; at once in the midst of a handshake |
//!
//! A body is the service's to read and to bound: none of it is read before, and what is left unread is not kept. A service that
//! panics is answered by 500, and harms nobody else.
//!
//! # Features
//! - `tls`: `HttpServer::tls`, with a certificate of `kubewire-certificate`.
//! - `http2`: HTTP/2 for clients that choose it in the TLS handshake.
#![forbid(unsafe_code)]

mod answer;
mod bounds;
mod connection;
mod http_server;
mod unstalled;
#[cfg(feature = "http2")]
mod untaken;

pub use answer::{Answer, text};
pub use http_server::HttpServer;
