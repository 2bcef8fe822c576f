//! The layout of the memory that a run shares with its tracer.
//!
//! A lane is one such memory: records, translated code, and a control page that the child reaches through its `gs`
//! base, which nothing else on Linux uses. It begins at a multiple of 4 GiB, so bits 24 to 31 of an address in the
//! records show whether they are full; the translated code tests them.
#![forbid(unsafe_code)]

/// Bytes of a lane.
pub(crate) const LANE: usize = 0x0840_0000;
/// Records fill up from offset 0; a block of code may begin as long as they end below this.
pub(crate) const FULL: usize = 0x0100_0000;
/// Room for translated code.
pub(crate) const CODE: usize = 0x0200_0000;
pub(crate) const CODE_END: usize = 0x0800_0000;
/// The control page; `gs` points here.
pub(crate) const CONTROL: usize = 0x0800_0000;
/// The place of the operation's answer, with its length in [`OUT_LENGTH`].
pub(crate) const OUT: usize = 0x0820_0000;
pub(crate) const OUT_ROOM: usize = 0x20_0000;

// Within the control page.
/// End of the records so far.
pub(crate) const NEXT: usize = 0x00;
/// The traced code's next address.
pub(crate) const TARGET: usize = 0x08;
/// The address of its translation.
pub(crate) const GOTO: usize = 0x10;
/// The jump to be joined to the translation, as an offset from the lane's start, or 0.
pub(crate) const SITE: usize = 0x18;
/// The request to the tracer.
pub(crate) const KIND: usize = 0x1c;
/// [`RUNNING`], [`ASKING`], [`DONE`] or [`DEAD`]: a futex.
pub(crate) const STATE: usize = 0x20;
pub(crate) const SAVED_RSP: usize = 0x28;
pub(crate) const PRIVATE_STACK: usize = 0x30;
pub(crate) const HOST_RSP: usize = 0x38;
pub(crate) const SAVED_RAX: usize = 0x40;
pub(crate) const SAVED_RCX: usize = 0x48;
pub(crate) const SCRATCH: usize = 0x50;
pub(crate) const ADDRESS: usize = 0x58;
pub(crate) const FS_BASE: usize = 0x60;
/// Set by the tracer: begin a run of [`CASE`].
pub(crate) const START: usize = 0x68;
pub(crate) const CASE: usize = 0x70;
/// Set when the child has been reaped, after [`STATUS`].
pub(crate) const REAPED: usize = 0x78;
pub(crate) const STATUS: usize = 0x80;
/// How the operation ended: [`RETURNED`] or [`PANICKED`].
pub(crate) const RESULT: usize = 0x88;
pub(crate) const OUT_LENGTH: usize = 0x90;
/// In the first lane only: counts orders, a futex.
pub(crate) const DOORBELL: usize = 0x98;
/// An address that is never executed: returning to it ends the trace.
pub(crate) const EXIT: usize = 0xf00;
/// Top of the stack for the few pushes of the code that asks.
pub(crate) const PRIVATE_TOP: usize = 0x2000;
/// Known targets of indirect jumps: 65,536 pairs of the negated target and its translation.
pub(crate) const TABLE: usize = 0x10_0000;

pub(crate) const RUNNING: u32 = 0;
pub(crate) const ASKING: u32 = 1;
pub(crate) const DONE: u32 = 2;
pub(crate) const DEAD: u32 = 3;

// Kinds of requests.
pub(crate) const TRANSLATE: u32 = 1;
pub(crate) const FLUSH: u32 = 2;
pub(crate) const SYSCALL: u32 = 3;
pub(crate) const UNSUPPORTED: u32 = 4;

pub(crate) const RETURNED: u32 = 1;
pub(crate) const PANICKED: u32 = 2;

/// Words of a record: number of the instruction, r15 down to rax, flags.
pub(crate) const WORDS: usize = 18;
/// Bytes of vector registers that go with a record whose addresses derive from them: the indices, then the mask.
pub(crate) const EXTRA: usize = 128;
/// Marks a record of written bytes.
pub(crate) const WRITTEN: u64 = 1 << 30;
