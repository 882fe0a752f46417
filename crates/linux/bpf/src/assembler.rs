//! Instructions of the kernel's virtual machine (eBPF; RFC 9669), put together here: a few hundred of them need neither a
//! compiler nor a loader, and what ships needs no object file.

/// One instruction as the kernel reads it: operation, registers, offset, number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(u8);

/// What calls return.
pub const R0: Register = Register(0);
/// The first argument; at the beginning, the context.
pub const R1: Register = Register(1);
/// The second argument.
pub const R2: Register = Register(2);
/// The third argument.
pub const R3: Register = Register(3);
/// The fourth argument.
pub const R4: Register = Register(4);
/// The fifth argument.
pub const R5: Register = Register(5);
/// The first of those that calls leave alone.
pub const R6: Register = Register(6);
/// Left alone by calls.
pub const R7: Register = Register(7);
/// Left alone by calls.
pub const R8: Register = Register(8);
/// Left alone by calls.
pub const R9: Register = Register(9);
/// The stack's end; nothing is written to it.
pub const STACK: Register = Register(10);

/// How many bytes are read or written.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// One.
    Byte = 0x10,
    /// Two.
    Half = 0x08,
    /// Four.
    Word = 0x00,
    /// Eight.
    Double = 0x18,
}

/// An operation on 64 bits.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Sum.
    Add = 0x00,
    /// Difference.
    Subtract = 0x10,
    /// Product.
    Multiply = 0x20,
    /// Whole quotient, unsigned; by zero: zero.
    Divide = 0x30,
    /// Bits of either.
    Or = 0x40,
    /// Bits of both.
    And = 0x50,
    /// Moved to the left.
    Left = 0x60,
    /// Moved to the right, zeros behind.
    Right = 0x70,
    /// The other operand.
    Move = 0xb0,
}

/// When a jump is taken; numbers are unsigned where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// The left operand is the right one.
    Equal = 0x10,
    /// It is not.
    NotEqual = 0x50,
    /// It is greater.
    Greater = 0x20,
    /// It is greater or equal.
    NotLess = 0x30,
    /// It is less.
    Less = 0xa0,
    /// It is less, both with a sign.
    SignedLess = 0xc0,
}

/// A place to which jumps go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// Helper functions of the kernel (bpf-helpers(7)).
#[derive(Clone, Copy, Debug)]
pub enum Helper {
    /// An element of a map, or null.
    LookUp = 1,
    /// Nanoseconds on CLOCK_MONOTONIC.
    Time = 5,
    /// 32 bits of chance.
    Random = 7,
    /// Leads the packet to an interface, in the place of its own.
    Redirect = 23,
    /// Copies bytes of the packet to memory of the program's.
    LoadBytes = 26,
    /// A record in a ring, or null if the ring is full.
    RingReserve = 131,
    /// Hands a record over.
    RingSubmit = 132,
    /// Gives a record up.
    RingDiscard = 133,
    /// Nanoseconds on CLOCK_MONOTONIC_COARSE: the time of the last tick, which costs no look at a clock.
    Now = 160,
}

const FROM_REGISTER: u8 = 0x08;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const STORE_NUMBER: u8 = 0x62;
const ATOMIC: u8 = 0xdb;
const FETCH_ADD: i32 = 0x01;
const COMPARE_EXCHANGE: i32 = 0xf1;
const LOAD_WIDE: u8 = 0x18;
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;
const ALU: u8 = 0x07;
const TO_BIG_ENDIAN: u8 = 0xdc;
const JUMP: u8 = 0x05;
/// Jumps by the lower 32 bits.
const JUMP_WORD: u8 = 0x06;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// A program under construction. Jumps lead ahead only, so that it ends.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    /// Where each label stands.
    labels: Vec<Option<usize>>,
}

impl Assembler {
    fn put(&mut self, code: u8, to: Register, from: Register, offset: i16, number: i32) {
        self.code.push(Instruction {
            code,
            registers: (from.0 << 4) | to.0,
            offset,
            number,
        });
    }

