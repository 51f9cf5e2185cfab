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

/// 4 KiB requests of a local server take 4.8 us where it moves 7.8 GB/s: about 32 KiB of moving.
const PER_OPERATION: u64 = 32 * 1024;

impl CostModel {
    pub const DEFAULT: CostModel = CostModel::Bytes {
        per_operation: PER_OPERATION,
    };
    /// Bytes per second that such a server moves.
    pub const FASTEST: u64 = 7_800_000_000;

    /// For a storage that gives `rate` bytes per second (0: no limit is known): in the time that an operation takes a
    /// slow one moves less. With the charge of a fast one, whoever writes a little at a time would pay its bytes many
    /// times over, and get as many times less of the storage than who writes large pieces.
    pub fn of_storage(rate: u64) -> Self {
        let moves = u128::from(PER_OPERATION) * u128::from(rate) / u128::from(Self::FASTEST);
        match rate {
            0 => Self::DEFAULT,
            _ => CostModel::Bytes {
                per_operation: (moves as u64).min(PER_OPERATION),
            },
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_costs_what_the_storage_moves_meanwhile() {
        assert_eq!(CostModel::of_storage(0), CostModel::DEFAULT);
        assert_eq!(CostModel::of_storage(100_000_000_000), CostModel::DEFAULT);
        // A hundredth of the bytes in the same time.
        assert_eq!(
            CostModel::of_storage(78_000_000),
            CostModel::Bytes { per_operation: 327 }
        );
        assert_eq!(CostModel::of_storage(1).cost(0), 1, "nothing is free");
    }
}
