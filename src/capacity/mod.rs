//! What a cluster can really give, and to whom.
//!
//! Judges one reading of a [`crate::model::Cluster`]: [`free`] says what can be had of each node,
//! [`gates`] why a queue refuses. Claims less when unsure: what could not be checked is never taken
//! for allowed, and a state that is not known is never taken for free.

pub mod free;
pub mod gates;
mod reserved;
