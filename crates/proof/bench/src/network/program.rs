//! The packet filter as a program in the kernel.
//!
//! What is counted is a packet of IPv4 that carries anything above TCP, or at least
//! [`Control::Threshold`] bytes above UDP (a later fragment: above IP) that do not begin as
//! [`Control::Skip`] says, so that neither acknowledgements nor heartbeats count.

use bumpless_bpf::{
    Assembler, Condition, Helper, Instruction, Label, Operation, R0, R1, R2, R3, R4, R6, R7, R8,
    R9, Register, STACK, Size,
};

/// The numbers that a filter and its owner share, by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Least payload of a datagram that counts.
    Threshold,
    /// Packets counted.
    Seen,
    /// The first packet to drop, counted from 0.
    First,
    /// How many to drop from there.
    Amount,
    /// Packets dropped, but for those of a cut.
    Dropped,
    /// Chance of each packet, in 2^-32.
    Chance,
    /// Drop the first packet after each so many nanoseconds.
    Every,
    /// When the next one of those is due.
    Next,
    /// Cut the network when so many packets have been counted; 0 = never.
    CutAt,
    /// Packets that a cut has swallowed.
    Cut,
    /// The first two bytes of datagrams that do not count; 0 = all count.
    Skip,
}

impl Control {
    /// How many there are.
    pub const COUNT: usize = Self::Skip as usize + 1;

    const fn offset(self) -> i16 {
        (self as usize * size_of::<u64>()) as i16
    }
}

/// Answers to the kernel.
const GO_ON: i32 = -1;
const DROP: i32 = 2;

const ETHERNET: i32 = 14;
const IP_HEADER: i32 = 20;
const UDP: i32 = 17;
const TCP: i32 = 6;
const IP_VERSION: i32 = 4;
const FRAGMENT_OFFSET: i32 = 0x1fff;

const PACKET: Register = R6;
const BLOCK: Register = R7;
const HEADER: Register = R8;
const PAYLOAD: Register = R9;
/// Where the IP header is put on the stack, and further bytes.
const IP: i16 = -32;
const FURTHER: i16 = -8;

/// A filter under construction.
struct Filter {
    code: Assembler,
    /// Where packets go on.
    pass: Label,
}

impl Filter {
    /// Has its registers ready, and swallows the packet if the network is cut.
    fn new(block: i32) -> Self {
        let mut code = Assembler::default();
        let pass = code.label();
        let mut filter = Self { code, pass };
        let code = &mut filter.code;
        code.register(Operation::Move, PACKET, R1);
        code.map_value(BLOCK, block);
        let whole = code.label();
        filter.number(R1, Control::CutAt);
        filter.code.jump_if(R1, Condition::Equal, 0, whole);
        filter.number(R2, Control::Seen);
        filter.code.jump_if_register(R2, Condition::Less, R1, whole);
        filter.count(Control::Cut);
        filter.answer(DROP);
        filter.code.here(whole);
        filter
    }

    /// `to` becomes a number of the block.
    fn number(&mut self, to: Register, which: Control) {
        self.code.load(Size::Double, to, BLOCK, which.offset());
    }

    /// Adds one to a number of the block; `R2` becomes what it was.
    fn count(&mut self, which: Control) {
        self.code.number(Operation::Move, R2, 1);
        self.code.fetch_add(BLOCK, which.offset(), R2);
    }

    fn answer(&mut self, number: i32) {
        self.code.number(Operation::Move, R0, number);
        self.code.exit();
    }

    /// Copies `length` bytes of the packet from `R2` on to the stack; passes the packet if it is shorter.
    fn fetch(&mut self, to: i16, length: i32) {
        let code = &mut self.code;
        code.register(Operation::Move, R1, PACKET);
        code.register(Operation::Move, R3, STACK);
        code.number(Operation::Add, R3, to.into());
        code.number(Operation::Move, R4, length);
        code.call(Helper::LoadBytes);
        code.jump_if(R0, Condition::NotEqual, 0, self.pass);
    }

    /// Puts the IP header on the stack, its length into `HEADER` and that of what IP carries into `PAYLOAD`; passes what is no
    /// IPv4.
    fn measure_ip(&mut self) {
        self.code.number(Operation::Move, R2, ETHERNET);
        self.fetch(IP, IP_HEADER);
        let code = &mut self.code;
        code.load(Size::Byte, HEADER, STACK, IP);
        code.register(Operation::Move, R1, HEADER);
        code.number(Operation::Right, R1, 4);
        code.jump_if(R1, Condition::NotEqual, IP_VERSION, self.pass);
        code.number(Operation::And, HEADER, 15);
        code.number(Operation::Left, HEADER, 2);
        code.load_network(PAYLOAD, STACK, IP + 2);
        code.register(Operation::Subtract, PAYLOAD, HEADER);
    }

