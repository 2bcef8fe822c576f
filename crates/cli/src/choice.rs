//! Which backend and how many threads an operation uses: as asked for, else as the profile says, else the best.
#![forbid(unsafe_code)]

use lanework_cpu::{Backends, Engine, Select, Threads};

use crate::outcome::Failure;
use crate::profile::Choice;
use crate::ui::Session;

impl Session {
    fn choice(&self, subject: &str) -> Option<&Choice> {
        self.profile.as_ref().ok()?.as_ref()?.choices.get(subject)
    }

    /// The backend for a job: forced by flag or environment, else the profile's, else the best.
    pub(crate) fn engine<K: Backends>(&self, subject: &str) -> Result<Engine<K>, Failure> {
        let forced = self.context.settings.select(K::PRIMITIVE);
        if forced == Select::Best
            && let Some(choice) = self.choice(subject)
            && let Ok(engine) = Engine::choose(&self.context.cpu, Select::Named(&choice.backend))
        {
            return Ok(engine);
        }
        Engine::choose(&self.context.cpu, forced).map_err(Failure::unavailable)
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
