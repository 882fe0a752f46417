//! What a frame is for, as `bumpless_guard::classify` has it (V-1 to V-9).
//!
//! Offsets are checked twice: once for what the headers say, as there, and once against the end of the frame in the form in
//! which the kernel's verifier knows it again.

use bumpless_guard::MAX_EXTENSIONS;

use super::{Maps, Ways};
use crate::layout::{
    ANSWERS, ECHO, FLOW, HAS_ANSWERS, HAS_PORT_FROM, KEY_LEN, PORT_FROM, RESOLUTION, Shapes,
    TCP_BIT, V6_BIT,
};
use bumpless_bpf::{
    Assembler, Condition::*, Helper, Label, Operation::*, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9,
    Register, STACK, Size,
};

/// The frame's first byte.
pub const DATA: Register = R6;
/// The first byte behind it.
pub const DATA_END: Register = R7;
/// Offset of the header that is looked at.
const AT: Register = R8;
/// Offset of the IP packet's end.
const END: Register = R9;
/// The protocol above IP, as far as it is known.
const NEXT: Register = R5;

/// The key of a pattern with an address on the stack, and in it the first eight bytes and the address.
const KEY: i16 = -(KEY_LEN as i16);
const ADDRESS: i16 = KEY + 8;

pub const ETHERNET: i32 = 14;
const TAG: i32 = 4;
const MAX_TAGS: usize = 2;
const IPV6: i32 = 40;
/// ARP up to the end of the sender's IPv4 address, and where that begins.
const ARP: i32 = 18;
const ARP_SENDER: i16 = 14;

/// A number of 16 bits as it lies in a frame and is loaded by this machine.
pub const fn network(number: u16) -> i32 {
    number.to_be() as i32
}

/// Where the frame is: comes first.
pub fn begin(code: &mut Assembler) {
    code.load(Size::Word, DATA, R1, 0);
    code.load(Size::Word, DATA_END, R1, 4);
}

/// Goes to one of `ways`, all of which are still to come.
pub fn classify(code: &mut Assembler, ways: &Ways, shapes: Shapes, maps: Maps) {
    let labels = Labels {
        ipv4: code.label(),
        ipv6: code.label(),
        ports: code.label(),
        icmp: code.label(),
        echo: code.label(),
        arp: code.label(),
        discovery: code.label(),
        none: ways.unknown,
    };
    ethernet(code, ways, &labels, shapes);
    code.here(labels.ipv4);
    ipv4(code, ways, &labels, shapes);
    code.here(labels.ipv6);
    ipv6(code, ways, &labels, shapes);
    code.here(labels.ports);
    ports(code, &labels);
    find(code, ways, shapes, maps);
    if shapes.echo {
        code.here(labels.icmp);
        icmp(code, ways, &labels);
        of_sender(code, (ECHO, ways.icmp), ways, maps);
    }
    if shapes.resolution {
        code.here(labels.arp);
        arp(code, ways);
        code.here(labels.discovery);
        of_sender(code, (RESOLUTION, ways.resolution), ways, maps);
    }
}

struct Labels {
    ipv4: Label,
    ipv6: Label,
    ports: Label,
    /// A message of ICMP at `AT`, if echo replies are told apart.
    icmp: Label,
    /// An echo reply, if these are told apart.
    echo: Label,
    /// ARP at `AT`, if who asks is told apart.
    arp: Label,
    /// Neighbour discovery, likewise; the address is in the key.
    discovery: Label,
    none: Label,
}

/// `pointer` becomes the byte at offset `at`; goes to `none` unless `length` bytes are there.
fn reach(code: &mut Assembler, pointer: Register, at: Register, length: i32, none: Label) {
    code.register(Move, pointer, DATA);
    code.register(Add, pointer, at);
    code.register(Move, R4, pointer);
    code.number(Add, R4, length);
    code.jump_if_register(R4, Greater, DATA_END, none);
}

/// Goes to `none` unless `length` bytes from `AT` on belong to the IP packet.
fn within(code: &mut Assembler, length: i32, none: Label) {
    code.register(Move, R4, AT);
    code.number(Add, R4, length);
    code.jump_if_register(R4, Greater, END, none);
}

fn ethernet(code: &mut Assembler, ways: &Ways, labels: &Labels, shapes: Shapes) {
    let arp = match shapes.resolution {
        true => labels.arp,
        false => ways.resolution,
    };
    for tags in 0..=MAX_TAGS {
        let at = ETHERNET + TAG * tags as i32;
        let next = code.label();
        code.register(Move, R4, DATA);
        code.number(Add, R4, at);
        code.jump_if_register(R4, Greater, DATA_END, labels.none);
        code.load(Size::Half, R1, DATA, at as i16 - 2);
        code.number(Move, AT, at);
        code.jump_if(R1, Equal, network(0x0800), labels.ipv4);
        code.jump_if(R1, Equal, network(0x86dd), labels.ipv6);
        code.jump_if(R1, Equal, network(0x0806), arp);
        for tag in [0x8100, 0x88a8, 0x9100] {
            code.jump_if(R1, Equal, network(tag), next);
        }
        code.jump(labels.none);
        code.here(next);
    }
    code.jump(labels.none);
}

