//! Tables of labels that are closed: their entries only lead to the jumps of the functions that name them.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap};

use iced_x86::{
    FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory, UsedRegister,
};

use crate::assembler::Place;
use crate::flow::{Callee, Exit, Function};
use crate::frame::{CALLEE_SAVED, GENERAL, may_keep, reads, writes};
use crate::places::words;
use crate::program::Program;
use crate::registers;
use crate::tables::{self, By, Table};
use crate::text::Kind;

/// The statements of tables whose entries only lead to jumps: each function that names one reads nothing else through its address, and
/// no data hold that address. A table has one name.
pub(crate) fn closed(
    program: &Program,
    tables: &HashMap<String, Table>,
    functions: &[Function],
) -> BTreeSet<usize> {
    let distances = |name: &str| tables.get(name).filter(|table| table.distances);
    let mut users: HashMap<&str, Vec<usize>> = HashMap::new();
    for op in 0..program.ops.len() {
        if let Some((name, _)) = tables::named(program, op, tables).filter(|(_, table)| table.distances) {
            users.entry(name).or_default().push(op);
        }
    }
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (i, statement) in program.text.statements().iter().enumerate() {
        if statement.kind == Kind::Directive {
            let elsewhere = |name: &&str| distances(name).is_some_and(|table| !table.statements.contains(&i));
            open.extend(words(program.text.of(i)).filter(elsewhere));
        }
    }
    // Under another name of its place it may be read for anything.
    let mut at: HashMap<Place, Vec<&str>> = HashMap::new();
    program.places.iter().for_each(|(name, &place)| at.entry(place).or_default().push(name));
    open.extend(at.into_values().filter(|names| names.len() > 1).flatten());
    let naming: BTreeSet<usize> = users.values().flatten().copied().collect();
    let mut inside: BTreeSet<usize> = BTreeSet::new();
    let mut leaking: BTreeSet<usize> = BTreeSet::new();
    let mut wanted = HashMap::new();
    for function in functions {
        let named: BTreeSet<usize> = function.body.iter().copied().filter(|op| naming.contains(op)).collect();
        // A function without all of its places may pass it to one that has them.
        let owned = |op: &usize| {
            let table = tables::named(program, *op, tables);
            table.is_none_or(|(_, table)| {
                table.targets.iter().all(|to| function.body.binary_search(to).is_ok())
            })
        };
        let closes = |wanted: &mut _| {
            named.iter().all(owned) && only_jumps(program, functions, function, &named, tables, wanted)
        };
        if !named.is_empty() && !closes(&mut wanted) {
            leaking.extend(&named);
        }
        inside.extend(named);
    }
    let all = |name: &str| {
        users.get(name).is_none_or(|ops| ops.iter().all(|op| inside.contains(op) && !leaking.contains(op)))
    };
    let closed =
        tables.iter().filter(|(name, table)| table.distances && !open.contains(name.as_str()) && all(name));
    closed.flat_map(|(_, table)| &table.statements).copied().collect()
}

