//! One thing that is to hold.

/// What a bar measures, where it lies, what was measured, and whether that is enough.
pub struct Bar {
    pub what: String,
    pub bar: String,
    pub measured: String,
    pub held: bool,
}

/// A bar that `measured` must not be above, if it was measured.
pub fn below(bars: &mut Vec<Bar>, what: impl Into<String>, limit: f64, measured: Option<f64>) {
    if let Some(measured) = measured {
        bars.push(Bar {
            what: what.into(),
            bar: format!("{limit:.2}"),
            measured: format!("{measured:.3}"),
            held: measured <= limit,
        });
    }
}
