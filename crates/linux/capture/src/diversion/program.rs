//! The two programs in the kernel: one hands packets over when a socket has sent them, the other one takes what was handed over off
//! the interface.

use bumpless_bpf::{
    Assembler, Condition, Helper, Instruction, Label, Operation, R0, R1, R2, R3, R4, R6, R7, R8,
    R9, STACK, Size,
};

use super::Marks;

/// Bytes before the packet in each record: the interface by which it would leave, its length, the length of its segments (0: it is
/// one), and four of nothing.
pub const HEAD: usize = 16;
/// Longest packet of a short record, and of a long one.
const LONGEST_SHORT: usize = 512 - HEAD;
/// See [`LONGEST_SHORT`].
pub const LONGEST: usize = 2048 - HEAD;

/// Where a program finds things (`struct __sk_buff`).
mod field {
    pub const LEN: i16 = 0;
    pub const MARK: i16 = 8;
    pub const INTERFACE: i16 = 40;
    pub const SEGMENT_LEN: i16 = 176;
}

/// A socket's packet goes on (`BPF_PROG_TYPE_CGROUP_SKB`).
const GO_ON: i32 = 1;
/// The next program is asked (`enum tcx_action_base`).
const NEXT: i32 = -1;
/// A number that no interface has.
const NOWHERE: i32 = i32::MAX;

/// Descriptors of what the first program uses.
#[derive(Clone, Copy, Debug)]
pub struct Maps {
    /// Interfaces at which the second program is, by number.
    pub watched: i32,
    /// Where packets go.
    pub ring: i32,
    /// How many found the ring full.
    pub full: i32,
}

/// Hands over each packet with the mark of those that are to be, gives it the other mark, and lets it go on. What cannot be handed
/// over loses its mark, and leaves as it is.
pub fn hand_over(marks: Marks, maps: Maps) -> Vec<Instruction> {
    let mut code = Assembler::default();
    let (full, plain, go_on, long) = (code.label(), code.label(), code.label(), code.label());
    code.register(Operation::Move, R6, R1);
    code.load(Size::Word, R1, R6, field::MARK);
    code.jump_if(R1, Condition::NotEqual, marks.wanted as i32, go_on);
    code.load(Size::Word, R7, R6, field::INTERFACE);
    code.store(Size::Word, STACK, -4, R7);
    code.map(R1, maps.watched);
    code.register(Operation::Move, R2, STACK);
    code.number(Operation::Add, R2, -4);
    code.call(Helper::LookUp);
    code.jump_if(R0, Condition::Equal, 0, plain);
    code.load(Size::Word, R8, R6, field::LEN);
    // Not "equal to 0": before Linux 6.8 the verifier learns no least length of that.
    code.jump_if(R8, Condition::Less, 1, plain);
    code.jump_if(R8, Condition::Greater, LONGEST_SHORT as i32, long);
    record(&mut code, LONGEST_SHORT, marks, maps.ring, full);
    code.here(long);
    code.jump_if(R8, Condition::Greater, LONGEST as i32, plain);
    record(&mut code, LONGEST, marks, maps.ring, full);
    code.here(full);
    code.map_value(R1, maps.full);
    code.number(Operation::Move, R2, 1);
    code.fetch_add(R1, 0, R2);
    code.here(plain);
    code.number(Operation::Move, R1, 0);
    code.store(Size::Word, R6, field::MARK, R1);
    code.here(go_on);
    answer(&mut code, GO_ON);
    code.finish()
}

/// A record of one length, in which the packet finds room: context, interface and length are in `R6`, `R7`, `R8`.
fn record(code: &mut Assembler, longest: usize, marks: Marks, ring: i32, full: Label) {
    const HEAD_LEN: i32 = HEAD as i32;
    let (filled, unreadable) = (code.label(), code.label());
    code.map(R1, ring);
    code.number(Operation::Move, R2, HEAD_LEN + longest as i32);
    code.number(Operation::Move, R3, 0);
    code.call(Helper::RingReserve);
    code.jump_if(R0, Condition::Equal, 0, full);
    code.register(Operation::Move, R9, R0);
    code.store(Size::Word, R9, 0, R7);
    code.store(Size::Word, R9, 4, R8);
    code.load(Size::Word, R1, R6, field::SEGMENT_LEN);
    code.store(Size::Word, R9, 8, R1);
    code.store_number(Size::Word, R9, 12, 0);
    code.register(Operation::Move, R1, R6);
    code.number(Operation::Move, R2, 0);
    code.register(Operation::Move, R3, R9);
    code.number(Operation::Add, R3, HEAD_LEN);
    code.register(Operation::Move, R4, R8);
    code.call(Helper::LoadBytes);
    code.jump_if(R0, Condition::Equal, 0, filled);
    code.jump(unreadable);
    code.here(filled);
    code.number(Operation::Move, R1, marks.handed_over as i32);
    code.store(Size::Word, R6, field::MARK, R1);
    code.register(Operation::Move, R1, R9);
    code.number(Operation::Move, R2, 0);
    code.call(Helper::RingSubmit);
    answer(code, GO_ON);
    code.here(unreadable);
    code.register(Operation::Move, R1, R9);
    code.number(Operation::Move, R2, 0);
    code.call(Helper::RingDiscard);
    code.number(Operation::Move, R1, 0);
    code.store(Size::Word, R6, field::MARK, R1);
    answer(code, GO_ON);
}

/// Takes each packet that was handed over off the interface. A verdict to drop it would be told its sender (ENOBUFS); so it is led
/// to an interface that does not exist, which for the sender is a success.
pub fn take_off(marks: Marks) -> Vec<Instruction> {
    let mut code = Assembler::default();
    let other = code.label();
    code.load(Size::Word, R1, R1, field::MARK);
    code.jump_if(R1, Condition::NotEqual, marks.handed_over as i32, other);
    code.number(Operation::Move, R1, NOWHERE);
    code.number(Operation::Move, R2, 0);
    code.call(Helper::Redirect);
    code.exit();
    code.here(other);
    answer(&mut code, NEXT);
    code.finish()
}

fn answer(code: &mut Assembler, number: i32) {
    code.number(Operation::Move, R0, number);
    code.exit();
}