/// Whether a function reads the tables of distances that it names for its jumps alone. Each register that may hold something made from
/// such a name is followed. Once that is put elsewhere, anything that is loaded may be it.
fn only_jumps(
    program: &Program,
    functions: &[Function],
    function: &Function,
    named: &BTreeSet<usize>,
    tables: &HashMap<String, Table>,
    wanted: &mut HashMap<(usize, usize), u16>,
) -> bool {
    let in_frame = frame_registers(program, function);
    let mut info = InstructionInfoFactory::new();
    // Whether something made from a name was put into memory or a vector register, and the second.
    let (mut put, mut vector) = (false, false);
    // Registers that may hold something made from a name, and those that hold it without a way through memory.
    let mut before: HashMap<usize, (u16, u16)> = HashMap::from([(function.entry, (0, 0))]);
    let mut todo = vec![function.entry];
    while let Some(op) = todo.pop() {
        let instruction = &program.ops[op].instruction;
        let facts = info.info(instruction);
        let (mut held, mut straight) = before[&op];
        let holds = |register: Register| bit(register) & held != 0;
        let holds_straight = |register: Register| bit(register) & straight != 0;
        let loads: Vec<_> = facts.used_memory().iter().filter(|memory| reads(memory.access())).collect();
        let through = loads.iter().any(|memory| holds(memory.base()) || holds(memory.index()));
        if (through || !loads.is_empty() && named.contains(&op)) && !function.entries.contains(&op) {
            return false;
        }
        // A place that was read there may be the target of another jump.
        let own = || matches!(tables::by(program, op, tables), Some(By::Distance(load)) if function.entries.contains(&load));
        let again = match instruction.flow_control() {
            FlowControl::IndirectBranch => {
                (put && !loads.is_empty() || holds(instruction.op0_register())) && !own()
            }
            FlowControl::IndirectCall => holds_straight(instruction.op0_register()),
            _ => false,
        };
        // Other functions may find it in memory outside the frame.
        let operand = |n| {
            let register = instruction.op_register(n);
            instruction.op_kind(n) == OpKind::Register
                && (holds_straight(register) || vector && !register.is_gpr())
        };
        let given = (0..instruction.op_count()).any(operand)
            || instruction.is_string_instruction() && holds_straight(Register::RAX);
        let away = |memory: &UsedMemory| writes(memory.access()) && !in_frame.contains(&memory.base());
        if again || given && facts.used_memory().iter().any(away) {
            return false;
        }
        // A callee may read the table for another jump of this function, as may one to which it jumps for a jump of its own.
        let callee = match (function.calls.get(&op), function.exits.get(&op)) {
            (Some(call), _) if !function.astray.is_empty() => Some(&call.callee),
            (_, Some(Exit::Tail(callee @ Callee::Local(to)))) if strays(functions, *to) => Some(callee),
            _ => None,
        };
        if let Some(Callee::Local(entry)) = callee
            && (put || held & wants(program, functions, *entry, DEPTH, wanted) != 0)
        {
            return false;
        }
        let (used, stores) = (facts.used_registers(), facts.used_memory().iter().any(|m| writes(m.access())));
        let names = named.contains(&op);
        let made_straight = names
            || used.iter().any(|used| {
                let other = vector && !used.register().is_gpr();
                reads(used.access()) && (holds_straight(used.register()) || other)
            });
        let made = names
            || used.iter().any(|used| {
                reads(used.access()) && (holds(used.register()) || put && !used.register().is_gpr())
            })
            || put && !loads.is_empty();
        let returned =
            function.calls.get(&op).map_or(0, |call| lost(program, functions, &call.callee, DEPTH));
        let writes_vector = used.iter().any(|used| writes(used.access()) && !used.register().is_gpr());
        if made && instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP {
            return false;
        }
        // Now anything that was loaded before may be it.
        if made && (stores || writes_vector) && !put || made_straight && writes_vector && !vector {
            (put, vector) = (true, vector || made_straight && writes_vector);
            todo.extend(before.keys().copied());
        }
        for used in used.iter().filter(|used| writes(used.access())) {
            let bit = bit(used.register());
            let whole =
                used.access() == OpAccess::Write && used.register().size() >= 4 && !may_keep(instruction);
            for (all, made) in [(&mut held, made), (&mut straight, made_straight)] {
                if made {
                    *all |= bit;
                } else if whole {
                    *all &= !bit;
                }
            }
        }
        held &= !returned;
        straight &= !returned;
        for &next in &function.next[&op] {
            let known = before.get(&next).copied();
            let (a, b) = known.unwrap_or_default();
            let now = (a | held, b | straight);
            if known != Some(now) {
                before.insert(next, now);
                todo.push(next);
            }
        }
    }
    true
}

/// The registers that hold addresses of the frame alone.
fn frame_registers(program: &Program, function: &Function) -> Vec<Register> {
    let mut info = InstructionInfoFactory::new();
    let mut sets_frame = |op: &usize| {
        let instruction = &program.ops[*op].instruction;
        let used = info.info(instruction).used_registers();
        let written =
            |one: &UsedRegister| writes(one.access()) && one.register().full_register() == Register::RBP;
        let from_stack = match instruction.mnemonic() {
            Mnemonic::Mov => instruction.op1_register() == Register::RSP,
            Mnemonic::Pop | Mnemonic::Leave | Mnemonic::Enter => true,
            _ => false,
        };
        !used.iter().any(written) || from_stack
    };
    let is_set = |op: &usize| {
        let instruction = &program.ops[*op].instruction;
        instruction.mnemonic() == Mnemonic::Mov
            && (instruction.op0_register(), instruction.op1_register()) == (Register::RBP, Register::RSP)
    };
    let is_frame = function.body.iter().any(is_set) && function.body.iter().all(&mut sets_frame);
    if is_frame { vec![Register::RSP, Register::RBP] } else { vec![Register::RSP] }
}

