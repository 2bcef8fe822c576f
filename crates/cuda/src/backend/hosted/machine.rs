//! The contract of a device, fulfilled by a queue of work on the host.

use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::queue::{Event, State, Step};
use super::{Body, Hosted, Work};
use crate::backend::{Argument, Limit, Machine, Reopen};
use crate::card::{Card, Memory};
use crate::error::{Error, Failure, Grave};
use crate::module::{Facts, Image};
use crate::stream::Grid;

const PAGE: usize = 4096;

impl<B: Body> Hosted<B> {
    /// The state, unless the device is lost.
    fn living(&self) -> Result<MutexGuard<'_, State<B>>, Error> {
        self.grave.check()?;
        Ok(self.state())
    }

    /// A real driver's error for such work: code 700 for every fault of a kernel.
    fn judged<T>(&self, call: &'static str, result: Result<T, String>) -> Result<T, Error> {
        result.map_err(|text| {
            self.grave.judge(Failure { call, code: 700, name: "CUDA_ERROR_ILLEGAL_ADDRESS".to_owned(), text })
        })
    }

    /// All that is queued is dropped with a lost device.
    fn settle(&self, state: &mut State<B>) {
        let result = if self.grave.cause().is_none() { state.drain_all() } else { Ok(()) };
        if self.judged("cuCtxSynchronize", result).is_err() || self.grave.cause().is_some() {
            state.streams.clear();
        }
    }
}

impl<B: Body> Machine for Hosted<B> {
    fn card(&self) -> &Card {
        &self.card
    }

    fn grave(&self) -> &Grave {
        &self.grave
    }

    fn reopen(&self) -> Reopen {
        let (card, order, body) = {
            let state = self.state();
            (self.card.clone(), state.common.order, Mutex::new(state.body.renewed()))
        };
        Box::new(move || {
            let body = body.lock().unwrap_or_else(PoisonError::into_inner).renewed();
            Ok(super::context(card.clone(), order, body) as Arc<dyn Machine>)
        })
    }

    fn memory(&self) -> Result<Memory, Error> {
        let state = self.living()?;
        let total = state.common.plan.memory.unwrap_or(self.card.memory);
        Ok(Memory { free: total.saturating_sub(state.common.used), total })
    }

