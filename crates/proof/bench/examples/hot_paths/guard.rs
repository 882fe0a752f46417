//! Deciding on a frame: what it is for, whether its budget allows it, which is worked off next.

use bumpless_base::{Duration, Instant};
use bumpless_guard::{Flow, Guard, Match, Priority, Rate, Setup, Terms, Transport, Verdict};

/// Frames in a round.
pub const FRAMES: u64 = 32;
const FLOWS: u16 = 64;

/// Flows of every kind of pattern, each with a budget that suffices.
fn guard() -> Guard<u32> {
    let terms = Terms {
        priority: Priority(9),
        rate: Some(Rate {
            capacity: u32::MAX,
            period: Duration::from_millis(1),
        }),
        queue: 100,
    };
    let flow = |at: u16| Flow {
        matches: vec![match at % 3 {
            0 => Match::Port(Transport::Udp, 4_700 + at),
            1 => Match::PortFrom(Transport::Udp, 4_700 + at, [10, 0, 0, 1].into()),
            _ => Match::Answers(Transport::Tcp, [10, 0, 0, 1].into(), 502 + at),
        }],
        terms,
    };
    let setup = Setup {
        flows: (0..FLOWS).map(flow).collect(),
        ..Setup::closed(256)
    };
    Guard::new(&setup, Instant::ZERO).expect("a sound setup")
}

fn frame(port: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 128, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 9, 9]);
    frame.extend(port.to_be_bytes());
    frame.resize(142, 0);
    frame
}

/// Frames that are wanted come in, and are taken.
pub fn wanted(rounds: u64) {
    let (mut guard, frame) = (guard(), frame(4_763));
    for round in 0..rounds {
        let now = Instant::from_nanos(round * 40_000);
        for token in 0..FRAMES as u32 {
            let verdict = guard.handle_frame(now, &frame, frame.len(), token);
            assert!(matches!(verdict, Verdict::Queued { .. }));
        }
        while guard.poll_frame().is_some() {}
    }
}

/// Frames to ports that nobody registered.
pub fn flood(rounds: u64) {
    let mut guard = guard();
    let frames: Vec<_> = (0..FRAMES as u16).map(|at| frame(1 + at * 99)).collect();
    for round in 0..rounds {
        let now = Instant::from_nanos(round * 40_000);
        for frame in &frames {
            let verdict = guard.handle_frame(now, frame, frame.len(), 0);
            assert!(matches!(verdict, Verdict::Refused { .. }));
        }
    }
}
