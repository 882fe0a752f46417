//! Small programs in the kernel (eBPF): put together here, verified and run there.
//!
//! A few hundred instructions need neither a compiler nor a loader, and what ships needs no object file. Everything ends with the process:
//! programs, maps and the links that attach programs go with their descriptors.
//!
//! | module | owns |
//! |---|---|
//! | `assembler` | instructions of the kernel's virtual machine |
//! | `kernel` | the kernel's interface to programs, maps and links |
//! | `mapped` | memory of a map, which the kernel and this process share |
//! | `numbers` | numbers that programs and this process share |
//! | `ring` | records that a program hands to this process, in memory that both share |

mod assembler;
mod kernel;
mod mapped;
mod numbers;
mod ring;

pub use assembler::{
    Assembler, Condition, Helper, Instruction, Label, Operation, R0, R1, R2, R3, R4, R5, R6, R7,
    R8, R9, Register, STACK, Size, longest_way,
};
pub use kernel::{
    Link, Map, MapKind, Mode, Program, Purpose, interface_number, now, program_name, tick,
};
pub use numbers::Numbers;
pub use ring::{Place, RECORD_HEADER, Record, Ring};
