//! stub
use super::{TortureError, TortureOptions, hosts::Hosts, result::Soak, stage::Waiter};
use crate::runlog::Stall;
use std::path::Path;
pub fn run(
    _: &TortureOptions,
    _: &Hosts,
    _: &Path,
    _: u64,
    _: Waiter,
) -> Result<(Soak, Vec<Stall>), TortureError> {
    Err(TortureError::Interrupted)
}
