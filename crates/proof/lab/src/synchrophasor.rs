//! Data frames of a phasor measurement unit (IEEE C37.118.2, 6.4).

/// Six phasors in whole numbers, no analog value, one digital word.
pub const LEN: usize = 48;
/// Fractions of a second are counted in microseconds.
const TIME_BASE: u32 = 1_000_000;

/// Data frame number `number` of the stream that the unit `id` has at `rate` frames a second, a divisor of a million.
pub fn frame(id: u16, rate: u32, number: u32) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    let fraction = number % rate * (TIME_BASE / rate);
    bytes[..4].copy_from_slice(&[0xAA, 0x01, 0, LEN as u8]);
    bytes[4..6].copy_from_slice(&id.to_be_bytes());
    bytes[6..10].copy_from_slice(&(number / rate).to_be_bytes());
    bytes[10..14].copy_from_slice(&fraction.to_be_bytes());
    for (at, phasor) in bytes[16..40].chunks_exact_mut(4).enumerate() {
        phasor.copy_from_slice(&[0x39, 0x1A, at as u8, number as u8]);
    }
    let sum = checksum(&bytes[..LEN - 2]);
    bytes[LEN - 2..].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// The unit and the number of a data frame; `None` for what is none.
pub fn number_in(rate: u32, bytes: &[u8]) -> Option<(u16, u32)> {
    let bytes: &[u8; LEN] = bytes.try_into().ok()?;
    let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
    let sum = u16::from_be_bytes([bytes[LEN - 2], bytes[LEN - 1]]);
    let is_right = bytes[..2] == [0xAA, 0x01] && checksum(&bytes[..LEN - 2]) == sum;
    let id = u16::from_be_bytes([bytes[4], bytes[5]]);
    let seconds = word(6).checked_mul(rate)?;
    let number = seconds.checked_add(word(10) / (TIME_BASE / rate))?;
    is_right.then_some((id, number))
}

/// CRC-CCITT as C37.118.2 has it: begun with all ones, nothing reflected.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xFFFF, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc: u16, _| {
            let is_set = crc & 0x8000 != 0;
            crc << 1 ^ if is_set { 0x1021 } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_standards_checksum_and_tell_their_unit_and_number() {
        // The check value of CRC-16/CCITT-FALSE.
        assert_eq!(checksum(b"123456789"), 0x29B1);
        for rate in [10, 50] {
            for number in [0, 49, 50, 123_456] {
                let told = number_in(rate, &frame(300, rate, number));
                assert_eq!(told, Some((300, number)));
            }
        }
        let mut bent = frame(7, 50, 7);
        bent[20] ^= 1;
        assert_eq!(number_in(50, &bent), None);
        assert_eq!(number_in(50, &frame(7, 50, 7)[..LEN - 1]), None);
    }
}
