//! A device that executes the PTX which ships, one instruction of a warp at a time, in Rust alone.
//!
//! Semantics are written from the PTX ISA 9.0; each opcode's section is at its form in `decode/forms.rs`. What a program must
//! not do ends its launch, with the kernel, the line of the text and the thread: accesses outside of buffers or unaligned, values
//! that nothing has written where they matter, races on shared memory, collectives and barriers that a part of a warp reaches, barriers that
//! nothing completes.

mod access;
mod alu;
mod block;
mod collective;
mod container;
mod decode;
mod device_race;
mod execute;
mod flow;
mod follow;
mod memory;
mod parse;
mod program;
mod race;
mod traffic;
mod warp;

use std::collections::HashMap;
use std::sync::Arc;

use crate::backend::hosted::{self, Body, Control, Emulation, Ran, Work};
use crate::backend::{Argument, Machine};
use crate::card;
use crate::error::Error;
use crate::module::{Facts, Image};

use block::Placed;
use memory::{Memory, Owner};
use program::{Code, Program};
use warp::Given;

/// Bytes of the heap that kernels allocate from, unless the host sets a limit: CUDA's default.
const HEAP: u64 = 8 << 20;

/// What CUDA promises of a buffer's address.
const ALIGN: u32 = 256;

/// A kernel of a program.
#[derive(Clone, Debug)]
struct Kernel {
    module: usize,
    program: Arc<Program>,
    code: Arc<Code>,
}

/// Memory and programs.
#[derive(Debug, Default)]
struct Executed {
    memory: Memory,
    /// Programs, with the addresses of their variables.
    modules: HashMap<usize, (Arc<Program>, Vec<u64>)>,
    next: usize,
}

/// A device of this kind and its control.
pub(crate) fn open(how: Emulation) -> (Arc<dyn Machine>, Control) {
    hosted::open(hosted::card(&how, card::PTX), how.order, Executed::new())
}

impl Executed {
    fn new() -> Executed {
        let mut body = Executed::default();
        body.limit_heap(HEAP);
        body
    }
}

/// The words in which the host hears of a fault.
fn told(program: &Program, kernel: &str, (block, fault): Placed) -> String {
    let thread = fault.thread.map_or(String::new(), |thread| format!(", thread {thread}"));
    let text = program.line(fault.line);
    format!("{kernel}, line {} `{text}`, block {block}{thread}: {}", fault.line, fault.why)
}

impl Body for Executed {
    type Kernel = Kernel;

    fn allocate(&mut self, bytes: usize) -> Option<u64> {
        Some(self.memory.allocate(bytes, ALIGN, Owner::Host))
    }

    fn free(&mut self, address: u64, _: usize, secret: bool) -> bool {
        self.memory
            .free(address, Owner::Host)
            .is_some_and(|buffer| secret && buffer.bytes.iter().all(|byte| *byte == 0))
    }

    fn knows(&self, address: u64) -> bool {
        self.memory.knows(address)
    }

    fn load(&mut self, image: &Image, planted: &[(String, String)]) -> Result<usize, Error> {
        let program = Program::of(image.code(), planted)
            .map_err(|why| Error::unavailable(format!("the program '{}'", image.name()), why))?;
        let mut addresses = Vec::new();
        for global in &program.outline.globals {
            let address = self.memory.allocate(global.bytes.len(), global.align, Owner::Module);
            let written = self.memory.write(address, &global.bytes);
            written.map_err(|why| Error::Shape(format!("'{}': {why}", global.name)))?;
            addresses.push(address);
        }
        self.next += 1;
        self.modules.insert(self.next, (program, addresses));
        Ok(self.next)
    }

    fn unload(&mut self, module: usize) {
        if let Some((_, addresses)) = self.modules.remove(&module) {
            addresses.iter().for_each(|address| drop(self.memory.free(*address, Owner::Module)));
        }
    }

    fn function(&mut self, module: usize, name: &str) -> Result<Option<(Kernel, Facts)>, Error> {
        let Some((program, _)) = self.modules.get(&module) else { return Ok(None) };
        let Some(code) = program.kernel(name) else { return Ok(None) };
        let code = code.map_err(|wrong| {
            let text = program.line(wrong.line);
            Error::unavailable(format!("the kernel '{name}'"), format!("{wrong}: `{text}`"))
        })?;
        let facts =
            Facts { max_threads: code.max_threads, local: code.local_bytes() as u32, ..Facts::default() };
        Ok(Some((Kernel { module, program: Arc::clone(program), code }, facts)))
    }

    fn name(kernel: &Kernel) -> String {
        kernel.code.name.clone()
    }

    fn refuses(kernel: &Kernel, arguments: &[Argument]) -> Option<String> {
        let declared = &kernel.code.parameters;
        if declared.len() != arguments.len() {
            return Some(format!("takes {} arguments but gets {}", declared.len(), arguments.len()));
        }
        declared.iter().zip(arguments).enumerate().find_map(|(i, (declared, argument))| {
            let bytes = u32::from(argument.0.bytes);
            (declared.bytes != bytes)
                .then(|| format!("takes {} bytes as argument {i} but gets {bytes}", declared.bytes))
        })
    }

    fn limit_heap(&mut self, bytes: u64) {
        self.memory.heap_limit = bytes;
    }

    unsafe fn upload(&mut self, from: *const u8, to: u64, bytes: usize) -> Result<(), String> {
        // SAFETY: it is readable for so many bytes, by this method's contract, and written before it was queued.
        let from = unsafe { core::slice::from_raw_parts(from, bytes) };
        self.memory.write(to, from)
    }

    unsafe fn download(&mut self, from: u64, to: *mut u8, bytes: usize) -> Result<(), String> {
        // SAFETY: nothing else uses these bytes until the copy is done, by this method's contract; pinned memory is initialised.
        let to = unsafe { core::slice::from_raw_parts_mut(to, bytes) };
        self.memory.read(from, to)
    }

    unsafe fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), String> {
        self.memory.copy(from, to, bytes)
    }

    unsafe fn zero(&mut self, at: u64, bytes: usize) -> Result<(), String> {
        self.memory.zero(at, bytes)
    }

    unsafe fn launch(&mut self, work: &Work<Kernel>) -> Result<Ran, String> {
        let Kernel { module, program, code } = &work.kernel;
        let Some((_, globals)) = self.modules.get(module) else {
            return Err(format!("{}: its program has been unloaded", code.name));
        };
        let mut parameters = vec![0; parse::parameters_end(&code.parameters) as usize];
        for (parameter, value) in code.parameters.iter().zip(&work.values) {
            let (at, bytes) = (parameter.offset as usize, parameter.bytes as usize);
            parameters[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        let grid = work.grid;
        let given = Given { parameters: &parameters, globals, threads: grid.threads, blocks: grid.blocks };
        let ran = block::launch(code, &mut self.memory, &given, grid, work.order, work.counting);
        ran.map_err(|fault| told(program, &code.name, fault))
    }

    fn renewed(&self) -> Executed {
        Executed::new()
    }
}
