//! Outputs that should be equal to the bit, and are not.

use std::fmt;

/// Two outputs that should be equal to the bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which output, from 0.
    pub output: usize,
    /// Its bits in the run that was never disturbed.
    pub expected: u64,
    /// Its bits in the other.
    pub found: u64,
}

impl Difference {
    /// The first difference of two sets of outputs.
    pub fn between(expected: &[u64], found: &[f64]) -> Option<Self> {
        let pairs = expected.iter().zip(found).enumerate();
        let mut pairs = pairs.map(|(output, (&expected, found))| Self {
            output,
            expected,
            found: found.to_bits(),
        });
        pairs.find(|pair| pair.expected != pair.found)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expected, found) = (f64::from_bits(self.expected), f64::from_bits(self.found));
        if expected.is_nan() && found.is_nan() {
            return write!(
                f,
                "output {} is a NaN with bits {:#018x} instead of {:#018x}",
                self.output, self.found, self.expected
            );
        }
        write!(f, "output {} is {found} instead of {expected}", self.output)?;
        if expected == found {
            f.write_str(" (the sign of zero counts)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nans_and_zeros_are_compared_by_their_bits() {
        let nan = f64::from_bits(0x7ff8_0000_0000_0001);
        let difference = Difference::between(&[1.0f64.to_bits(), f64::NAN.to_bits()], &[1.0, nan]);
        let said = difference.unwrap().to_string();
        assert!(
            said.contains("output 1 is a NaN with bits 0x7ff8000000000001"),
            "{said}"
        );
        let difference = Difference::between(&[0.0f64.to_bits()], &[-0.0]);
        assert!(difference.unwrap().to_string().contains("sign of zero"));
        assert_eq!(Difference::between(&[nan.to_bits()], &[nan]), None);
    }
}
