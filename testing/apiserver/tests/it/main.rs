//! The server as clients see it.

mod access;
mod apply;
mod clients;
mod faults;
mod forms;
mod kubectl;
mod lists;
mod network;
mod pages;
mod port;
mod protobuf;
mod raw;
mod watches;
mod writes;
