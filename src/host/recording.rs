/// stub
pub struct Recording;
