//! Shapes of fields that hold quantities: numbers, times, bandwidths, sizes.

use bumpless_base::Duration;
use toml_edit::Item;

use crate::lines::Lines;
use crate::shape::{Describe, Fault, Shape, fault, show};

/// A number for people: whole ones without a point.
fn plain(number: f64) -> String {
    format!("{number}")
}

/// A whole number.
pub struct Whole {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Describe for Whole {
    fn accepts(&self) -> String {
        format!("a whole number from {} to {}", self.min, self.max)
    }
}

impl Shape for Whole {
    type Out = u64;
    fn read(&self, item: &Item, _: &Lines) -> Result<u64, Vec<Fault>> {
        match item.as_integer().map(u64::try_from) {
            Some(Ok(number)) if (self.min..=self.max).contains(&number) => Ok(number),
            _ => fault(show(item)),
        }
    }
}

/// A real number; whole ones may be written without a point. Never infinite, never "not a number".
pub(crate) struct Real {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Real {
    fn value(&self, item: &Item) -> Result<f64, String> {
        // Whole numbers beyond 2^53 lose digits here; every range ends far below.
        let number = item
            .as_float()
            .or_else(|| item.as_integer().map(|n| n as f64));
        match number {
            Some(number) if number >= self.min && number <= self.max => Ok(number),
            _ => Err(show(item)),
        }
    }
}

impl Describe for Real {
    fn accepts(&self) -> String {
        format!("a number from {} to {}", plain(self.min), plain(self.max))
    }
}

impl Shape for Real {
    type Out = f64;
    fn read(&self, item: &Item, _: &Lines) -> Result<f64, Vec<Fault>> {
        self.value(item).or_else(fault)
    }
}

/// A real number above zero.
pub(crate) struct Positive {
    /// Most, as in the file.
    pub(crate) max: &'static str,
}

impl Describe for Positive {
    fn accepts(&self) -> String {
        format!("a number above 0, at most {}", self.max)
    }
}

impl Shape for Positive {
    type Out = f64;
    fn read(&self, item: &Item, _: &Lines) -> Result<f64, Vec<Fault>> {
        let max = self.max.parse().unwrap_or(f64::MAX);
        match (Real { min: 0.0, max }).value(item) {
            Ok(number) if number > 0.0 => Ok(number),
            _ => fault(show(item)),
        }
    }
}

/// Two real numbers.
pub(crate) struct RealPair {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Describe for RealPair {
    fn accepts(&self) -> String {
        format!(
            "two numbers from {} to {}, as [1, 2]",
            plain(self.min),
            plain(self.max)
        )
    }
}

impl Shape for RealPair {
    type Out = [f64; 2];
    fn read(&self, item: &Item, _: &Lines) -> Result<[f64; 2], Vec<Fault>> {
        let Some(list) = item.as_array() else {
            return fault(show(item));
        };
        if list.len() != 2 {
            return fault(format!("is a list of {}", list.len()));
        }
        let element = Real {
            min: self.min,
            max: self.max,
        };
        let (mut pair, mut faults) = ([0.0; 2], Vec::new());
        for (i, value) in list.iter().enumerate() {
            match element.value(&Item::Value(value.clone())) {
                Ok(number) => pair[i] = number,
                Err(wrong) => faults.push(Fault {
                    line: None,
                    element: format!("[{}]", i + 1),
                    wrong,
                    right: Some(element.accepts()),
                }),
            }
        }
        if faults.is_empty() {
            Ok(pair)
        } else {
            Err(faults)
        }
    }
}

/// A span of time in milliseconds, fractions allowed, kept to the nanosecond.
pub(crate) struct Millis {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Describe for Millis {
    fn accepts(&self) -> String {
        format!(
            "a number of milliseconds from {} to {}",
            plain(self.min),
            plain(self.max)
        )
    }
}

impl Shape for Millis {
    type Out = Duration;
    fn read(&self, item: &Item, _: &Lines) -> Result<Duration, Vec<Fault>> {
        let range = Real {
            min: self.min,
            max: self.max,
        };
        let number = range.value(item).or_else(fault)?;
        Ok(Duration::from_nanos((number * 1e6).round() as u64))
    }
}

/// A bandwidth in Mbit/s; zero has the meaning that the field gives it. Inside: bit/s.
pub(crate) struct Megabits {
    pub(crate) max: f64,
}

impl Describe for Megabits {
    fn accepts(&self) -> String {
        format!(
            "0 (not paced) or a number of Mbit/s up to {}",
            plain(self.max)
        )
    }
}

impl Shape for Megabits {
    type Out = u64;
    fn read(&self, item: &Item, _: &Lines) -> Result<u64, Vec<Fault>> {
        let number = Real {
            min: 0.0,
            max: self.max,
        }
        .value(item)
        .or_else(fault)?;
        let bits = (number * 1e6).round() as u64;
        if bits == 0 && number > 0.0 {
            return fault(format!("{} (rounds to zero bit/s)", show(item)));
        }
        Ok(bits)
    }
}

/// A number of bytes: whole, or a text with a unit.
pub(crate) struct Bytes {
    pub(crate) max: u64,
}

impl Describe for Bytes {
    fn accepts(&self) -> String {
        let max = self.max;
        format!("whole bytes up to {max}, as a number or as \"40 kB\", \"8.0 MB\", \"64 MiB\"")
    }
}

impl Shape for Bytes {
    type Out = u64;
    fn read(&self, item: &Item, _: &Lines) -> Result<u64, Vec<Fault>> {
        let bytes = match (item.as_str(), item.as_integer()) {
            (Some(text), _) => parse_bytes(text),
            (_, Some(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        match bytes {
            Some(bytes) if bytes <= self.max => Ok(bytes),
            _ => fault(show(item)),
        }
    }
}

/// `"1.6 MB"` in bytes; `None` for anything else, and for what is not a whole number of bytes.
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u128 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || whole.len() > 12 || fraction.len() > 12 || number.ends_with('.') {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = digits * factor;
    scaled
        .is_multiple_of(scale)
        .then(|| u64::try_from(scaled / scale).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units_are_exact() {
        for (text, bytes) in [
            ("800 B", 800),
            ("40 kB", 40_000),
            ("1.6 MB", 1_600_000),
            ("8.0 MB", 8_000_000),
            ("64MiB", 64 << 20),
            ("1 GiB", 1 << 30),
            ("0", 0),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "MB",
            "1.",
            ".5 MB",
            "1.0005 kB",
            "1 mb",
            "1e3",
            "-1",
            "1..2 B",
            "1 MB x",
        ] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
        assert_eq!(parse_bytes("99999999999999999999 GB"), None);
    }
}
