//! The few flows that a host is there for, found before anything else is looked up (V-106): datagrams over IPv4 to a port here from a known
//! address, without tags, options or fragments. All other frames go the way that knows everything, which decides on these alike.

use super::Ways;
use super::classify::{DATA, DATA_END, ETHERNET, network};
use crate::layout::Quick;
use bumpless_bpf::{Assembler, Condition::*, Label, Operation::*, R1, R2, R4, R8, R9, Size};

/// IPv4's header without options, and UDP's.
const IPV4: i16 = 20;
const UDP: i16 = 8;
/// Where they begin.
const IP: i16 = ETHERNET as i16;
const PORTS: i16 = IP + IPV4;

/// Goes to `found` with the flow's number in `R8`, or to `slow`.
pub fn find(code: &mut Assembler, (ways, slow): (&Ways, Label), quick: &[Quick]) {
    if quick.is_empty() {
        return;
    }
    code.register(Move, R4, DATA);
    code.number(Add, R4, (PORTS + UDP).into());
    code.jump_if_register(R4, Greater, DATA_END, slow);
    code.load(Size::Half, R1, DATA, IP - 2);
    code.jump_if(R1, NotEqual, network(0x0800), slow);
    // Version, and the header's length in words.
    code.load(Size::Byte, R1, DATA, IP);
    code.jump_if(R1, NotEqual, 0x45, slow);
    code.load(Size::Half, R1, DATA, IP + 6);
    code.number(And, R1, network(0x3fff));
    code.jump_if(R1, NotEqual, 0, slow);
    code.load(Size::Byte, R1, DATA, IP + 9);
    code.jump_if(R1, NotEqual, 17, slow);
    // Both headers are in the packet, and the packet in the frame.
    code.load_network(R9, DATA, IP + 2);
    code.jump_if(R9, Less, (IPV4 + UDP).into(), slow);
    code.register(Move, R2, DATA);
    code.register(Add, R2, R9);
    code.number(Add, R2, ETHERNET);
    code.jump_if_register(R2, Greater, DATA_END, slow);
    code.load(Size::Word, R1, DATA, IP + 12);
    code.load(Size::Half, R2, DATA, PORTS + 2);
    for it in quick {
        let next = code.label();
        code.jump_if_word(R1, NotEqual, i32::from_ne_bytes(it.address), next);
        code.jump_if(R2, NotEqual, network(it.port), next);
        code.number(Move, R8, it.flow as i32);
        code.jump(ways.found);
        code.here(next);
    }
    code.jump(slow);
}
