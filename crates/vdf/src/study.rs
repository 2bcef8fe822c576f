//! What only a study runs: the chain's code up to the end of each of its phases.
#![forbid(unsafe_code)]

pub use crate::backend::Phase;
use crate::backend::{Engine, Form1024, Tally};
use crate::chain::{Chain, ChainError};
use crate::{Discriminant, Form};

impl Phase {
    /// In the order in which they come.
    pub const ALL: [Phase; 4] = [Phase::Inverse, Phase::Multiples, Phase::Partial, Phase::Forms];
}

/// Forms along one chain of 513 to 1,024 bits, for each of which a backend's code can run up to a phase.
#[derive(Debug)]
pub struct Account {
    engine: Engine,
    forms: Vec<Form1024>,
    stop: usize,
    /// The lowest limbs of the squares, together, as the chain made them.
    squares: Tally,
}

impl Account {
    /// The first `count` forms of a chain from x that its fast code squares, from `skip` squarings on.
    ///
    /// # Errors
    /// [`ChainError`], as for [`Chain::new`] and [`Chain::square`].
    pub fn new(
        engine: Engine,
        d: &Discriminant,
        x: &Form,
        skip: u64,
        count: usize,
    ) -> Result<Account, ChainError> {
        let mut chain = Chain::new(d.on(engine), x)?;
        chain.square(skip)?;
        let mut account = Account { engine, forms: Vec::new(), stop: 0, squares: Tally::default() };
        // Forms of other lengths never become ones of this.
        for _ in 0..2 * count {
            let before = chain.form1024();
            let slow = chain.slow();
            chain.square(1)?;
            if let (Some((before, stop)), Some((after, _))) = (before, chain.form1024())
                && slow == chain.slow()
                && account.forms.len() < count
            {
                account.forms.push(before);
                account.stop = stop;
                account.squares.take(Some(after.a[0]));
            }
        }
        Ok(account)
    }

    /// How many forms there are.
    #[must_use]
    pub const fn forms(&self) -> usize {
        self.forms.len()
    }

    /// Runs the code up to the phase's end on every form, each after the one before has ended. A number in which all results
    /// are.
    pub fn run(&self, upto: Phase) -> u64 {
        self.engine.phases(&self.forms, self.stop, upto).mixed
    }

    /// Whether every phase has a result for every form, and the last the chain's.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let tally = |phase| self.engine.phases(&self.forms, self.stop, phase);
        Phase::ALL.iter().all(|&phase| tally(phase).done == self.forms.len())
            && tally(Phase::Forms) == self.squares
    }
}

#[cfg(test)]
mod tests {
    use lanework_cpu::Cpu;

    use super::*;
    use crate::backend::Engine;

    #[test]
    fn phases_end_in_the_chain_s_squares() {
        for (bits, some) in [(1024, true), (640, true), (512, false)] {
            let d = Discriminant::from_seed(b"phases", bits).expect("a discriminant");
            let x = Form::generator(&d).expect("a generator");
            for engine in Engine::available(&Cpu::detect()) {
                let account = Account::new(engine, &d, &x, 100, 50).expect("a chain");
                assert_eq!(account.forms(), if some { 50 } else { 0 }, "{} at {bits}", engine.name());
                assert!(account.agrees(), "{} at {bits}", engine.name());
            }
        }
    }

    #[test]
    fn a_wrong_form_is_noticed() {
        let d = Discriminant::from_seed(b"phases", 1024).expect("a discriminant");
        let x = Form::generator(&d).expect("a generator");
        let mut account = Account::new(Engine::best(), &d, &x, 100, 5).expect("a chain");
        account.forms[3].c[0] ^= 2;
        assert!(!account.agrees());
    }
}
