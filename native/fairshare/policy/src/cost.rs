//! What a request costs its job.

/// Turns a request into the units that the schedulers share out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostModel {
    /// Bytes moved, plus a charge for each operation: a stat is not free, and a megabyte costs more.
    Bytes {
        /// In bytes: what the server could have moved in the time that an empty operation takes.
        per_operation: u64,
    },
    /// Every request costs the same, as in the published ThemisIO; not fair in bytes.
    Request,
}

impl CostModel {
    /// 4 KiB requests of a local server take 4.8 us where it moves 7.8 GB/s: about 32 KiB of moving.
    pub const DEFAULT: CostModel = CostModel::Bytes {
        per_operation: 32 * 1024,
    };

    /// Cost of a request that moves `bytes`; at least 1.
    pub fn cost(&self, bytes: u64) -> u64 {
        match *self {
            CostModel::Bytes { per_operation } => bytes.saturating_add(per_operation).max(1),
            CostModel::Request => 1,
        }
    }
}

impl Default for CostModel {
    fn default() -> Self {
        Self::DEFAULT
    }
}
