//! Values as a server has them, and as the node has them.

use bumpless_field_driver::{Quality, Value, ValueKind};
use opcua::types::{AttributeId, DataValue, NodeId, NumericRange, StatusCode, Variant, WriteValue};

/// What was read of a value of type `kind` by a request that left at `taken_at`.
pub fn read(kind: ValueKind, found: &DataValue, taken_at: u64) -> Value {
    let status = found.status();
    let quality = match (status.is_bad(), status.is_uncertain()) {
        (true, _) => Quality::Bad,
        (_, true) => Quality::Uncertain,
        _ => Quality::Good,
    };
    let number = found.value.as_ref().and_then(|value| number(kind, value));
    match (quality, number) {
        // A value without the configured type says nothing of the process.
        (Quality::Good | Quality::Uncertain, None) => bad(StatusCode::BadTypeMismatch, taken_at),
        (_, number) => Value {
            quality,
            status: status.bits(),
            taken_at,
            value: number.unwrap_or(0.0),
        },
    }
}

/// No value, for this reason.
pub fn bad(status: StatusCode, taken_at: u64) -> Value {
    Value {
        quality: Quality::Bad,
        status: status.bits(),
        taken_at,
        value: 0.0,
    }
}

fn number(kind: ValueKind, value: &Variant) -> Option<f64> {
    Some(match (kind, value) {
        (ValueKind::Bool, Variant::Boolean(it)) => f64::from(u8::from(*it)),
        (ValueKind::I8, Variant::SByte(it)) => f64::from(*it),
        (ValueKind::U8, Variant::Byte(it)) => f64::from(*it),
        (ValueKind::I16, Variant::Int16(it)) => f64::from(*it),
        (ValueKind::U16, Variant::UInt16(it)) => f64::from(*it),
        (ValueKind::I32, Variant::Int32(it)) => f64::from(*it),
        (ValueKind::U32, Variant::UInt32(it)) => f64::from(*it),
        (ValueKind::I64, Variant::Int64(it)) => *it as f64,
        (ValueKind::U64, Variant::UInt64(it)) => *it as f64,
        (ValueKind::F32, Variant::Float(it)) => f64::from(*it),
        (ValueKind::F64, Variant::Double(it)) => *it,
        _ => return None,
    })
}

/// What is written to `node`; the number is within the range of its type, and whole where that is.
pub fn written(kind: ValueKind, node: &NodeId, number: f64) -> WriteValue {
    let value = match kind {
        ValueKind::Bool => Variant::Boolean(number >= 0.5),
        ValueKind::I8 => Variant::SByte(number as i8),
        ValueKind::U8 => Variant::Byte(number as u8),
        ValueKind::I16 => Variant::Int16(number as i16),
        ValueKind::U16 => Variant::UInt16(number as u16),
        ValueKind::I32 => Variant::Int32(number as i32),
        ValueKind::U32 => Variant::UInt32(number as u32),
        ValueKind::I64 => Variant::Int64(number as i64),
        ValueKind::U64 => Variant::UInt64(number as u64),
        ValueKind::F32 => Variant::Float(number as f32),
        ValueKind::F64 => Variant::Double(number),
    };
    WriteValue {
        node_id: node.clone(),
        attribute_id: AttributeId::Value as u32,
        index_range: NumericRange::None,
        // Many servers refuse what has a status or a time of the client's.
        value: DataValue {
            value: Some(value),
            ..DataValue::null()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: Variant, status: Option<StatusCode>) -> DataValue {
        DataValue {
            value: Some(value),
            status,
            ..DataValue::null()
        }
    }

    #[test]
    fn every_type_is_read_back_as_it_was_written() {
        for &kind in ValueKind::ALL {
            let number = if kind == ValueKind::Bool { 1.0 } else { 101.0 };
            let written = written(kind, &NodeId::new(2, 1_u32), number);
            let read = read(kind, &written.value, 5);
            assert_eq!(
                (read.value, read.quality),
                (number, Quality::Good),
                "{kind:?}"
            );
            assert_eq!(written.value.status, None);
            assert_eq!(written.value.source_timestamp, None);
        }
    }

    #[test]
    fn the_severity_of_a_status_is_the_quality() {
        let uncertain = StatusCode::UncertainLastUsableValue;
        for (status, quality) in [
            (None, Quality::Good),
            (Some(StatusCode::GoodLocalOverride), Quality::Good),
            (Some(uncertain), Quality::Uncertain),
            (Some(StatusCode::BadSensorFailure), Quality::Bad),
        ] {
            let it = read(ValueKind::F64, &found(Variant::Double(2.5), status), 5);
            assert_eq!(it.quality, quality, "{status:?}");
            assert_eq!(it.status, status.map_or(0, |it| it.bits()));
            assert_eq!((it.value, it.taken_at), (2.5, 5));
        }
    }

    #[test]
    fn a_value_of_another_type_and_one_that_is_not_there_are_bad() {
        let other = found(Variant::Float(2.5), None);
        let none = DataValue::null();
        for found in [other, none] {
            let it = read(ValueKind::F64, &found, 5);
            assert_eq!((it.quality, it.status), (Quality::Bad, 0x8074_0000));
        }
    }
}
