//! The inputs of a run as rows by number: the device and who computes the same run afterwards see the same ones.

use bumpless_host::kit::{Inputs, Reader};

/// Rows of inputs.
pub struct Rows {
    inputs: Inputs,
    reader: Reader,
    /// The row that is in `values`.
    at: u64,
    values: Vec<f64>,
}

impl Rows {
    /// Of `count` values each; the first has number 0.
    pub fn new(inputs: Inputs, count: usize) -> Self {
        let mut rows = Self {
            reader: inputs.reader(count),
            inputs,
            at: 0,
            values: vec![0.0; count],
        };
        rows.reader.next(&mut rows.values);
        rows
    }

    /// The row with this number. They are made one after the other: quickly for one that is not far ahead.
    pub fn row(&mut self, number: u64) -> &[f64] {
        if number < self.at {
            *self = Self::new(self.inputs.clone(), self.values.len());
        }
        while self.at < number {
            self.reader.next(&mut self.values);
            self.at += 1;
        }
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_same_whatever_was_asked_before() {
        let inputs = Inputs::Drawn { seed: 4 };
        let (mut one, mut other) = (Rows::new(inputs.clone(), 3), Rows::new(inputs, 3));
        let ahead: Vec<_> = (0..50).map(|number| one.row(number).to_vec()).collect();
        assert_ne!(ahead[0], ahead[40]);
        for number in [40, 3, 3, 49, 0] {
            assert_eq!(other.row(number), ahead[number as usize], "{number}");
        }
    }
}
