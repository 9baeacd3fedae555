//! What a cluster can really give, and to whom.
//!
//! Judges one reading of a [`crate::model::Cluster`]: [`free`] says what can be had of each node,
//! [`gates`] why a queue refuses. Claims less when unsure: what could not be checked is never taken
//! for allowed, and a state that is not known is never taken for free. [`fit`] puts a shape on nodes,
//! [`start`] plays the cluster forward to when it goes there, and [`rank`] hears them all.

pub mod change;
pub mod diff;
pub mod fit;
pub mod free;
pub mod gates;
pub mod rank;
mod reserved;
pub mod start;
