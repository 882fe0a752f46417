//! How values lie in Modbus registers (spec/field.md, F-1 to F-3): high word first, as the
//! registers themselves are high byte first, so that a value reads big endian on the wire.

use crate::OutputStamp;
use bumpless_base::{Epoch, NodeId};

/// First holding register of the output block.
pub const OUTPUT_BLOCK: u16 = 0;
/// Registers of the output block before the outputs.
pub const STAMP_REGISTERS: usize = 8;
/// Most registers in one write (Modbus Application Protocol V1.1b3, function 16).
pub const WRITE_REGISTERS_MAX: usize = 123;
/// Most registers in one read (function 4).
pub const READ_REGISTERS_MAX: usize = 125;
/// Most outputs that fit one indivisible write.
pub const OUTPUTS_MAX: usize = (WRITE_REGISTERS_MAX - STAMP_REGISTERS) / 2;

/// A 32-bit number from two registers at `at`.
pub fn get_u32(registers: &[u16], at: usize) -> Option<u32> {
    let pair = registers.get(at..at.checked_add(2)?)?;
    Some(u32::from(pair[0]) << 16 | u32::from(pair[1]))
}

/// A 64-bit number from four registers at `at`.
pub fn get_u64(registers: &[u16], at: usize) -> Option<u64> {
    let high = get_u32(registers, at)?;
    let low = get_u32(registers, at.checked_add(2)?)?;
    Some(u64::from(high) << 32 | u64::from(low))
}

/// A real number (IEEE 754 binary32) from two registers at `at`.
pub fn get_f32(registers: &[u16], at: usize) -> Option<f32> {
    get_u32(registers, at).map(f32::from_bits)
}

/// Appends a 32-bit number.
pub fn put_u32(registers: &mut Vec<u16>, value: u32) {
    registers.extend([(value >> 16) as u16, value as u16]);
}

/// Appends a 64-bit number.
pub fn put_u64(registers: &mut Vec<u16>, value: u64) {
    put_u32(registers, (value >> 32) as u32);
    put_u32(registers, value as u32);
}

/// Appends a real number as binary32.
pub fn put_f32(registers: &mut Vec<u16>, value: f64) {
    put_u32(registers, (value as f32).to_bits());
}

/// Writes the output block: stamp, then outputs.
pub fn put_output_block(registers: &mut Vec<u16>, stamp: OutputStamp, outputs: &[f64]) {
    put_u32(registers, stamp.epoch.0);
    registers.extend([u16::from(stamp.writer.0), 0]);
    put_u64(registers, stamp.cycle);
    outputs.iter().for_each(|value| put_f32(registers, *value));
}

/// Takes an output block apart; `None` if it is malformed.
pub fn get_output_block(registers: &[u16]) -> Option<(OutputStamp, Vec<f64>)> {
    let outputs = registers.get(STAMP_REGISTERS..)?;
    let writer = u8::try_from(registers[2]).ok()?;
    if registers[3] != 0 || outputs.len() % 2 != 0 {
        return None;
    }
    let stamp = OutputStamp {
        epoch: Epoch(get_u32(registers, 0)?),
        writer: NodeId(writer),
        cycle: get_u64(registers, 4)?,
    };
    let outputs = (0..outputs.len()).step_by(2);
    let outputs = outputs.filter_map(|at| get_f32(registers, STAMP_REGISTERS + at));
    Some((stamp, outputs.map(f64::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_output_block_is_the_documented_one() {
        let stamp = OutputStamp {
            epoch: Epoch(0x0001_0002),
            writer: NodeId(3),
            cycle: 0x0004_0005_0006_0007,
        };
        let mut registers = Vec::new();
        put_output_block(&mut registers, stamp, &[1.0, -2.5]);
        let expected = [1, 2, 3, 0, 4, 5, 6, 7, 0x3f80, 0, 0xc020, 0];
        assert_eq!(registers, expected);
        assert_eq!(get_output_block(&registers), Some((stamp, vec![1.0, -2.5])));
    }

    proptest! {
        #[test]
        fn any_registers_are_read_without_panic(
            registers in proptest::collection::vec(any::<u16>(), 0..130), at: usize,
        ) {
            let _ = (get_output_block(&registers), get_u64(&registers, at), get_f32(&registers, at));
        }
    }
}
