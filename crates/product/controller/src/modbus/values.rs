//! Numbers of a program as bits in a device (F-33): types, orders of bytes and registers, scale and offset.

use bumpless_config::{Order, Point, ValueType};

/// The program's number for `registers`, which are as many as the value at `point` takes.
pub fn decode(point: &Point, registers: &[u16]) -> f64 {
    let bits = gather(point, registers);
    let raw = match point.value {
        ValueType::Bool => f64::from(u8::from(bits != 0)),
        ValueType::I8 => f64::from(bits as u8 as i8),
        ValueType::U8 => f64::from(bits as u8),
        ValueType::U16 => f64::from(bits as u16),
        ValueType::I16 => f64::from(bits as u16 as i16),
        ValueType::U32 => f64::from(bits as u32),
        ValueType::I32 => f64::from(bits as u32 as i32),
        ValueType::I64 => bits.cast_signed() as f64,
        ValueType::U64 => bits as f64,
        ValueType::F32 => f64::from(f32::from_bits(bits as u32)),
        ValueType::F64 => f64::from_bits(bits),
    };
    raw * point.scale + point.offset
}

/// Appends the registers for the program's number `value` at `point`. What is beyond the range of the type becomes its
/// end; what lies between two whole numbers becomes the nearer one.
pub fn encode(point: &Point, value: f64, registers: &mut Vec<u16>) {
    let raw = (value - point.offset) / point.scale;
    // Conversions of real numbers to whole ones stop at the end of the range.
    let bits = match point.value {
        ValueType::Bool => u64::from(raw >= 0.5),
        ValueType::I8 => u64::from(raw.round() as i8 as u8),
        ValueType::U8 => u64::from(raw.round() as u8),
        ValueType::U16 => u64::from(raw.round() as u16),
        ValueType::I16 => u64::from(raw.round() as i16 as u16),
        ValueType::U32 => u64::from(raw.round() as u32),
        ValueType::I32 => u64::from(raw.round() as i32 as u32),
        ValueType::I64 => (raw.round() as i64).cast_unsigned(),
        ValueType::U64 => raw.round() as u64,
        ValueType::F32 => {
            let within = raw.clamp(f32::MIN.into(), f32::MAX.into());
            u64::from((within as f32).to_bits())
        }
        ValueType::F64 => raw.clamp(f64::MIN, f64::MAX).to_bits(),
    };
    scatter(point, bits, registers);
}

/// The program's number for a bit.
pub fn decode_bit(point: &Point, bit: bool) -> f64 {
    f64::from(u8::from(bit)) * point.scale + point.offset
}

/// Whether the program's number `value` sets a bit.
pub fn encode_bit(point: &Point, value: f64) -> bool {
    (value - point.offset) / point.scale >= 0.5
}

fn ordered(point: &Point, register: u16) -> u16 {
    match point.byte_order {
        Order::Big => register,
        Order::Little => register.swap_bytes(),
    }
}

fn gather(point: &Point, registers: &[u16]) -> u64 {
    let add = |bits: u64, register: &u16| bits << 16 | u64::from(ordered(point, *register));
    match point.word_order {
        Order::Big => registers.iter().fold(0, add),
        Order::Little => registers.iter().rev().fold(0, add),
    }
}

