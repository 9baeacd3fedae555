//! Bytes and words: hostile bytes made printable, columns, lists of hosts, secrets masked.
//!
//! Knows nothing of jobs, logs or schedulers' answers; what comes in is text, what goes out is text.

mod clean;
mod english;
mod hostlist;
mod joined;
mod redact;
mod rename;
mod width;
mod words;

pub use clean::{clean_line, lossy, printable, steers};
pub use english::{foreign, in_english};
pub use hostlist::{HostlistError, collapse, expand};
pub use joined::joined_exception;
pub use redact::{holds_secret, mask_secrets, masked, without_secrets};
pub use rename::Renames;
pub use width::{pad, pad_left, truncate, width, wrap};
pub use words::{count, did_you_mean, join};
