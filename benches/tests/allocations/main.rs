//! How many allocations each hot path makes. Counts protect it, not times: they are the same on every machine.
//!
//! The bounds are what there is today; a change that needs more has to say why, one that needs less lowers them.

mod counting;
mod fan_out;
mod fifo;
mod indexer;
mod lists;
mod queue;
mod relists;
mod thing;
mod ways_in;
