//! The elector in paused time, with the fake lock and with leases of the embedded API server.

mod chaos;
mod elector;
mod leases;
mod support;
