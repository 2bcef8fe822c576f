//! Which backend and how many threads a job uses: as asked for, else from the profile, else the best backend and every core.
#![forbid(unsafe_code)]

use lanework_cpu::{Backends, Engine, Select, ThreadPool, Threads};
use lanework_study::Failure;
use lanework_suite::Job;

use crate::profile::Choice;
use crate::ui::Session;

impl Session {
    /// The profile's choice for a job: among those for the same operation in which `wanted` finds something, the one whose size
    /// is nearest.
    fn choice<T>(&self, job: Job, wanted: impl Fn(&Choice) -> Option<T>) -> Option<T> {
        let choices = &self.profile.as_ref().ok()?.as_ref()?.choices;
        let known = choices.iter().filter_map(|(of, choice)| Some((job.distance(*of)?, wanted(choice)?)));
        known.min_by(|(x, _), (y, _)| x.total_cmp(y)).map(|(_, found)| found)
    }

    /// The backend for a job: forced by flag or environment, else the profile's, else the best.
    pub(crate) fn engine<K: Backends>(&self, job: Job) -> Result<Engine<K>, Failure> {
        let named = |choice: &Choice| Engine::choose(&self.context.cpu, Select::Named(&choice.backend)).ok();
        match self.context.settings.select(K::PRIMITIVE) {
            Select::Best => self.choice(job, named).map_or_else(|| self.usual_engine(), Ok),
            Select::Named(_) => self.usual_engine(),
        }
    }

    /// The backend if no job is named: forced, else the best.
    pub(crate) fn usual_engine<K: Backends>(&self) -> Result<Engine<K>, Failure> {
        let forced = self.context.settings.select(K::PRIMITIVE);
        Engine::choose(&self.context.cpu, forced)
            .map_err(|why| Failure::unavailable(why).help("`lanework doctor` shows what this machine has"))
    }

    /// Threads for a job: as asked for (0: one per core), else the profile's, else one per core.
    pub(crate) fn threads(&self, asked: Option<usize>, job: Job) -> Threads<'static> {
        Threads::Own(asked.or_else(|| self.choice(job, |choice| choice.threads)).unwrap_or(0))
    }

    /// The threads of a job as one pool for all its pieces; none if one thread does them.
    pub(crate) fn pool(&self, asked: Option<usize>, job: Job) -> Result<Option<ThreadPool>, Failure> {
        let threads = self.threads(asked, job).count();
        (threads > 1).then(|| Threads::pool(threads)).transpose().map_err(Failure::unavailable)
    }

    /// Refuses a missing device that was asked for, for jobs that would go on without it.
    pub(crate) fn device_there(&self) -> Result<(), Failure> {
        if self.context.device.is_asked() {
            let device = &self.context.device;
            device.open().map_err(|why| Failure::unavailable(why).help(device.remedy()))?;
        }
        Ok(())
    }
}