fn ipv4(code: &mut Assembler, ways: &Ways, labels: &Labels, shapes: Shapes) {
    reach(code, R1, AT, 20, labels.none);
    code.load(Size::Byte, R3, R1, 0);
    code.register(Move, R2, R3);
    code.number(Right, R2, 4);
    code.jump_if(R2, NotEqual, 4, labels.none);
    // The header's length in R3, the packet's in END until it is its end.
    code.number(And, R3, 0xf);
    code.number(Left, R3, 2);
    code.jump_if(R3, Less, 20, labels.none);
    code.load_network(END, R1, 2);
    code.jump_if_register(END, Less, R3, labels.none);
    code.register(Add, END, AT);
    code.register(Move, R2, DATA);
    code.register(Add, R2, END);
    code.jump_if_register(R2, Greater, DATA_END, labels.none);
    code.load_network(R2, R1, 6);
    code.number(And, R2, 0x3fff);
    code.jump_if(R2, NotEqual, 0, ways.fragment);
    code.load(Size::Byte, NEXT, R1, 9);
    if !shapes.echo {
        code.jump_if(NEXT, Equal, 1, ways.icmp);
    }
    if shapes.with_addresses() {
        code.load(Size::Word, R2, R1, 12);
        code.store_number(Size::Word, STACK, KEY, 0);
        code.store_number(Size::Double, STACK, ADDRESS, 0);
        code.store_number(Size::Word, STACK, ADDRESS + 8, 0);
        code.store(Size::Word, STACK, ADDRESS + 12, R2);
    }
    code.register(Add, AT, R3);
    if shapes.echo {
        code.jump_if(NEXT, Equal, 1, labels.icmp);
    }
    code.jump(labels.ports);
}

fn ipv6(code: &mut Assembler, ways: &Ways, labels: &Labels, shapes: Shapes) {
    reach(code, R1, AT, IPV6, labels.none);
    code.load(Size::Byte, R2, R1, 0);
    code.number(Right, R2, 4);
    code.jump_if(R2, NotEqual, 6, labels.none);
    code.load_network(END, R1, 4);
    code.register(Add, END, AT);
    code.number(Add, END, IPV6);
    code.register(Move, R2, DATA);
    code.register(Add, R2, END);
    code.jump_if_register(R2, Greater, DATA_END, labels.none);
    code.load(Size::Byte, NEXT, R1, 6);
    // Asked for after the last extension header.
    code.load(Size::Byte, R3, R1, 7);
    if shapes.with_addresses() {
        for at in [0, 8] {
            code.load(Size::Double, R2, R1, 8 + at);
            code.store(Size::Double, STACK, ADDRESS + at, R2);
        }
        code.store_number(Size::Word, STACK, KEY, V6_BIT);
    }
    code.number(Add, AT, IPV6);
    for place in 0..=MAX_EXTENSIONS {
        extension(code, ways, labels, (place, shapes));
    }
    code.jump(labels.none);
}

/// One extension header; goes on behind it, or elsewhere if there is none.
fn extension(code: &mut Assembler, ways: &Ways, labels: &Labels, (place, shapes): (usize, Shapes)) {
    let (long, fragment, icmp) = (code.label(), code.label(), code.label());
    let advance = code.label();
    // Options for every hop stand first or nowhere.
    if place == 0 {
        code.jump_if(NEXT, Equal, 0, long);
    }
    code.jump_if(NEXT, Equal, 43, long);
    code.jump_if(NEXT, Equal, 60, long);
    code.jump_if(NEXT, Equal, 44, fragment);
    code.jump_if(NEXT, Equal, 58, icmp);
    code.jump(labels.ports);

    code.here(icmp);
    message_type(code, ways);
    if shapes.echo {
        code.jump_if(R2, Equal, 129, labels.echo);
    }
    code.jump_if(R3, NotEqual, 255, ways.icmp);
    code.jump_if(R2, Less, 133, ways.icmp);
    code.jump_if(R2, Greater, 137, ways.icmp);
    code.jump(match shapes.resolution {
        true => labels.discovery,
        false => ways.resolution,
    });

    // R2 becomes the header's length.
    code.here(fragment);
    within(code, 8, labels.none);
    reach(code, R1, AT, 8, labels.none);
    code.load_network(R2, R1, 2);
    code.number(And, R2, 0xfff9);
    code.jump_if(R2, NotEqual, 0, ways.fragment);
    code.number(Move, R2, 8);
    code.jump(advance);

    code.here(long);
    within(code, 8, labels.none);
    reach(code, R1, AT, 8, labels.none);
    code.load(Size::Byte, R2, R1, 1);
    code.number(Add, R2, 1);
    code.number(Left, R2, 3);

    code.here(advance);
    code.load(Size::Byte, NEXT, R1, 0);
    code.register(Add, AT, R2);
    code.jump_if_register(AT, Greater, END, labels.none);
}

