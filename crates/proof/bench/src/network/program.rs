//! The packet filter as instructions of the kernel's virtual machine (eBPF), put together here because
//! a few dozen of them need neither a compiler nor a loader.
//!
//! What is counted is a packet of IPv4 that carries anything above TCP, or at least
//! [`control::THRESHOLD`] bytes above UDP (a later fragment: above IP) that do not begin as
//! [`control::SKIP`] says, so that neither acknowledgements nor heartbeats count.

/// Byte offsets in the block of 64-bit numbers that a filter and its owner share.
pub mod control {
    /// Least payload of a datagram that counts.
    pub const THRESHOLD: i16 = 0;
    /// Packets counted.
    pub const SEEN: i16 = 8;
    /// The first packet to drop, counted from 0.
    pub const FIRST: i16 = 16;
    /// How many to drop from there.
    pub const COUNT: i16 = 24;
    /// Packets dropped, but for those of a cut.
    pub const DROPPED: i16 = 32;
    /// Chance of each packet, in 2^-32.
    pub const CHANCE: i16 = 40;
    /// Drop the first packet after each so many nanoseconds.
    pub const EVERY: i16 = 48;
    /// When the next one of those is due.
    pub const NEXT: i16 = 56;
    /// Cut the network when so many packets have been counted; 0 = never.
    pub const CUT_AT: i16 = 64;
    /// Packets that a cut has swallowed.
    pub const CUT: i16 = 72;
    /// The first two bytes of datagrams that do not count; 0 = all count.
    pub const SKIP: i16 = 80;
    /// Bytes of the block.
    pub const SIZE: usize = 88;
}

/// One instruction: operation, registers, offset, number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

const LOAD_BYTE: u8 = 0x71;
const LOAD_HALF: u8 = 0x69;
const LOAD: u8 = 0x79;
const STORE: u8 = 0x7b;
const ATOMIC: u8 = 0xdb;
const MOVE_NUMBER: u8 = 0xb7;
const MOVE: u8 = 0xbf;
const ADD_NUMBER: u8 = 0x07;
const ADD: u8 = 0x0f;
const SUBTRACT: u8 = 0x1f;
const AND_NUMBER: u8 = 0x57;
const LEFT_NUMBER: u8 = 0x67;
const RIGHT_NUMBER: u8 = 0x77;
const TO_BIG_ENDIAN: u8 = 0xdc;
const JUMP: u8 = 0x05;
const JUMP_EQUAL: u8 = 0x15;
const JUMP_SAME: u8 = 0x1d;
const JUMP_SIGNED_BELOW: u8 = 0xc5;
const JUMP_NOT_EQUAL: u8 = 0x55;
const JUMP_LESS: u8 = 0xad;
const JUMP_NOT_LESS: u8 = 0x3d;
const JUMP_SIGNED_LESS: u8 = 0xcd;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const LOAD_WIDE: u8 = 0x18;
/// Marks a wide load's number as a map's descriptor whose first value is meant.
const MAP_VALUE: u8 = 2;
const FETCH_ADD: i32 = 1;

const TIME: i32 = 5;
const RANDOM: i32 = 7;
const LOAD_PACKET: i32 = 26;

/// Answers to the kernel.
const GO_ON: i32 = -1;
const DROP: i32 = 2;

const ETHERNET: i32 = 14;
const IP_HEADER: i32 = 20;
const UDP: i32 = 17;
const TCP: i32 = 6;

/// Registers: what calls return, their arguments, what survives calls, and the stack's end.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const PACKET: u8 = 6;
const BLOCK: u8 = 7;
const HEADER: u8 = 8;
const PAYLOAD: u8 = 9;
const STACK: u8 = 10;
/// Where the IP header is put on the stack.
const IP: i16 = -32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Measured,
    Counted,
    Tcp,
    Random,
    Periodic,
    Drop,
    Pass,
    NotCut,
    Swallow,
}

