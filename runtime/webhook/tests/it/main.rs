//! Webhooks over real TLS sockets, and called by the real API server (`testing/envtest/check.sh`).

mod managed;
mod real_api_server;
mod support;
mod tls;
mod widget;
