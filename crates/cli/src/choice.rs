//! Which backend and how many threads an operation uses: as asked for, else as the profile says, else the best.
#![forbid(unsafe_code)]

use lanework_cpu::{Backend, Select, Threads};
use lanework_mayo::Engine;

use crate::outcome::Failure;
use crate::profile::Choice;
use crate::ui::Session;

impl Session {
    fn choice(&self, subject: &str) -> Option<&Choice> {
        self.profile.as_ref().ok()?.as_ref()?.choices.get(subject)
    }

    /// The backend for one MAYO operation: forced by flag or environment, else the profile's, else the best.
    pub(crate) fn mayo_engine(&self, subject: &str) -> Result<Engine, Failure> {
        let forced = self.context.settings.select("mayo");
        if forced == Select::Best
            && let Some(choice) = self.choice(subject)
            && let Ok(engine) = Engine::choose(&self.context.cpu, Select::Named(&choice.backend))
        {
            return Ok(engine);
        }
        Engine::choose(&self.context.cpu, forced).map_err(Failure::unavailable)
    }

    /// The same for Magma.
    pub(crate) fn magma_choice(&self, subject: &str) -> Result<lanework_magma::Choice, Failure> {
        let forced = self.context.settings.select("magma");
        if forced == Select::Best
            && let Some(choice) = self.choice(subject)
            && let Ok(choice) = lanework_magma::Choice::new(&self.context.cpu, Select::Named(&choice.backend))
        {
            return Ok(choice);
        }
        lanework_magma::Choice::new(&self.context.cpu, forced).map_err(Failure::unavailable)
    }

    /// The backend of the integers by themselves: forced, else the best. Nothing races them, so that no profile has a choice,
    /// and the delay function's own choice names its integers too.
    pub(crate) fn integer_backend(
        &self,
    ) -> Result<&'static Backend<lanework_integer::backend::Kernels>, Failure> {
        let (table, forced) = (lanework_integer::backend::BACKENDS, self.context.settings.select("integer"));
        lanework_cpu::select(table, &self.context.cpu, forced).map_err(Failure::unavailable)
    }

    /// As for MAYO, for the squaring chain of the delay function.
    pub(crate) fn vdf_backend(
        &self,
        subject: &str,
    ) -> Result<&'static Backend<lanework_vdf::backend::Kernels>, Failure> {
        let (table, cpu) = (lanework_vdf::backend::BACKENDS, &self.context.cpu);
        let forced = self.context.settings.select("vdf");
        if forced == Select::Best
            && let Some(choice) = self.choice(subject)
            && let Ok(row) = lanework_cpu::select(table, cpu, Select::Named(&choice.backend))
        {
            return Ok(row);
        }
        lanework_cpu::select(table, cpu, forced).map_err(Failure::unavailable)
    }

    /// That a device which was asked for is there, for what would go on without.
    pub(crate) fn device_there(&self) -> Result<(), Failure> {
        if self.context.device.is_asked() {
            self.context.device.open().map_err(Failure::unavailable)?;
        }
        Ok(())
    }

    /// Threads for a batch: as asked for (0: one for each core), else the profile's, else one for each core.
    pub(crate) fn threads(&self, asked: Option<usize>, subject: &str) -> Threads<'static> {
        match (asked, self.choice(subject)) {
            (Some(n), _) => Threads::Own(n),
            (None, Some(choice)) => Threads::Own(choice.threads),
            (None, None) => Threads::Own(0),
        }
    }
}