fn scatter(point: &Point, bits: u64, registers: &mut Vec<u16>) {
    let count = point.value.registers();
    for at in 0..count {
        // How many registers of lower bits there are.
        let below = match point.word_order {
            Order::Big => count - 1 - at,
            Order::Little => at,
        };
        let register = (bits >> (16 * below)) as u16;
        registers.push(ordered(point, register));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_config::Area;
    use proptest::prelude::*;

    fn point(value: ValueType, byte_order: Order, word_order: Order) -> Point {
        Point {
            area: Area::HoldingRegister,
            register: 0,
            value,
            byte_order,
            word_order,
            scale: 1.0,
            offset: 0.0,
        }
    }

    fn encoded(point: &Point, value: f64) -> Vec<u16> {
        let mut registers = Vec::new();
        encode(point, value, &mut registers);
        registers
    }

    #[test]
    fn the_four_orders_of_a_real_number_are_those_of_manuals() {
        use Order::{Big, Little};
        // 123456.0 is 0x47f12000; manuals say ABCD, BADC, CDAB, DCBA.
        let expected = [
            (Big, Big, [0x47f1, 0x2000]),
            (Little, Big, [0xf147, 0x0020]),
            (Big, Little, [0x2000, 0x47f1]),
            (Little, Little, [0x0020, 0xf147]),
        ];
        for (bytes, words, registers) in expected {
            let point = point(ValueType::F32, bytes, words);
            assert_eq!(encoded(&point, 123_456.0), registers);
            assert_eq!(decode(&point, &registers), 123_456.0);
        }
    }

    #[test]
    fn every_type_has_the_bits_written_here_by_hand() {
        let cases: [(ValueType, f64, &[u16]); 11] = [
            (ValueType::Bool, 1.0, &[1]),
            (ValueType::U16, 65_535.0, &[0xffff]),
            (ValueType::I16, -2.0, &[0xfffe]),
            (ValueType::U32, 4_294_967_295.0, &[0xffff, 0xffff]),
            (ValueType::U32, 65_536.0, &[1, 0]),
            (ValueType::I32, -2.0, &[0xffff, 0xfffe]),
            (ValueType::I64, -2.0, &[0xffff, 0xffff, 0xffff, 0xfffe]),
            (ValueType::U64, 4_294_967_296.0, &[0, 1, 0, 0]),
            (ValueType::F32, -2.5, &[0xc020, 0]),
            (ValueType::F64, 1.0, &[0x3ff0, 0, 0, 0]),
            (ValueType::F64, -2.0, &[0xc000, 0, 0, 0]),
        ];
        for (value, number, registers) in cases {
            let point = point(value, Order::Big, Order::Big);
            assert_eq!(encoded(&point, number), registers, "{value:?} {number}");
            assert_eq!(decode(&point, registers), number, "{value:?} {number}");
        }
    }

    #[test]
    fn what_is_beyond_the_range_is_its_end_and_what_lies_between_is_rounded() {
        let cases: [(ValueType, f64, &[u16]); 6] = [
            (ValueType::U16, -1.0, &[0]),
            (ValueType::U16, 70_000.0, &[0xffff]),
            (ValueType::I16, -40_000.0, &[0x8000]),
            (ValueType::I16, 1.5, &[2]),
            (ValueType::U32, 1e300, &[0xffff, 0xffff]),
            (ValueType::F32, 1e300, &[0x7f7f, 0xffff]),
        ];
        for (value, number, registers) in cases {
            let point = point(value, Order::Big, Order::Big);
            assert_eq!(encoded(&point, number), registers, "{value:?} {number}");
        }
    }

    #[test]
    fn scale_and_offset_turn_a_devices_number_into_the_programs() {
        let celsius = Point {
            scale: 0.1,
            offset: -40.0,
            ..point(ValueType::U16, Order::Big, Order::Big)
        };
        assert!((decode(&celsius, &[650]) - 25.0).abs() < 1e-9);
        assert_eq!(encoded(&celsius, 25.0), [650]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            bits: u64, kind in 0..7usize, little_bytes: bool, little_words: bool,
        ) {
            let types = [
                ValueType::Bool, ValueType::U16, ValueType::I16, ValueType::U32, ValueType::I32,
                ValueType::F32, ValueType::F64,
            ];
            let order = |little| if little { Order::Little } else { Order::Big };
            let point = point(types[kind], order(little_bytes), order(little_words));
            let mut registers = Vec::new();
            scatter(&point, bits, &mut registers);
            prop_assert_eq!(registers.len(), usize::from(point.value.registers()));
            let number = decode(&point, &registers);
            if number.is_finite() {
                prop_assert_eq!(decode(&point, &encoded(&point, number)), number);
            }
        }
    }
}
