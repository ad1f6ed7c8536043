//! Executable mappings of recorded processes.

use crate::convert::modules::FileIdentity;
use std::ops::Range;

/// An executable mapping, as recorded.
#[derive(Clone, Debug)]
pub(super) struct RawMapping {
    pub(super) path: Vec<u8>,
    pub(super) addresses: Range<u64>,
    pub(super) offset: u64,
    pub(super) identity: FileIdentity,
}
