//! What people are told.

use bumpless_field_driver::Answers;

/// What is told of, each by itself.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// Why there is no session.
    Session,
    /// The server's state.
    State,
    /// Values that may not be read.
    Reading,
    /// Values that may not be written.
    Writing,
}

/// What holds of each, and what was told last.
pub struct Notes {
    answers: Answers,
    now: [String; 4],
    told: String,
}

impl Notes {
    pub fn new(answers: Answers) -> Self {
        Self {
            answers,
            now: Default::default(),
            told: String::new(),
        }
    }

    /// What holds from now on; nothing, if it is empty. Who does not hear it is gone.
    pub fn tell(&mut self, of: Of, note: impl Into<String>) {
        let (now, note) = (&mut self.now[of as usize], note.into());
        if *now != note {
            *now = note;
            self.tell_all();
        }
    }

    fn tell_all(&mut self) {
        let holding = self.now.iter().map(String::as_str);
        let holding: Vec<_> = holding.filter(|note| !note.is_empty()).collect();
        let all = holding.join("; besides, ");
        if all != self.told {
            let _ = self.answers.note(&all);
            self.told = all;
        }
    }

    /// There is no session, for this reason; what was told of it is of no use.
    pub fn lose(&mut self, why: String) {
        self.now = Default::default();
        self.now[Of::Session as usize] = why;
        self.tell_all();
    }
}
