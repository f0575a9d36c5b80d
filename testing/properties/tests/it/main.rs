//! The properties, driven on stable: random inputs of the right shape, and the inputs that are kept.

mod kept;
mod random;
mod shapes;
