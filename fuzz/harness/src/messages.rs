//! What comes in a session, once that has been made.

use bumpless_management::{LONGEST, take, write};

/// Reads `bytes` as they come in pieces of the length that the first one says.
///
/// # Panics
/// If a message is not the same when it is written and read again, if it hangs on the pieces what is read, or if more is kept than
/// a message may have.
pub fn run(bytes: &[u8]) {
    let Some((&piece, bytes)) = bytes.split_first() else {
        return;
    };
    let whole = read(bytes, bytes.len().max(1));
    assert_eq!(whole, read(bytes, usize::from(piece).max(1)));
}

/// The messages, and whether what came after them was refused.
fn read(bytes: &[u8], piece: usize) -> (Vec<String>, bool) {
    let (mut arrived, mut heard) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        arrived.extend_from_slice(piece);
        loop {
            match take(&mut arrived) {
                Ok(Some(message)) => {
                    let mut again = Vec::new();
                    write(&message, &mut again);
                    let back = take(&mut again).expect("what was written is read");
                    assert_eq!(back.as_ref(), Some(&message));
                    assert!(again.is_empty());
                    heard.push(format!("{message:?}"));
                }
                Ok(None) => break,
                Err(_) => return (heard, true),
            }
        }
        assert!(arrived.len() < LONGEST + 4 + piece.len());
    }
    (heard, false)
}
