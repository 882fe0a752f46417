//! What the program under test is given: values drawn by a seed, or rows of a table.

use std::fmt;

use bumpless_base::random::Random;

/// The largest value that is drawn: all inputs have one range, so that differences of two have both signs.
const LARGEST: f64 = 10.0;

/// Where inputs come from. Each reader gives the same values.
#[derive(Clone, Debug, PartialEq)]
pub enum Inputs {
    /// Drawn: two measured values that wander and a switch, in turn.
    Drawn {
        /// Equal seeds give equal values.
        seed: u64,
    },
    /// The rows of a table, over and over.
    Table(Table),
}

impl Inputs {
    /// From the first cycle on, `count` values for each.
    pub fn reader(&self, count: usize) -> Reader {
        match self {
            Self::Drawn { seed } => {
                let mut random = Random::new(*seed);
                let inputs = (0..count).map(|at| Drawn::new(at, &mut random)).collect();
                Reader::Drawn { random, inputs }
            }
            Self::Table(table) => Reader::Table {
                table: table.clone(),
                row: 0,
            },
        }
    }
}

/// Gives the inputs of one cycle after the other.
#[derive(Clone, Debug)]
pub enum Reader {
    /// Drawn.
    Drawn {
        /// The source.
        random: Random,
        /// Of each input.
        inputs: Vec<Drawn>,
    },
    /// From a table.
    Table {
        /// The table.
        table: Table,
        /// The next row.
        row: usize,
    },
}

impl Reader {
    /// Puts the next cycle's inputs into `values`.
    pub fn next(&mut self, values: &mut [f64]) {
        match self {
            Self::Drawn { random, inputs } => {
                for (value, input) in values.iter_mut().zip(inputs) {
                    *value = input.next(random);
                }
            }
            Self::Table { table, row } => {
                for (value, given) in values.iter_mut().zip(table.row(*row)) {
                    *value = *given;
                }
                *row = (*row + 1) % table.rows().max(1);
            }
        }
    }
}

/// An input whose values are drawn.
#[derive(Clone, Debug)]
pub enum Drawn {
    /// A measured value: wanders between 0 and 10, with a jump now and then.
    Wandering(f64),
    /// 0 or 1.
    Switch(bool),
}

impl Drawn {
    fn new(at: usize, random: &mut Random) -> Self {
        match at % 3 {
            2 => Self::Switch(random.chance(0.5)),
            _ => Self::Wandering(LARGEST * share(random)),
        }
    }

    fn next(&mut self, random: &mut Random) -> f64 {
        match self {
            Self::Wandering(value) => {
                let step = if random.chance(0.005) { 1.0 } else { 0.01 };
                let by = LARGEST * step * (2.0 * share(random) - 1.0);
                *value = (*value + by).clamp(0.0, LARGEST);
                *value
            }
            Self::Switch(on) => {
                *on ^= random.chance(0.02);
                f64::from(u8::from(*on))
            }
        }
    }
}

/// From 0 to below 1.
fn share(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Inputs of several cycles, a row for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: usize,
    values: Vec<f64>,
}

impl Table {
    /// Reads comma-separated values: a row for each cycle, a column for each input; the first line may name them.
    ///
    /// # Errors
    /// The first line with something wrong in it.
    pub fn parse(text: &str) -> Result<Self, BadTable> {
        let mut table = Self {
            columns: 0,
            values: Vec::new(),
        };
        let lines = (1..).zip(text.lines().map(str::trim));
        let lines = lines.filter(|(_, line)| !line.is_empty());
        for (at, (line, content)) in lines.enumerate() {
            let fields = content.split([',', ';']).map(str::trim);
            let row: Result<Vec<f64>, _> = (1..)
                .zip(fields.clone())
                .map(|(column, field)| number(field).map_err(|wrong| (column, field, wrong)))
                .collect();
            let columns = fields.count();
            if at == 0 {
                table.columns = columns;
            }
            match row {
                // The names of the columns.
                Err((.., Wrong::NoNumber)) if at == 0 => {}
                Err((column, field, wrong)) => {
                    let cause = format!("column {column}: {field:?} is {}", wrong.words());
                    return Err(BadTable { line, cause });
                }
                Ok(_) if columns != table.columns => {
                    let cause = format!("{columns} values instead of {}", table.columns);
                    return Err(BadTable { line, cause });
                }
                Ok(row) => table.values.extend(row),
            }
        }
        if table.values.is_empty() {
            let cause = "there is no row of numbers".into();
            return Err(BadTable { line: 1, cause });
        }
        Ok(table)
    }

