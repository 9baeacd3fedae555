/// stub
pub struct Replay;
