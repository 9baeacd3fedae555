//! Statistics on counts and on measurements, some of which broke off. Knows nothing of jobs.
//!
//! Each function names its source, and its tests the published values that it must give.

mod discovery;
mod order;
mod share;
mod survival;
mod table;

pub use discovery::adjusted;
pub use order::{median, median_deviation, quantile};
pub use share::{Share, wilson};
pub use survival::{Survival, survival};
pub use table::{Table, common_odds_ratio, worse};
