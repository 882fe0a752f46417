//! What comes in a session with a key server, and what a member takes over of it.

use bumpless_base::{Duration, Instant};
use bumpless_keys::{LONGEST, Message, take, write};
use bumpless_secure::group::{KEYS_MAX, Schedule};
use bumpless_secure::{Keyring, RingSuite};

/// Reads `bytes` as they come in pieces of the length that the first one says, and takes over the keys that are in them.
///
/// # Panics
/// If a message is not the same when it is written again, if it hangs on the pieces what is read, if more is kept than a message
/// may have, or if the keys of a member at any time make no ring.
pub fn run(bytes: &[u8]) {
    let Some((&piece, bytes)) = bytes.split_first() else {
        return;
    };
    let (whole, refused) = read(bytes, bytes.len().max(1));
    let cut = read(bytes, usize::from(piece).max(1));
    assert!((&whole, refused) == (&cut.0, cut.1));
    let (mut member, mut now) = (Schedule::default(), Instant::from_nanos(1 << 40));
    for message in &whole {
        if let Message::Answer(grant) | Message::Push(grant) = message {
            let before = member.clone();
            if member.take(grant, now, now).is_err() {
                let places = |of: &Schedule| of.keys().len();
                assert!(
                    places(&member) <= places(&before),
                    "what is refused gives nothing"
                );
            }
        }
        check(&member, now);
        now += Duration::from_millis(u64::from(piece) * 10);
    }
    for _ in 0..4 * KEYS_MAX {
        let Some(next) = member.next_change(now) else {
            return;
        };
        now = next;
        member.handle_timeout(now);
        check(&member, now);
    }
}

fn check(member: &Schedule, now: Instant) {
    let ring = member.ring(now);
    let secrets: Vec<_> = ring.iter().map(|held| held.key.secret()).collect();
    if !secrets.is_empty() {
        Keyring::<RingSuite>::new(secrets).expect("no two keys have one identifier");
    }
    assert_eq!(ring.first().map(|it| it.place), member.place(now));
}

/// The messages, and whether what came after them was refused.
fn read(bytes: &[u8], piece: usize) -> (Vec<Message>, bool) {
    let (mut arrived, mut heard) = (Vec::new().into(), Vec::new());
    for piece in bytes.chunks(piece) {
        let arrived: &mut zeroize::Zeroizing<Vec<u8>> = &mut arrived;
        arrived.extend_from_slice(piece);
        loop {
            match take(arrived) {
                Ok(Some(message)) => {
                    let mut again = Vec::new().into();
                    write(&message, &mut again);
                    let back = take(&mut again).expect("what was written is read");
                    assert!(back.as_ref() == Some(&message) && again.is_empty());
                    heard.push(message);
                }
                Ok(None) => break,
                Err(_) => return (heard, true),
            }
        }
        assert!(arrived.len() < LONGEST + 4 + piece.len());
    }
    (heard, false)
}