#[derive(Default)]
struct Assembler {
    code: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Assembler {
    fn put(&mut self, code: u8, to: u8, from: u8, offset: i16, number: i32) {
        self.code.push(Instruction {
            code,
            registers: (from << 4) | to,
            offset,
            number,
        });
    }
    fn load(&mut self, code: u8, to: u8, from: u8, offset: i16) {
        self.put(code, to, from, offset, 0);
    }
    fn number(&mut self, code: u8, to: u8, number: i32) {
        self.put(code, to, 0, 0, number);
    }
    fn registers(&mut self, code: u8, to: u8, from: u8) {
        self.put(code, to, from, 0, 0);
    }
    fn call(&mut self, function: i32) {
        self.put(CALL, 0, 0, 0, function);
    }
    fn jump(&mut self, code: u8, left: u8, right: u8, number: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(code, left, right, 0, number);
    }
    fn label(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }
    fn answer(&mut self, number: i32) {
        self.number(MOVE_NUMBER, R0, number);
        self.put(EXIT, 0, 0, 0, 0);
    }
    /// Adds one to a number of the block; `R2` becomes what it was.
    fn count(&mut self, offset: i16) {
        self.number(MOVE_NUMBER, R2, 1);
        self.put(ATOMIC, BLOCK, R2, offset, FETCH_ADD);
    }
    /// Copies `length` bytes of the packet from `R2` on to the stack; passes the packet if it is shorter.
    fn fetch(&mut self, to: i16, length: i32) {
        self.registers(MOVE, R1, PACKET);
        self.registers(MOVE, R3, STACK);
        self.number(ADD_NUMBER, R3, to.into());
        self.number(MOVE_NUMBER, R4, length);
        self.call(LOAD_PACKET);
        self.jump(JUMP_NOT_EQUAL, R0, 0, 0, Label::Pass);
    }
    fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let target = self.labels.iter().find(|(known, _)| *known == label);
            let target = target.map_or(at + 1, |(_, target)| *target);
            self.code[at].offset = (target as i32 - at as i32 - 1) as i16;
        }
        self.code
    }
}

/// The filter of the direction in which states travel: counts and drops as the block of the map
/// `block` says, and is cut with the network.
pub fn forward(block: i32) -> Vec<Instruction> {
    let mut code = Assembler::default();
    cut(&mut code, block);
    payload_length(&mut code);
    code.label(Label::Measured);
    code.load(LOAD, R1, BLOCK, control::THRESHOLD);
    code.jump(JUMP_SIGNED_LESS, PAYLOAD, R1, 0, Label::Pass);
    code.label(Label::Counted);
    code.count(control::SEEN);
    code.load(LOAD, R3, BLOCK, control::FIRST);
    code.jump(JUMP_LESS, R2, R3, 0, Label::Random);
    code.load(LOAD, R4, BLOCK, control::COUNT);
    code.registers(ADD, R3, R4);
    code.jump(JUMP_LESS, R2, R3, 0, Label::Drop);
    code.label(Label::Random);
    code.call(RANDOM);
    code.number(LEFT_NUMBER, R0, 32);
    code.number(RIGHT_NUMBER, R0, 32);
    code.load(LOAD, R3, BLOCK, control::CHANCE);
    code.jump(JUMP_LESS, R0, R3, 0, Label::Drop);
    code.label(Label::Periodic);
    code.load(LOAD, R3, BLOCK, control::EVERY);
    code.jump(JUMP_EQUAL, R3, 0, 0, Label::Pass);
    code.call(TIME);
    code.load(LOAD, R3, BLOCK, control::NEXT);
    code.jump(JUMP_LESS, R0, R3, 0, Label::Pass);
    code.load(LOAD, R4, BLOCK, control::EVERY);
    code.registers(ADD, R0, R4);
    code.put(STORE, BLOCK, R0, control::NEXT, 0);
    code.label(Label::Drop);
    code.count(control::DROPPED);
    code.answer(DROP);
    code.label(Label::Pass);
    code.answer(GO_ON);
    code.finish()
}

/// The filter of the other direction: only cut with the network.
pub fn backward(block: i32) -> Vec<Instruction> {
    let mut code = Assembler::default();
    cut(&mut code, block);
    code.answer(GO_ON);
    code.finish()
}

