//! The reflector against a scripted server and a store that writes down what it is told.

mod errors;
mod fake_server;
mod fake_store;
mod informer_watcher;
mod lifecycle;
mod list_and_watch;
#[path = "../common/log_lines.rs"]
mod log_lines;
mod logs;
mod pager;
mod retry_watcher;
mod running;
mod streaming_list;
mod timing;
mod undecodable;
mod until;