    fn limit(&self, limit: Limit, bytes: usize) -> Result<(), Error> {
        let mut state = self.living()?;
        match limit {
            Limit::Stack => state.stack = bytes as u64,
            Limit::Heap => state.body.limit_heap(bytes as u64),
        }
        Ok(())
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Error> {
        let mut state = self.living()?;
        let none = Error::OutOfMemory { what: "device memory", bytes };
        let total = state.common.plan.memory.unwrap_or(self.card.memory);
        if state.common.used.saturating_add(bytes as u64) > total {
            return Err(none);
        }
        state.allocate(bytes).ok_or(none)
    }

    fn free(&self, address: u64, bytes: usize, wipe: bool) {
        let mut state = self.state();
        self.settle(&mut state);
        if wipe && !self.grave.is_lost() {
            let number = usize::MAX;
            state.push(number, Step::Zero { at: address, bytes });
            let _ = state.drain(number);
        }
        state.free(address, wipe);
    }

    fn pin(&self, bytes: usize) -> Result<NonNull<u8>, Error> {
        self.grave.check()?;
        let none = Error::OutOfMemory { what: "pinned memory", bytes };
        if let Some(pinned) = self.state().body.pin(bytes) {
            return pinned.ok_or(none);
        }
        let layout = Layout::from_size_align(bytes.max(1), PAGE).map_err(|_| none.clone())?;
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        let _ = memory.expose_provenance();
        NonNull::new(memory).ok_or(none)
    }

    fn unpin(&self, memory: NonNull<u8>, bytes: usize) {
        if self.grave.cause().is_some() {
            // No queued work may reach it.
            self.state().streams.clear();
        }
        if self.state().body.unpin(memory, bytes) {
            return;
        }
        if let Ok(layout) = Layout::from_size_align(bytes.max(1), PAGE) {
            // SAFETY: `pin` made it with this layout, and nothing uses it any longer.
            unsafe { dealloc(memory.as_ptr(), layout) };
        }
    }

    fn load(&self, image: &Image) -> Result<usize, Error> {
        let mut state = self.living()?;
        let State { body, common, .. } = &mut *state;
        body.load(image, &common.plan.lines)
    }

    fn unload(&self, module: usize) {
        self.state().body.unload(module);
    }

    fn function(&self, module: usize, image: &Image, name: &str) -> Result<(usize, Facts), Error> {
        let mut state = self.living()?;
        let Some((kernel, facts)) = state.body.function(module, name)? else {
            return Err(Error::NoKernel { image: image.name(), kernel: name.to_owned() });
        };
        let number = state.number();
        state.functions.insert(number, kernel);
        let (major, minor) = self.card.capability;
        Ok((number, Facts { binary: major * 10 + minor, ..facts }))
    }

    fn allow_shared(&self, _: usize, bytes: u32) -> Result<(), Error> {
        self.grave.check()?;
        if bytes <= self.card.shared_per_block {
            return Ok(());
        }
        Err(Error::Shape(format!(
            "a block cannot have {bytes} bytes of shared memory: the device allows {}",
            self.card.shared_per_block
        )))
    }

    fn occupancy(&self, _: usize, threads: u32, shared: u32) -> Result<u32, Error> {
        self.grave.check()?;
        // A block takes 1 KiB more than it asks for, as on a device.
        let by_shared = (self.card.shared_per_block + 1024) / (shared + 1024);
        Ok(by_shared.min(1536 / threads.max(1)).min(24))
    }

    fn open_stream(&self) -> Result<usize, Error> {
        let mut state = self.living()?;
        let number = state.number();
        state.streams.insert(number, Default::default());
        Ok(number)
    }

    fn close_stream(&self, stream: usize) {
        let _ = self.finish(stream);
        self.state().streams.remove(&stream);
    }

    fn finish(&self, stream: usize) -> Result<(), Error> {
        let mut state = self.living()?;
        let result = state.drain(stream);
        self.judged("cuStreamSynchronize", result)
    }

    fn finish_all(&self) -> Result<(), Error> {
        let mut state = self.living()?;
        let result = state.drain_all();
        self.judged("cuCtxSynchronize", result)
    }

    fn open_event(&self, _: bool) -> Result<usize, Error> {
        let mut state = self.living()?;
        let number = state.number();
        state.events.insert(number, Event::default());
        Ok(number)
    }

    fn close_event(&self, event: usize) {
        let mut state = self.state();
        // Other streams may still wait for it.
        while !state.is_reached(event) && self.grave.cause().is_none() {
            let Some(stream) = state.stream_of(event) else { break };
            let result = state.step(stream);
            if !self.judged("cuEventDestroy_v2", result).unwrap_or(false) {
                break;
            }
        }
        state.events.remove(&event);
    }

    fn record(&self, stream: usize, event: usize) -> Result<(), Error> {
        self.living()?.record(stream, event);
        Ok(())
    }

    fn wait_in(&self, stream: usize, event: usize) -> Result<(), Error> {
        let mut state = self.living()?;
        let turn = state.events.get(&event).map_or(0, |e| e.asked);
        state.push(stream, Step::Wait { event, turn });
        Ok(())
    }

    fn wait(&self, event: usize) -> Result<(), Error> {
        let mut state = self.living()?;
        while !state.is_reached(event) {
            let Some(stream) = state.stream_of(event) else { break };
            let result = state.step(stream);
            if !self.judged("cuEventSynchronize", result)? {
                break;
            }
        }
        Ok(())
    }

    /// A query does one piece of the work, so that polling ends.
    fn is_done(&self, event: usize) -> Result<bool, Error> {
        let mut state = self.living()?;
        if let Some(stream) = state.stream_of(event).filter(|_| !state.is_reached(event)) {
            let result = state.step(stream);
            self.judged("cuEventQuery", result)?;
        }
        Ok(state.is_reached(event))
    }

    fn between(&self, _: usize, _: usize) -> Result<Duration, Error> {
        self.grave.check()?;
        Ok(Duration::ZERO)
    }

    unsafe fn upload(&self, stream: usize, from: *const u8, to: u64, bytes: usize) -> Result<(), Error> {
        self.living()?.push(stream, Step::Upload { from: from.expose_provenance(), to, bytes });
        Ok(())
    }

    unsafe fn download(&self, stream: usize, from: u64, to: *mut u8, bytes: usize) -> Result<(), Error> {
        self.living()?.push(stream, Step::Download { from, to: to.expose_provenance(), bytes });
        Ok(())
    }

    unsafe fn copy(&self, stream: usize, from: u64, to: u64, bytes: usize) -> Result<(), Error> {
        self.living()?.push(stream, Step::Copy { from, to, bytes });
        Ok(())
    }

    unsafe fn zero(&self, stream: usize, at: u64, bytes: usize) -> Result<(), Error> {
        self.living()?.push(stream, Step::Zero { at, bytes });
        Ok(())
    }

    unsafe fn launch(
        &self,
        stream: usize,
        function: usize,
        grid: Grid,
        arguments: &[Argument],
    ) -> Result<(), Error> {
        let mut state = self.living()?;
        let Some(kernel) = state.functions.get(&function).cloned() else {
            return Err(Error::Shape("the kernel belongs to a different device".to_owned()));
        };
        if let Some(why) = B::refuses(&kernel, arguments) {
            return Err(Error::Shape(format!("{} {why}", B::name(&kernel))));
        }
        if let Some(argument) = arguments.iter().find(|a| a.0.pointer && !state.body.knows(a.0.value)) {
            return Err(Error::Shape(format!(
                "{}: {:#x} is not an address of this device",
                B::name(&kernel),
                argument.0.value
            )));
        }
        let values = arguments.iter().map(|argument| argument.0.value).collect();
        let (order, counting, stack) = (state.common.order, state.common.counting, state.stack);
        state.push(stream, Step::Kernel(Work { kernel, grid, values, order, counting, stack }));
        Ok(())
    }
}