/// Makes `PACKET` and `BLOCK` ready, and swallows the packet if the network is cut.
fn cut(code: &mut Assembler, block: i32) {
    code.registers(MOVE, PACKET, R1);
    code.put(LOAD_WIDE, BLOCK, MAP_VALUE, 0, block);
    code.put(0, 0, 0, 0, 0);
    code.load(LOAD, R1, BLOCK, control::CUT_AT);
    code.jump(JUMP_EQUAL, R1, 0, 0, Label::NotCut);
    code.load(LOAD, R2, BLOCK, control::SEEN);
    code.jump(JUMP_NOT_LESS, R2, R1, 0, Label::Swallow);
    code.jump(JUMP, 0, 0, 0, Label::NotCut);
    code.label(Label::Swallow);
    code.count(control::CUT);
    code.answer(DROP);
    code.label(Label::NotCut);
}

/// Puts the length of what UDP carries into `PAYLOAD`; passes what carries no state for certain, and goes
/// on where TCP carries anything.
fn payload_length(code: &mut Assembler) {
    code.number(MOVE_NUMBER, R2, ETHERNET);
    code.fetch(IP, IP_HEADER);
    code.load(LOAD_BYTE, HEADER, STACK, IP);
    code.registers(MOVE, R1, HEADER);
    code.number(RIGHT_NUMBER, R1, 4);
    code.jump(JUMP_NOT_EQUAL, R1, 0, 4, Label::Pass);
    code.number(AND_NUMBER, HEADER, 15);
    code.number(LEFT_NUMBER, HEADER, 2);
    code.load(LOAD_HALF, PAYLOAD, STACK, IP + 2);
    code.number(TO_BIG_ENDIAN, PAYLOAD, 16);
    code.registers(SUBTRACT, PAYLOAD, HEADER);
    code.load(LOAD_HALF, R1, STACK, IP + 6);
    code.number(TO_BIG_ENDIAN, R1, 16);
    code.number(AND_NUMBER, R1, 0x1fff);
    code.jump(JUMP_NOT_EQUAL, R1, 0, 0, Label::Measured);
    code.load(LOAD_BYTE, R1, STACK, IP + 9);
    code.jump(JUMP_EQUAL, R1, 0, TCP, Label::Tcp);
    code.jump(JUMP_NOT_EQUAL, R1, 0, UDP, Label::Pass);
    code.number(ADD_NUMBER, PAYLOAD, -8);
    code.load(LOAD, R1, BLOCK, control::SKIP);
    code.jump(JUMP_EQUAL, R1, 0, 0, Label::Measured);
    code.registers(MOVE, R2, HEADER);
    code.number(ADD_NUMBER, R2, ETHERNET + 8);
    code.fetch(-8, 2);
    code.load(LOAD_HALF, R1, STACK, -8);
    code.number(TO_BIG_ENDIAN, R1, 16);
    code.load(LOAD, R2, BLOCK, control::SKIP);
    code.jump(JUMP_SAME, R1, R2, 0, Label::Pass);
    code.jump(JUMP, 0, 0, 0, Label::Measured);
    code.label(Label::Tcp);
    code.registers(MOVE, R2, HEADER);
    code.number(ADD_NUMBER, R2, ETHERNET + 12);
    code.fetch(-8, 1);
    code.load(LOAD_BYTE, R1, STACK, -8);
    code.number(RIGHT_NUMBER, R1, 4);
    code.number(LEFT_NUMBER, R1, 2);
    code.registers(SUBTRACT, PAYLOAD, R1);
    code.jump(JUMP_SIGNED_BELOW, PAYLOAD, 0, 1, Label::Pass);
    code.jump(JUMP, 0, 0, 0, Label::Counted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_lands_inside_and_ahead() {
        for code in [forward(3), backward(3)] {
            for (at, instruction) in code.iter().enumerate() {
                let jumps = instruction.code & 7 == 5 && ![CALL, EXIT].contains(&instruction.code);
                if jumps {
                    assert!(instruction.offset >= 0, "{at}");
                    assert!(at + 1 + (instruction.offset as usize) < code.len(), "{at}");
                }
            }
        }
        assert_eq!(size_of::<Instruction>(), 8);
    }
}
