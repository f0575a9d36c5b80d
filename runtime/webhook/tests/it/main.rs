//! Webhooks over real TLS sockets, and called by the real API server (`testing/envtest/check.sh`).

mod real_api_server;
mod tls;
mod widget;