/// Reads the ports: `R8` becomes that here, `R9` the sender's, `R6` what tells the transport in keys.
fn ports(code: &mut Assembler, labels: &Labels) {
    let (tcp, known) = (code.label(), code.label());
    code.jump_if(NEXT, Equal, 6, tcp);
    code.jump_if(NEXT, NotEqual, 17, labels.none);
    within(code, 8, labels.none);
    reach(code, R1, AT, 8, labels.none);
    code.number(Move, R6, 0);
    code.jump(known);

    code.here(tcp);
    within(code, 20, labels.none);
    reach(code, R1, AT, 20, labels.none);
    code.load(Size::Byte, R2, R1, 12);
    code.number(Right, R2, 4);
    code.number(Left, R2, 2);
    code.jump_if(R2, Less, 20, labels.none);
    code.register(Add, R2, AT);
    code.jump_if_register(R2, Greater, END, labels.none);
    code.number(Move, R6, TCP_BIT);

    code.here(known);
    code.load_network(R9, R1, 0);
    code.load_network(R8, R1, 2);
}

/// From ports and address to the flow, the patterns in their order (V-10). Where no address has a pattern with one of the
/// ports, none is looked for.
fn find(code: &mut Assembler, ways: &Ways, shapes: Shapes, maps: Maps) {
    let (of_sender, everybody) = (code.label(), code.label());
    for (shape, port, mark, is_used) in [
        (PORT_FROM, R8, HAS_PORT_FROM, shapes.port_from),
        (ANSWERS, R9, HAS_ANSWERS, shapes.answers),
    ] {
        if !is_used {
            continue;
        }
        let next = code.label();
        entry(code, port, maps);
        code.number(And, R1, mark);
        code.jump_if(R1, Equal, 0, next);
        code.register(Move, R1, R6);
        code.register(Or, R1, port);
        code.number(Or, R1, shape);
        // Beside the family, which stands there already.
        code.store(Size::Word, STACK, KEY + 4, R1);
        code.map(R1, maps.senders);
        code.register(Move, R2, STACK);
        code.number(Add, R2, KEY.into());
        code.call(Helper::LookUp);
        code.jump_if(R0, NotEqual, 0, of_sender);
        code.here(next);
    }
    code.jump(everybody);
    code.here(of_sender);
    if shapes.port_from || shapes.answers {
        code.load(Size::Word, R8, R0, 0);
        code.jump(ways.found);
    }
    code.here(everybody);
    entry(code, R8, maps);
    code.number(And, R1, FLOW);
    code.register(Move, R8, R1);
    code.jump(ways.found);
}

/// `R2` becomes the type of the message at `AT`; goes to the rest of ICMP if it is not there.
fn message_type(code: &mut Assembler, ways: &Ways) {
    code.jump_if_register(AT, NotLess, END, ways.icmp);
    reach(code, R1, AT, 1, ways.icmp);
    code.load(Size::Byte, R2, R1, 0);
}

/// IPv4's ICMP: an echo reply goes on behind this.
fn icmp(code: &mut Assembler, ways: &Ways, labels: &Labels) {
    message_type(code, ways);
    code.jump_if(R2, NotEqual, 0, ways.icmp);
    code.here(labels.echo);
}

/// The key with the sender of ARP for IPv4 over Ethernet (RFC 826); of any other kind nobody is known.
fn arp(code: &mut Assembler, ways: &Ways) {
    reach(code, R1, AT, ARP, ways.resolution);
    // Ethernet, IPv4, and the lengths of their addresses.
    for (at, expected) in [(0, 1), (2, 0x0800), (4, 0x0604)] {
        code.load(Size::Half, R2, R1, at);
        code.jump_if(R2, NotEqual, network(expected), ways.resolution);
    }
    code.store_number(Size::Word, STACK, KEY, 0);
    code.store_number(Size::Double, STACK, ADDRESS, 0);
    code.store_number(Size::Word, STACK, ADDRESS + 8, 0);
    // By halves: behind an Ethernet header it lies at no multiple of four.
    for at in [0, 2] {
        code.load(Size::Half, R2, R1, ARP_SENDER + at);
        code.store(Size::Half, STACK, ADDRESS + 12 + at, R2);
    }
}

/// From the address, which is in the key already, to its flow of this shape; goes to `none` if it has none.
fn of_sender(code: &mut Assembler, (shape, none): (i32, Label), ways: &Ways, maps: Maps) {
    code.store_number(Size::Word, STACK, KEY + 4, shape);
    code.map(R1, maps.senders);
    code.register(Move, R2, STACK);
    code.number(Add, R2, KEY.into());
    code.call(Helper::LookUp);
    code.jump_if(R0, Equal, 0, none);
    code.load(Size::Word, R8, R0, 0);
    code.jump(ways.found);
}

/// `R1` becomes the entry of a port in the table: TCP's stand behind UDP's, two bytes each.
fn entry(code: &mut Assembler, port: Register, maps: Maps) {
    code.register(Move, R2, port);
    code.register(Or, R2, R6);
    code.number(Left, R2, 1);
    code.map_value(R1, maps.ports);
    code.register(Add, R1, R2);
    code.load(Size::Half, R1, R1, 0);
}
