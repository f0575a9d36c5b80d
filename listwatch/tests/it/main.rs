//! ListWatch against mock services and against a scripted socket.

mod fake;
mod mock;
mod protobuf;
mod requests;
mod socket;
mod streaming;
