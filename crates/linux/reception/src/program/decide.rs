//! Whether a flow's budget covers a frame, as `bumpless_guard`'s deferrable server has it (V-14, V-51).

use super::{Clocks, DROP, Maps, PASS, Ways};
use crate::layout::{Cause, USED_BITS, USED_MAX, budget};
use bumpless_bpf::{
    Assembler, Condition::*, Helper, Label, Operation::*, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9,
    STACK, Size,
};

/// Where the number of the flow is put for the kernel.
const INDEX: i16 = -4;

/// Decides on the flow whose number is in `R8`, and on those of [`Ways`].
pub fn decide(code: &mut Assembler, ways: &Ways, (registered, clocks): (u32, Clocks), maps: Maps) {
    let number = |place: u32| (registered + place) as i32;
    let built_in = [ways.resolution, ways.icmp, ways.fragment];
    for (place, label) in (0..).zip(built_in) {
        code.here(label);
        code.number(Move, R8, number(place));
        code.jump(ways.found);
    }
    code.here(ways.unknown);
    code.number(Move, R8, number(4));
    code.here(ways.found);
    let (pass, drop, closed) = (code.label(), code.label(), code.label());
    let beyond = code.label();
    code.store(Size::Word, STACK, INDEX, R8);
    look_up(code, maps.budgets, beyond);
    code.register(Move, R9, R0);
    server(code, clocks, (pass, drop, closed));
    for (label, cause, answer) in [
        (closed, Cause::Closed, DROP),
        (drop, Cause::Capacity, DROP),
        (pass, Cause::Passed, PASS),
    ] {
        code.here(label);
        count(code, maps, cause, answer);
    }
    code.here(beyond);
    answer(code, PASS);
}

/// `R0` becomes what the map has for the flow; goes to `none` if it has nothing, which the verifier cannot know better.
fn look_up(code: &mut Assembler, map: i32, none: Label) {
    code.map(R1, map);
    code.register(Move, R2, STACK);
    code.number(Add, R2, INDEX.into());
    code.call(Helper::LookUp);
    code.jump_if(R0, Equal, 0, none);
}

/// The deferrable server with its budget at `R9`, without a lock: the number of the period and what was used in it are one word.
fn server(code: &mut Assembler, clocks: Clocks, (pass, drop, closed): (Label, Label, Label)) {
    let (over, counted, used) = (code.label(), code.label(), code.label());
    let (fine, read) = (code.label(), code.label());
    code.load(Size::Double, R7, R9, budget::CAPACITY);
    code.jump_if(R7, Equal, 0, closed);
    // Without a rate the period is zero.
    code.load(Size::Double, R6, R9, budget::PERIOD);
    code.jump_if(R6, Equal, 0, pass);
    code.jump_if(R6, Less, clocks.fine_below, fine);
    code.call(Helper::Now);
    code.jump(read);
    code.here(fine);
    code.call(Helper::Time);
    code.here(read);
    code.load(Size::Double, R1, R9, budget::END);
    code.jump_if_register(R0, NotLess, R1, over);
    code.load(Size::Double, R2, R9, budget::WORD);
    code.number(And, R2, USED_MAX);
    code.jump_if_register(R2, NotLess, R7, drop);
    code.jump(used);

    // R3 becomes the number of the period.
    code.here(over);
    code.load(Size::Double, R1, R9, budget::START);
    code.register(Subtract, R0, R1);
    code.register(Divide, R0, R6);
    code.register(Move, R3, R0);
    code.load(Size::Double, R0, R9, budget::WORD);
    code.register(Move, R2, R0);
    code.number(Right, R2, USED_BITS);
    code.jump_if_register(R2, NotLess, R3, counted);
    code.register(Move, R4, R3);
    code.number(Left, R4, USED_BITS);
    code.number(Or, R4, 1);
    code.register(Move, R5, R0);
    code.compare_exchange(R9, budget::WORD, R4);
    code.jump_if_register(R0, NotEqual, R5, counted);
    // Behind the change of the word: who sees this end sees that period, or a later one.
    code.number(Add, R3, 1);
    code.register(Multiply, R3, R6);
    code.register(Add, R3, R1);
    code.store(Size::Double, R9, budget::END, R3);
    code.jump(pass);

    // Another processor has begun this period or a later one: it counts.
    code.here(counted);
    code.load(Size::Double, R2, R9, budget::WORD);
    code.number(And, R2, USED_MAX);
    code.jump_if_register(R2, NotLess, R7, drop);

    code.here(used);
    code.number(Move, R1, 1);
    code.fetch_add(R9, budget::WORD, R1);
    code.number(And, R1, USED_MAX);
    code.jump_if_register(R1, Less, R7, pass);
    code.jump(drop);
}

/// Counts the frame under `cause`, and ends.
fn count(code: &mut Assembler, maps: Maps, cause: Cause, verdict: i32) {
    let none = code.label();
    look_up(code, maps.counts, none);
    code.load(Size::Double, R1, R0, cause.offset());
    code.number(Add, R1, 1);
    code.store(Size::Double, R0, cause.offset(), R1);
    code.here(none);
    answer(code, verdict);
}

/// Ends with this answer.
pub fn answer(code: &mut Assembler, verdict: i32) {
    code.number(Move, R0, verdict);
    code.exit();
}
