/// stub
pub struct Store;
/// stub
pub struct StoreError;
