/// stub
pub struct System;
