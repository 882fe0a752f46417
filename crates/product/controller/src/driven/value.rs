//! Values as a driver has them, and as the program has them.

use bumpless_base::{Duration, Instant};
use bumpless_config::{Input, InputFrom, Tag, ValueType};
use bumpless_field_driver::{Quality, Value, ValueKind};

/// What the messages call a type.
pub const fn kind_of(value: ValueType) -> ValueKind {
    match value {
        ValueType::Bool => ValueKind::Bool,
        ValueType::I8 => ValueKind::I8,
        ValueType::U8 => ValueKind::U8,
        ValueType::I16 => ValueKind::I16,
        ValueType::U16 => ValueKind::U16,
        ValueType::I32 => ValueKind::I32,
        ValueType::U32 => ValueKind::U32,
        ValueType::I64 => ValueKind::I64,
        ValueType::U64 => ValueKind::U64,
        ValueType::F32 => ValueKind::F32,
        ValueType::F64 => ValueKind::F64,
    }
}

/// The greatest numbers that the types of 64 bits and a real number both have.
const I64_MOST: f64 = 9_223_372_036_854_774_784.0;
const U64_MOST: f64 = 18_446_744_073_709_549_568.0;

/// The device's number for the program's `value`: whole where the type is, and within its range. What is no number is 0
/// where the type is whole.
pub(super) fn to_device(tag: &Tag, value: f64) -> f64 {
    let raw = (value - tag.offset) / tag.scale;
    let whole = |least: f64, most: f64| match raw.is_nan() {
        true => 0.0,
        false => raw.round().clamp(least, most),
    };
    match tag.value {
        ValueType::Bool => f64::from(u8::from(raw >= 0.5)),
        ValueType::I8 => whole(i8::MIN.into(), i8::MAX.into()),
        ValueType::U8 => whole(0.0, u8::MAX.into()),
        ValueType::I16 => whole(i16::MIN.into(), i16::MAX.into()),
        ValueType::U16 => whole(0.0, u16::MAX.into()),
        ValueType::I32 => whole(i32::MIN.into(), i32::MAX.into()),
        ValueType::U32 => whole(0.0, u32::MAX.into()),
        ValueType::I64 => whole(i64::MIN as f64, I64_MOST),
        ValueType::U64 => whole(0.0, U64_MOST),
        ValueType::F32 => raw.clamp(f32::MIN.into(), f32::MAX.into()),
        ValueType::F64 => raw.clamp(f64::MIN, f64::MAX),
    }
}

/// A value that is read, and what was read last.
pub(super) struct Reading {
    /// The input's position.
    pub input: usize,
    scale: f64,
    offset: f64,
    poll: u64,
    /// It must be read at the next opportunity.
    owed: bool,
    /// The program has an input for the quality.
    pub is_doubted_aloud: bool,
    pub quality: Quality,
    pub status: u32,
    taken_at: Option<Instant>,
    /// The device's number, which the program has not got yet.
    fresh: Option<f64>,
}

impl Reading {
    pub fn of(input: usize, settings: &Input) -> Option<Self> {
        let InputFrom::Driver(tag, poll) = &settings.from else {
            return None;
        };
        Some(Self {
            input,
            scale: tag.scale,
            offset: tag.offset,
            poll: (*poll).max(1).into(),
            owed: true,
            is_doubted_aloud: false,
            quality: Quality::Bad,
            status: 0,
            taken_at: None,
            fresh: None,
        })
    }

    pub const fn is_due(&self, number: u64) -> bool {
        self.owed || number.is_multiple_of(self.poll)
    }

    /// What was read last is no longer enough.
    pub const fn owe(&mut self) {
        self.owed = true;
        self.fresh = None;
    }

    /// `now`: when it came. Nothing was taken later.
    pub fn take(&mut self, value: Value, now: Instant) {
        self.owed = false;
        (self.quality, self.status) = (value.quality, value.status);
        if !matches!(value.quality, Quality::Bad) {
            self.taken_at = Some(Instant::from_nanos(value.taken_at).min(now));
            self.fresh = Some(value.value);
        }
    }

    /// What is too old is bad.
    pub fn judge(&mut self, now: Instant, max_age: Option<Duration>) {
        let too_old = |at: Instant| max_age.is_some_and(|most| now.since(at) > most);
        if self.taken_at.is_some_and(too_old) {
            self.quality = Quality::Bad;
        }
    }

    /// Hands the program what is new. A bad value leaves it what it has.
    pub fn give(&mut self, inputs: &mut [f64]) {
        if let Some(fresh) = self.fresh.take() {
            inputs[self.input] = fresh * self.scale + self.offset;
        }
    }

    /// How old what the program has is, milliseconds; `None`: it has nothing.
    pub fn age_ms(&self, now: Instant) -> Option<f64> {
        let age = now.since(self.taken_at?);
        Some(age.as_nanos() as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(value: ValueType, scale: f64, offset: f64) -> Tag {
        Tag {
            name: "n".into(),
            value,
            scale,
            offset,
        }
    }

    #[test]
    fn a_value_that_is_said_to_come_from_the_future_ages_from_its_arrival() {
        let settings = Input {
            name: String::new(),
            device: 0,
            from: InputFrom::Driver(tag(ValueType::F64, 1.0, 0.0), 1),
        };
        let mut reading = Reading::of(0, &settings).unwrap();
        let value = Value {
            quality: Quality::Good,
            status: 0,
            taken_at: u64::MAX,
            value: 1.0,
        };
        let came = Instant::from_nanos(5_000_000);
        reading.take(value, came);
        assert_eq!(reading.age_ms(came + Duration::from_millis(7)), Some(7.0));
    }

    #[test]
    fn what_is_beyond_the_range_is_its_end_and_what_lies_between_is_rounded() {
        for (value, program, device) in [
            (ValueType::Bool, 0.5, 1.0),
            (ValueType::Bool, 0.4, 0.0),
            (ValueType::I8, -200.0, -128.0),
            (ValueType::U8, 255.6, 255.0),
            (ValueType::I16, 1.5, 2.0),
            (ValueType::U16, -1.0, 0.0),
            (ValueType::I32, 1e10, 2_147_483_647.0),
            (ValueType::U32, 1e10, 4_294_967_295.0),
            (ValueType::I64, -1e30, -9_223_372_036_854_775_808.0),
            (ValueType::I64, 1e30, 9_223_372_036_854_774_784.0),
            (ValueType::U64, 1e30, 18_446_744_073_709_549_568.0),
            (ValueType::U64, -1.0, 0.0),
            (ValueType::I16, f64::NAN, 0.0),
            (ValueType::U64, f64::NAN, 0.0),
            (ValueType::Bool, f64::NAN, 0.0),
            (ValueType::F32, 1e300, f64::from(f32::MAX)),
            (ValueType::F64, -2.25, -2.25),
        ] {
            assert_eq!(
                to_device(&tag(value, 1.0, 0.0), program),
                device,
                "{value:?}"
            );
        }
        assert!(to_device(&tag(ValueType::F64, 1.0, 0.0), f64::NAN).is_nan());
        assert_eq!(to_device(&tag(ValueType::U16, 0.1, -40.0), 25.0), 650.0);
    }
}
