//! Numbers and names of nf_tables (linux/netfilter/nf_tables.h), and how a batch of its messages begins and ends.

use crate::netlink::Message;

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// Netfilter's number of nf_tables.
const NF_TABLES: u16 = 10;
pub const SUBSYSTEM: u16 = NF_TABLES << 8;
pub const NEW_TABLE: u16 = SUBSYSTEM;
pub const DELETE_TABLE: u16 = SUBSYSTEM | 2;
pub const NEW_CHAIN: u16 = SUBSYSTEM | 3;
pub const GET_CHAIN: u16 = SUBSYSTEM | 4;
pub const NEW_RULE: u16 = SUBSYSTEM | 6;
pub const DELETE_RULE: u16 = SUBSYSTEM | 8;
pub const NEW_SET: u16 = SUBSYSTEM | 9;
pub const NEW_ELEMENT: u16 = SUBSYSTEM | 12;
pub const DELETE_ELEMENT: u16 = SUBSYSTEM | 14;

pub const CREATE: u16 = 0x400;
pub const APPEND: u16 = 0x800;
/// All of a kind are asked for.
pub const DUMP: u16 = 0x300;

/// The table goes with the socket that made it.
pub const OWNED: u32 = 2;

pub const IPV4: u8 = 2;
pub const IPV6: u8 = 10;

pub const BEFORE_ROUTING: u32 = 0;
pub const LOCAL_IN: u32 = 1;
pub const FORWARD: u32 = 2;
pub const LOCAL_OUT: u32 = 3;
/// Where others change packets (`mangle`): before filters, after connection tracking.
pub const PRIORITY: i32 = -150;

pub const OUTPUT: &str = "output";
pub const INPUT: &str = "input";
pub const FORWARDED: &str = "forward";
pub const TO: &str = "to";
pub const FROM: &str = "from";
/// Next hops by which packets leave that are handed over.
pub const DIVERTING: &str = "diverting";
pub const SETS: [&str; 3] = [TO, FROM, DIVERTING];

pub fn begin() -> Message {
    Message::new()
        .begin_quiet(BATCH_BEGIN, 0)
        .netfilter(0, NF_TABLES)
}

pub fn end(batch: Message) -> Message {
    batch.begin_quiet(BATCH_END, 0).netfilter(0, NF_TABLES)
}
