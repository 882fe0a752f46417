//! Serial numbers that wrap (RFC 1982): transfer cycles of both wire versions.

use core::cmp::Ordering;

macro_rules! serial {
    ($name:ident, $raw:ty, $signed:ty, $doc:literal) => {
        #[doc = $doc]
        ///
        /// Deliberately without `Ord`: the order is not transitive over the whole range.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $raw);

        impl $name {
            /// The number after this one.
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }
            /// Steps from `self` forward to `other`; negative if `other` is older.
            /// Numbers exactly half the range apart count as older, so that a tie never moves forward.
            pub const fn distance_to(self, other: Self) -> $signed {
                other.0.wrapping_sub(self.0) as $signed
            }
            /// Whether `self` is newer than `other`.
            pub const fn is_newer_than(self, other: Self) -> bool {
                other.distance_to(self) > 0
            }
            /// The order of `self` relative to `other` within half the range.
            pub const fn order(self, other: Self) -> Ordering {
                match other.distance_to(self) {
                    0 => Ordering::Equal,
                    d if d > 0 => Ordering::Greater,
                    _ => Ordering::Less,
                }
            }
        }
    };
}

serial!(
    Serial16,
    u16,
    i16,
    "A 16-bit serial number (wire version 1)."
);
serial!(
    Serial32,
    u32,
    i32,
    "A 32-bit serial number (wire version 2)."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap_at_every_16_bit_number() {
        for n in 0..=u16::MAX {
            let (here, next) = (Serial16(n), Serial16(n).next());
            assert!(
                next.is_newer_than(here) && !here.is_newer_than(next) && !here.is_newer_than(here)
            );
            let half = Serial16(n.wrapping_add(0x8000));
            assert!(!half.is_newer_than(here) && !here.is_newer_than(half));
        }
    }

    #[test]
    fn order_holds_across_the_wrap_at_32_bits() {
        assert!(Serial32(3).is_newer_than(Serial32(u32::MAX - 3)));
        assert_eq!(Serial32(u32::MAX).distance_to(Serial32(1)), 2);
        assert_eq!(Serial32(1).order(Serial32(u32::MAX)), Ordering::Greater);
    }
}