/// Whether a function may jump anywhere.
fn strays(functions: &[Function], entry: usize) -> bool {
    let found = functions.binary_search_by_key(&entry, |function| function.entry);
    found.map_or(true, |n| !functions[n].astray.is_empty())
}

/// How many calls deep [`wants`] looks.
const DEPTH: usize = 3;

/// The registers whose entry values a function may use.
fn wants(
    program: &Program,
    functions: &[Function],
    entry: usize,
    depth: usize,
    known: &mut HashMap<(usize, usize), u16>,
) -> u16 {
    if let Some(&wanted) = known.get(&(entry, depth)) {
        return wanted;
    }
    let found = functions.binary_search_by_key(&entry, |function| function.entry);
    let Some(function) = found.ok().map(|n| &functions[n]).filter(|f| depth > 0 && f.astray.is_empty())
    else {
        return !0;
    };
    let mut info = InstructionInfoFactory::new();
    let before = function.before();
    let (mut live, mut todo) = (HashMap::new(), function.body.clone());
    let mut callees: HashMap<usize, u16> = HashMap::new();
    for (op, callee) in function.callees() {
        if let Callee::Local(entry) = callee {
            callees.insert(op, wants(program, functions, *entry, depth - 1, known));
        }
    }
    while let Some(op) = todo.pop() {
        let after = function.next[&op].iter().fold(0, |all, next| all | live.get(next).copied().unwrap_or(0));
        let usage = registers::usage(&program.ops[op].instruction, &mut info);
        let now = after & !usage.kill | usage.read | callees.get(&op).copied().unwrap_or(0);
        if live.insert(op, now).unwrap_or(0) != now {
            todo.extend(before.get(&op).into_iter().flatten());
        }
    }
    let wanted = live.get(&entry).copied().unwrap_or(0);
    known.insert((entry, depth), wanted);
    wanted
}

/// A general register's bit. The stack pointer has none.
fn bit(register: Register) -> u16 {
    let full = register.full_register();
    let place = GENERAL.iter().position(|&other| other == full && full != Register::RSP);
    place.map_or(0, |place| 1 << place)
}