    /// A label that stands nowhere yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label stands here.
    pub fn here(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// `to` becomes what stands at `from + offset`; the rest of it, zero.
    pub fn load(&mut self, size: Size, to: Register, from: Register, offset: i16) {
        self.put(LOAD | size as u8, to, from, offset, 0);
    }

    /// The same from the network's byte order, two bytes.
    pub fn load_network(&mut self, to: Register, from: Register, offset: i16) {
        self.load(Size::Half, to, from, offset);
        self.put(TO_BIG_ENDIAN, to, R0, 0, 16);
        // Says it to the verifier, which forgets at a change of order.
        self.number(Operation::And, to, 0xffff);
    }

    /// What `from` is goes to `to + offset`.
    pub fn store(&mut self, size: Size, to: Register, offset: i16, from: Register) {
        self.put(STORE | size as u8, to, from, offset, 0);
    }

    /// `number` goes to `to + offset`.
    pub fn store_number(&mut self, size: Size, to: Register, offset: i16, number: i32) {
        self.put(STORE_NUMBER | size as u8, to, R0, offset, number);
    }

    /// `to` is changed by a number.
    pub fn number(&mut self, operation: Operation, to: Register, number: i32) {
        self.put(ALU | operation as u8, to, R0, 0, number);
    }

    /// `to` is changed by a register.
    pub fn register(&mut self, operation: Operation, to: Register, from: Register) {
        self.put(ALU | FROM_REGISTER | operation as u8, to, from, 0, 0);
    }

    /// Adds `from` to the eight bytes at `to + offset` in one step; `from` becomes what they were.
    pub fn fetch_add(&mut self, to: Register, offset: i16, from: Register) {
        self.put(ATOMIC, to, from, offset, FETCH_ADD);
    }

    /// If the eight bytes at `to + offset` are `R0`, they become `from`, in one step; `R0` becomes what they were.
    pub fn compare_exchange(&mut self, to: Register, offset: i16, from: Register) {
        self.put(ATOMIC, to, from, offset, COMPARE_EXCHANGE);
    }

    /// `to` becomes the map with this descriptor, as helpers take it.
    pub fn map(&mut self, to: Register, descriptor: i32) {
        self.put(LOAD_WIDE, to, Register(MAP), 0, descriptor);
        self.put(0, R0, R0, 0, 0);
    }

    /// `to` points to the first value of the map with this descriptor.
    pub fn map_value(&mut self, to: Register, descriptor: i32) {
        self.put(LOAD_WIDE, to, Register(MAP_VALUE), 0, descriptor);
        self.put(0, R0, R0, 0, 0);
    }

    /// Calls the kernel: `R0` becomes what it says, `R1` to `R5` are gone.
    pub fn call(&mut self, helper: Helper) {
        self.put(CALL, R0, R0, 0, helper as i32);
    }

    /// On to the label.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(JUMP, R0, R0, 0, 0);
    }

    /// On to the label if it holds between a register and a number.
    pub fn jump_if(&mut self, left: Register, condition: Condition, right: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(JUMP | condition as u8, left, R0, 0, right);
    }

    /// The same of the lower 32 bits: what is a number below zero as it lies in memory is found like any other.
    pub fn jump_if_word(&mut self, left: Register, condition: Condition, right: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(JUMP_WORD | condition as u8, left, R0, 0, right);
    }

    /// On to the label if it holds between two registers.
    pub fn jump_if_register(
        &mut self,
        left: Register,
        condition: Condition,
        right: Register,
        label: Label,
    ) {
        self.jumps.push((self.code.len(), label));
        self.put(JUMP | FROM_REGISTER | condition as u8, left, right, 0, 0);
    }

    /// Ends with what `R0` is.
    pub fn exit(&mut self) {
        self.put(EXIT, R0, R0, 0, 0);
    }

    /// The program.
    ///
    /// # Panics
    /// A label stands nowhere, or before a jump to it: a mistake of whoever wrote the program down.
    pub fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].expect("every label stands somewhere");
            let ahead = target.checked_sub(at + 1).expect("jumps lead ahead");
            self.code[at].offset = i16::try_from(ahead).expect("a program of a few hundred");
        }
        self.code
    }
}

/// Most instructions that are carried out between the program's begin and an end of it, a helper's call taken for one.
pub fn longest_way(program: &[Instruction]) -> usize {
    // From the end on: jumps lead ahead.
    let mut from = vec![0; program.len() + 1];
    for (at, it) in program.iter().enumerate().rev() {
        let next = match it.code {
            LOAD_WIDE => 2,
            _ => 1,
        };
        let behind = |ahead: usize| from.get(at + ahead).copied().unwrap_or(0);
        let jumped = 1 + usize::try_from(it.offset).unwrap_or(0);
        let is_conditional =
            matches!(it.code & 0x07, JUMP | JUMP_WORD) && !matches!(it.code, CALL | EXIT | JUMP);
        from[at] = 1 + match it.code {
            EXIT => 0,
            JUMP => behind(jumped),
            _ if is_conditional => behind(next).max(behind(jumped)),
            _ => behind(next),
        };
    }
    from[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_as_the_kernel_reads_them() {
        assert_eq!(size_of::<Instruction>(), 8);
        let mut code = Assembler::default();
        let end = code.label();
        code.load(Size::Half, R3, R1, 12);
        code.jump_if(R3, Condition::Equal, 8, end);
        code.register(Operation::Move, R0, R3);
        code.here(end);
        code.exit();
        let code = code.finish();
        let as_told = |code, registers, offset, number| Instruction {
            code,
            registers,
            offset,
            number,
        };
        let expected = [
            as_told(0x69, 0x13, 12, 0),
            as_told(0x15, 0x03, 1, 8),
            as_told(0xbf, 0x30, 0, 0),
            as_told(0x95, 0, 0, 0),
        ];
        assert_eq!(code, expected);
    }

    #[test]
    #[should_panic(expected = "jumps lead ahead")]
    fn a_jump_back_is_refused() {
        let mut code = Assembler::default();
        let start = code.label();
        code.here(start);
        code.exit();
        code.jump(start);
        code.finish();
    }
}
