//! Policies that no kernel of today has: policies of Linux 4, of each patch of the 2023 series, and of the
//! RFCs of 2026.

mod linux_4;
mod rfcs;
mod series;

pub use linux_4::{
    HIGH_ORDER_V5, HIGH_ORDER_V5_EXCESS, HIGH_ORDER_V5_LAST_LIST, HIGH_ORDER_V5_SCALED_REFILL, LINUX_4_9,
    LINUX_4_15_PICKS, LINUX_4_15_PREFETCH, LINUX_4_18, LINUX_4_19, fixed,
};
pub use rfcs::{PCP_BUDDY_RFC, SUPERPAGEBLOCK_RFC};
pub use series::{PATCH_1, PATCH_2, PATCH_3, PATCH_4, PATCH_5, PATCH_6, PATCH_7, PATCH_8, PATCH_9, PATCH_10};

use super::*;

/// The kernels' policies and the policies of this folder, oldest first.
pub(super) const ALL: &[Policy] = &[
    LINUX_4_9,
    HIGH_ORDER_V5,
    HIGH_ORDER_V5_LAST_LIST,
    HIGH_ORDER_V5_EXCESS,
    HIGH_ORDER_V5_SCALED_REFILL,
    LINUX_4_15_PICKS,
    LINUX_4_15_PREFETCH,
    LINUX_4_18,
    LINUX_4_19,
    LINUX_5_14,
    LINUX_6_1,
    LINUX_6_6,
    PATCH_1,
    PATCH_2,
    PATCH_3,
    PATCH_4,
    PATCH_5,
    PATCH_6,
    PATCH_7,
    PATCH_8,
    PATCH_9,
    PATCH_10,
    LINUX_6_7,
    LINUX_6_12_0,
    LINUX_6_12,
    LINUX_6_18_0,
    LINUX_6_18,
    LINUX_6_19,
    LINUX_7_2,
    PCP_BUDDY_RFC,
    SUPERPAGEBLOCK_RFC,
];
