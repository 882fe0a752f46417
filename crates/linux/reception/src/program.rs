//! The program at the driver: what a frame is for, whether its flow's budget covers it, and a count of either.
//!
//! It is written for one list of flows and decides as `bumpless_guard` does (V-50); what follows depends on nothing but
//! the frame, the clock and the maps.

mod classify;
mod decide;
mod quick;

use crate::layout::{Quick, Shapes};
use bumpless_bpf::{Assembler, Instruction, Label};

/// What the kernel does with a frame (`enum xdp_action`).
const DROP: i32 = 1;
/// See [`DROP`].
const PASS: i32 = 2;

/// Descriptors of the maps that the program uses.
#[derive(Clone, Copy, Debug)]
pub struct Maps {
    /// The budget of each flow.
    pub budgets: i32,
    /// Counts, by flow, for each processor.
    pub counts: i32,
    /// The flow of each port, UDP's before TCP's.
    pub ports: i32,
    /// The flow of each pattern with an address.
    pub senders: i32,
}

/// Which clock a budget goes by.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Periods shorter than so many nanoseconds are measured by the clock itself, longer ones by the last tick.
    pub fine_below: i32,
}

impl Clocks {
    /// For a kernel whose ticks come each `tick` nanoseconds. By ticks a period of one tick may seem to last two, so that twice as much
    /// came in it; all periods that are shorter would be none.
    pub fn with_ticks_each(tick: u64) -> Self {
        Self {
            fine_below: i32::try_from(tick.saturating_mul(2)).unwrap_or(i32::MAX),
        }
    }
}

/// Where a frame's way goes on.
struct Ways {
    resolution: Label,
    icmp: Label,
    fragment: Label,
    unknown: Label,
    /// The flow's index is in `R8`.
    found: Label,
}

impl Ways {
    fn new(code: &mut Assembler) -> Self {
        Self {
            resolution: code.label(),
            icmp: code.label(),
            fragment: code.label(),
            unknown: code.label(),
            found: code.label(),
        }
    }
}

/// The program for `registered` flows and the five others, with patterns of these shapes, of which these are looked for first.
pub fn program(
    (registered, clocks): (u32, Clocks),
    (shapes, quick): (Shapes, &[Quick]),
    maps: Maps,
) -> Vec<Instruction> {
    let mut code = Assembler::default();
    let ways = Ways::new(&mut code);
    classify::begin(&mut code);
    let slow = code.label();
    quick::find(&mut code, (&ways, slow), quick);
    code.here(slow);
    classify::classify(&mut code, &ways, shapes, maps);
    decide::decide(&mut code, &ways, (registered, clocks), maps);
    code.finish()
}

/// A program that passes every frame: what there is to compare the cost with.
pub fn pass_all() -> Vec<Instruction> {
    let mut code = Assembler::default();
    decide::answer(&mut code, PASS);
    code.finish()
}

/// A program that drops every frame: the least that one costs.
pub fn drop_all() -> Vec<Instruction> {
    let mut code = Assembler::default();
    decide::answer(&mut code, DROP);
    code.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::QUICK_MAX;
    use bumpless_bpf::longest_way;

    const MAPS: Maps = Maps {
        budgets: 3,
        counts: 4,
        ports: 5,
        senders: 6,
    };

    /// Of a frame with all extension headers (V-56). Longer may be right: then the specification says so.
    const LONGEST: usize = 385;
    /// Of a frame that is found first (V-106).
    const QUICK: usize = 100;

    fn all_quick() -> Vec<Quick> {
        let quick = |at| Quick {
            port: 4700,
            address: [10, 9, 0, at],
            flow: u32::from(at),
        };
        (0..QUICK_MAX as u8).map(quick).collect()
    }

    #[test]
    fn no_frame_takes_more_instructions_than_the_specification_says_however_many_flows_there_are() {
        let all = Shapes::ALL;
        for (registered, shapes) in [(0, Shapes::default()), (4, all), (4096, all)] {
            let clocks = Clocks::with_ticks_each(4_000_000);
            let what = (shapes, &*all_quick());
            let longest = longest_way(&program((registered, clocks), what, MAPS));
            assert!(longest <= LONGEST, "{longest} with {registered} flows");
        }
        assert_eq!(longest_way(&drop_all()), 2);
    }

    #[test]
    fn a_frame_that_is_found_first_takes_few_instructions_whichever_of_them_it_is() {
        let mut code = Assembler::default();
        let ways = Ways::new(&mut code);
        classify::begin(&mut code);
        // Without the way that all other frames take.
        quick::find(&mut code, (&ways, ways.unknown), &all_quick());
        decide::decide(
            &mut code,
            &ways,
            (4, Clocks::with_ticks_each(4_000_000)),
            MAPS,
        );
        let longest = longest_way(&code.finish());
        assert!(longest <= QUICK, "{longest}");
    }
}