    /// Goes on to `counted` if TCP carries anything, and passes the packet otherwise.
    fn measure_tcp(&mut self, counted: Label) {
        self.code.register(Operation::Move, R2, HEADER);
        self.code.number(Operation::Add, R2, ETHERNET + 12);
        self.fetch(FURTHER, 1);
        let code = &mut self.code;
        code.load(Size::Byte, R1, STACK, FURTHER);
        code.number(Operation::Right, R1, 4);
        code.number(Operation::Left, R1, 2);
        code.register(Operation::Subtract, PAYLOAD, R1);
        code.jump_if(PAYLOAD, Condition::SignedLess, 1, self.pass);
        code.jump(counted);
    }

    /// Makes `PAYLOAD` the length of what UDP carries; passes what begins as [`Control::Skip`] says.
    fn measure_udp(&mut self, measured: Label) {
        self.code.number(Operation::Add, PAYLOAD, -8);
        self.number(R1, Control::Skip);
        self.code.jump_if(R1, Condition::Equal, 0, measured);
        self.code.register(Operation::Move, R2, HEADER);
        self.code.number(Operation::Add, R2, ETHERNET + 8);
        self.fetch(FURTHER, 2);
        self.code.load_network(R1, STACK, FURTHER);
        self.number(R2, Control::Skip);
        self.code
            .jump_if_register(R1, Condition::Equal, R2, self.pass);
    }

    /// Goes on behind this with a packet that is to be counted.
    fn choose(&mut self) {
        let (measured, counted) = (self.code.label(), self.code.label());
        let tcp = self.code.label();
        self.measure_ip();
        let code = &mut self.code;
        code.load_network(R1, STACK, IP + 6);
        code.number(Operation::And, R1, FRAGMENT_OFFSET);
        code.jump_if(R1, Condition::NotEqual, 0, measured);
        code.load(Size::Byte, R1, STACK, IP + 9);
        code.jump_if(R1, Condition::Equal, TCP, tcp);
        code.jump_if(R1, Condition::NotEqual, UDP, self.pass);
        self.measure_udp(measured);
        self.code.jump(measured);
        self.code.here(tcp);
        self.measure_tcp(counted);
        self.code.here(measured);
        self.number(R1, Control::Threshold);
        self.code
            .jump_if_register(PAYLOAD, Condition::SignedLess, R1, self.pass);
        self.code.here(counted);
    }

    /// Drops a counted packet, `R2` of which came before it, if it is one of those that are to be lost.
    fn lose(&mut self) {
        let (others, drop) = (self.code.label(), self.code.label());
        self.number(R3, Control::First);
        self.code.jump_if_register(R2, Condition::Less, R3, others);
        self.number(R4, Control::Amount);
        self.code.register(Operation::Add, R3, R4);
        self.code.jump_if_register(R2, Condition::Less, R3, drop);
        self.code.here(others);
        self.code.call(Helper::Random);
        self.code.number(Operation::Left, R0, 32);
        self.code.number(Operation::Right, R0, 32);
        self.number(R3, Control::Chance);
        self.code.jump_if_register(R0, Condition::Less, R3, drop);
        self.number(R3, Control::Every);
        self.code.jump_if(R3, Condition::Equal, 0, self.pass);
        self.code.call(Helper::Time);
        self.number(R3, Control::Next);
        self.code
            .jump_if_register(R0, Condition::Less, R3, self.pass);
        self.number(R4, Control::Every);
        self.code.register(Operation::Add, R0, R4);
        self.code
            .store(Size::Double, BLOCK, Control::Next.offset(), R0);
        self.code.here(drop);
        self.count(Control::Dropped);
        self.answer(DROP);
    }

    fn finish(mut self) -> Vec<Instruction> {
        self.code.here(self.pass);
        self.answer(GO_ON);
        self.code.finish()
    }
}

/// The filter of the direction in which states travel: counts and drops as the numbers of the map `block` say, and is cut with
/// the network.
pub fn forward(block: i32) -> Vec<Instruction> {
    let mut filter = Filter::new(block);
    filter.choose();
    filter.count(Control::Seen);
    filter.lose();
    filter.finish()
}

/// The filter of the other direction: only cut with the network.
pub fn backward(block: i32) -> Vec<Instruction> {
    Filter::new(block).finish()
}
