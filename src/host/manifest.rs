//! (stub)
/// stub
#[derive(Debug)]
pub struct RecordingError;
