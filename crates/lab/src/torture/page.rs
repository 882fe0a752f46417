//! stub
use super::result::TortureResult;
pub fn page(_: &TortureResult) -> String {
    String::new()
}