/// The registers in which a call leaves nothing of its caller's. Code outside leaves nothing in those that the ABI does not keep. A
/// function of this file may leave them unchanged on some path, and compilers rely on that.
fn lost(program: &Program, functions: &[Function], callee: &Callee, depth: usize) -> u16 {
    let volatile = GENERAL.into_iter().filter(|register| !CALLEE_SAVED.contains(register));
    let all = volatile.map(bit).fold(0, core::ops::BitOr::bitor);
    let Callee::Local(entry) = callee else { return all };
    let found = functions.binary_search_by_key(entry, |function| function.entry);
    let Some(function) = found.ok().map(|n| &functions[n]).filter(|f| depth > 0 && f.astray.is_empty())
    else {
        return 0;
    };
    let mut info = InstructionInfoFactory::new();
    let mut out = all;
    // What was written on every path to an instruction.
    let mut before: HashMap<usize, u16> = HashMap::from([(function.entry, 0)]);
    let mut todo = vec![function.entry];
    while let Some(op) = todo.pop() {
        let instruction = &program.ops[op].instruction;
        let mut written = before[&op];
        for used in info.info(instruction).used_registers() {
            let whole = used.access() == OpAccess::Write && used.register().size() >= 4;
            if whole && instruction.mnemonic() != Mnemonic::Pop && !may_keep(instruction) {
                written |= bit(used.register());
            }
        }
        if let Some(call) = function.calls.get(&op) {
            written |= lost(program, functions, &call.callee, depth - 1);
        }
        match function.exits.get(&op) {
            None | Some(Exit::Stop) => (),
            Some(Exit::Return | Exit::Link) => out &= written,
            Some(Exit::Tail(callee)) => out &= written | lost(program, functions, callee, depth - 1),
        }
        for &next in &function.next[&op] {
            let known = before.get(&next).copied();
            let both = known.unwrap_or(!0) & written;
            if known != Some(both) {
                before.insert(next, both);
                todo.push(next);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{flow, unwinding};

    /// A jump by a table whose base stays in `rbx`, before other code.
    fn closes(code: &str) -> bool {
        let text = format!(
            ".globl f, h\nf:\tleaq .Lt(%rip), %rbx\n movslq (%rbx,%rax,4), %rax\n addq %rbx, %rax\n jmp *%rax\n.La:\t{code}\n ret\n\
             h:\tret\n.globl j\nj:\ttestl %ecx, %ecx\n je .Lj\n xorl %r8d, %r8d\n.Lj:\txorl %r9d, %r9d\n popq %r10\n jmp h\n.section .rodata\n.Lt: .long .La-.Lt\n"
        );
        let program = Program::new("f.s", &text).expect("a program");
        let functions =
            flow::functions(&program, &unwinding::landing(&program), &BTreeSet::new()).expect("few");
        !closed(&program, &tables::tables(&program), &functions).is_empty()
    }

    #[test]
    fn a_table_is_closed_where_its_address_reads_nothing_else() {
        for (code, want) in [
            ("nop", true),
            // Words of four bytes from elsewhere, by an index or extended.
            ("movslq 8(%rdi), %rcx", true),
            ("movl (%rdi,%rcx,4), %ecx", true),
            ("movq %rdi, -8(%rsp)\n movq -8(%rsp), %rdx\n movl (%rdx), %ecx", true),
            ("movl $0, %ebx\n movl (%rbx), %ecx", true),
            // What a call of other code returns is not the table.
            ("call elsewhere\n movl (%rax), %ecx", true),
            // The table read again, by the register, a copy, a sum, a cell, a vector register, an exchange, its name.
            ("movl (%rbx,%rcx,4), %ecx", false),
            ("movb (%rbx), %cl", false),
            ("movq %rbx, %rdx\n movq (%rdx), %rcx", false),
            ("leaq 4(%rbx,%rcx), %rdx\n movslq (%rdx), %rcx", false),
            ("movq %rbx, -8(%rsp)\n movq -8(%rsp), %rdx\n movl (%rdx), %ecx", false),
            ("movq -8(%rsp), %rdx\n movl (%rdx), %ecx\n movq %rbx, -8(%rsp)\n jmp .La", false),
            ("movq %rbx, %xmm0\n movq %xmm0, %rdx\n movl (%rdx), %ecx", false),
            ("xchgq %rbx, %rdx\n movl (%rdx), %ecx", false),
            ("movb $0, %bl\n movl (%rbx), %ecx", false),
            ("movl .Lt(%rip), %ecx", false),
            ("movq %rbx, %rsp\n popq %rcx", false),
            // Calls keep it: by the ABI, or because the callee leaves the register alone.
            ("call elsewhere\n movl (%rbx), %ecx", false),
            ("movq %rbx, %r8\n call h\n movl (%r8), %ecx", false),
            ("movq %rbx, %r8\n call j\n movl (%r8), %ecx", false),
            ("movq %rbx, %r10\n call j\n movl (%r10), %ecx", false),
            ("movq %rbx, %r9\n call j\n movl (%r9), %ecx", true),
            // A place that was read there, for another jump: by its register, by memory.
            ("testl %ecx, %ecx\n je .La\n jmp *%rax", false),
            ("movq %rax, -8(%rsp)\n testl %ecx, %ecx\n je .La\n jmp *-8(%rsp)", false),
            ("movq %rax, (%rdi)", false),
            ("movq %rax, -8(%rsp)", true),
            ("movq (%rdi), %rax\n testl %ecx, %ecx\n je .La\n jmp *%rax", true),
            // Its address in data, where any function finds it.
            ("ret\n.data\n .quad .Lt\n.text\n nop", false),
        ] {
            assert_eq!(closes(code), want, "{code}");
        }
    }
}
