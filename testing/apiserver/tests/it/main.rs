//! The server as clients see it.

mod clients;
