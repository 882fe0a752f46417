//! What the text says, what the model says, and whether the one is the other.

/// A sentence of the text beside the model.
#[derive(Clone, Debug)]
pub struct Claim {
    /// A name for tests and JSON.
    pub name: &'static str,
    /// Figure and section.
    pub place: &'static str,
    /// What the text says.
    pub text: &'static str,
    /// What the model says.
    pub model: String,
    /// Whether the model says the same.
    pub agrees: bool,
    /// Why it does not.
    pub reason: &'static str,
}

impl Claim {
    /// A claim on which both must agree.
    pub fn new(
        name: &'static str,
        place: &'static str,
        text: &'static str,
        (model, agrees): (String, bool),
    ) -> Self {
        Self {
            name,
            place,
            text,
            model,
            agrees,
            reason: "",
        }
    }

    /// The same claim, with the reason for what differs.
    pub fn because(mut self, reason: &'static str) -> Self {
        self.reason = reason;
        self
    }
}

/// A drawing.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Name of its file, without ending.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// The drawing.
    pub svg: String,
}

impl Picture {
    /// A picture; its title is also what a screen reader says.
    pub fn new(file: &str, title: &str, draw: impl FnOnce(&str) -> String) -> Self {
        Self {
            file: file.to_owned(),
            title: title.to_owned(),
            svg: draw(title),
        }
    }
}

/// Figures that belong together.
#[derive(Clone, Debug)]
pub struct Part {
    /// Their heading.
    pub title: &'static str,
    /// What is modelled.
    pub about: &'static str,
    /// The drawings.
    pub pictures: Vec<Picture>,
    /// What the text says of them.
    pub claims: Vec<Claim>,
}
