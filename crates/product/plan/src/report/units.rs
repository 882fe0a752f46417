//! Quantities for people: three significant digits and a unit.

use crate::variation::step;

/// `value` with three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // The unit is the largest in which the rounded value is not below one.
    let fits = |(size, _): &&(f64, &str)| value.abs() >= size * 0.9995;
    let (size, unit) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    format!("{} {unit}", digits(value / size))
}

/// A span of time given in nanoseconds.
pub fn time(nanos: f64) -> String {
    if nanos == 0.0 {
        return "0".into();
    }
    scaled(nanos, &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")])
}

/// The same, rounded up: for what takes no longer.
pub fn time_up(nanos: u64) -> String {
    time(nanos.next_multiple_of(step(nanos)) as f64)
}

/// The same, rounded down: for what is left.
pub fn time_down(nanos: u64) -> String {
    time((nanos - nanos % step(nanos)) as f64)
}

/// A number of bytes, by powers of 1000.
pub fn bytes(bytes: f64) -> String {
    if bytes < 1000.0 {
        return format!("{bytes:.0} B");
    }
    scaled(bytes, &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")])
}

/// A bandwidth in bit/s.
pub fn rate(bits: f64) -> String {
    scaled(
        bits,
        &[
            (1.0, "bit/s"),
            (1e3, "kbit/s"),
            (1e6, "Mbit/s"),
            (1e9, "Gbit/s"),
        ],
    )
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// States lost in a year, from many to almost none.
pub fn losses(per_year: f64) -> String {
    match per_year {
        0.0 => "none".into(),
        lost if lost < 1e-99 => "<1e-99".into(),
        lost if lost < 0.01 => format!("{lost:.0e}"),
        lost if lost < 1e6 => digits(lost),
        lost => format!("{lost:.1e}"),
    }
}

/// A time as milliseconds for a configuration file: no more digits than needed.
pub fn millis(nanos: u64) -> String {
    format!("{}", nanos as f64 / 1e6)
}

/// A factor such as 1.13, rounded down: so far one may go.
pub fn factor(factor: f64) -> String {
    if factor >= 999.0 {
        return "over 999".into();
    }
    let thousandths = (factor * 1e3).round() as u64;
    digits((thousandths - thousandths % step(thousandths)) as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits_and_the_unit_that_fits() {
        for (nanos, text) in [
            (0.0, "0"),
            (12.0, "12.0 ns"),
            (7_404.0, "7.40 us"),
            (999_960.0, "1.00 ms"),
            (8_430_000.0, "8.43 ms"),
            (104_300_000.0, "104 ms"),
            (2e9, "2.00 s"),
        ] {
            assert_eq!(time(nanos), text);
        }
        assert_eq!(
            (time_up(12_550_000), time_down(12_550_000)),
            ("12.6 ms".into(), "12.5 ms".into())
        );
        assert_eq!(
            (time_up(999_999), time_down(495_679_101)),
            ("1.00 ms".into(), "495 ms".into())
        );
        assert_eq!((time_up(0), time_down(0)), ("0".into(), "0".into()));
        assert_eq!(
            (factor(7.969), factor(1.001), factor(12.39)),
            ("7.96".into(), "1.00".into(), "12.3".into())
        );
        assert_eq!(bytes(864.0), "864 B");
        assert_eq!(bytes(8_000_064.0), "8.00 MB");
        assert_eq!(rate(1e9), "1.00 Gbit/s");
        assert_eq!(percent(0.74346), "74.3 %");
        assert_eq!(losses(8.2e-9), "8e-9");
        assert_eq!(losses(31.5), "31.5");
        assert_eq!(losses(0.0), "none");
    }
}