    /// Values of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    fn row(&self, row: usize) -> &[f64] {
        let from = row * self.columns;
        self.values
            .get(from..from + self.columns)
            .unwrap_or_default()
    }
}

/// Why a field is not taken.
#[derive(Clone, Copy)]
enum Wrong {
    NoNumber,
    /// Such as `nan`, `inf` and what is larger than all numbers, `1e400`: no device gives that.
    NotFinite,
}

impl Wrong {
    fn words(self) -> &'static str {
        match self {
            Self::NoNumber => "no number",
            Self::NotFinite => "no finite number",
        }
    }
}

fn number(field: &str) -> Result<f64, Wrong> {
    let number: f64 = field.parse().map_err(|_| Wrong::NoNumber)?;
    number.is_finite().then_some(number).ok_or(Wrong::NotFinite)
}

/// What is wrong with a table of inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTable {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong in it.
    pub cause: String,
}

impl fmt::Display for BadTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}: {}; give a row for each cycle and a number for each input, separated by commas",
            self.line, self.cause
        )
    }
}

impl std::error::Error for BadTable {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_gives_the_same_values_and_they_change() {
        let inputs = Inputs::Drawn { seed: 5 };
        let (mut one, mut other) = (inputs.reader(6), inputs.reader(6));
        let (mut a, mut b) = ([0.0; 6], [0.0; 6]);
        let mut changed = [false; 6];
        for _ in 0..500 {
            let before = a;
            one.next(&mut a);
            other.next(&mut b);
            assert_eq!(a, b);
            for at in 0..6 {
                changed[at] |= before[at] != a[at];
                let largest = [LARGEST, LARGEST, 1.0][at % 3];
                assert!((0.0..=largest).contains(&a[at]), "{at}: {}", a[at]);
            }
            assert!(a[2] == 0.0 || a[2] == 1.0);
        }
        assert_eq!(changed, [true; 6]);
    }

    #[test]
    fn a_table_is_read_with_or_without_names_and_begins_anew() {
        for text in ["1,2\n3 ; -4.5\n", "level,valve\n\n1,2\r\n3,-4.5"] {
            let table = Table::parse(text).unwrap();
            assert_eq!((table.columns(), table.rows()), (2, 2), "{text}");
            let inputs = Inputs::Table(table);
            let mut reader = inputs.reader(2);
            let mut values = [0.0; 2];
            for expected in [[1.0, 2.0], [3.0, -4.5], [1.0, 2.0]] {
                reader.next(&mut values);
                assert_eq!(values, expected);
            }
        }
    }

    #[test]
    fn a_bad_table_is_refused_with_its_line() {
        for (text, line, cause) in [
            ("1,2\n3", 2, "1 values instead of 2"),
            ("a,b\n1,2\n1,x", 3, "column 2: \"x\" is no number"),
            ("a,b\n1,1e400", 2, "column 2: \"1e400\" is no finite number"),
            ("nan,1\n2,3", 1, "column 1: \"nan\" is no finite number"),
            ("1,2\n-inf,3", 2, "column 1: \"-inf\" is no finite number"),
            ("", 1, "there is no row"),
            ("a,b", 1, "there is no row"),
        ] {
            let error = Table::parse(text).unwrap_err();
            assert!(
                error.line == line && error.cause.contains(cause),
                "{text:?}: {error}"
            );
        }
    }
}
