//! What a cluster can really give, and to whom.
//!
//! Judges one reading of a [`crate::model::Cluster`]: [`free`] says what can be had of each node,
//! [`gates`] why a queue refuses, [`health`] which nodes are out or ailing. Claims less when unsure:
//! what could not be checked is never taken for allowed, and a state that is not known is never taken
//! for free. [`fit`] puts a shape on nodes, [`start`] plays the cluster forward to when it goes there,
//! and [`rank`] hears them all.

pub mod change;
pub mod diff;
pub mod fit;
pub mod free;
pub mod gates;
pub mod health;
pub mod inventory;
mod narrow;
pub mod rank;
mod reserved;
pub mod start;

#[cfg(test)]
mod lab;

/// An age in the largest unit that says something: `3 h`, `12 d`.
fn age(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
