//! The tasks of a project, as its generated code calls them (H-30).

use bumpless_base::Duration;

/// A task that runs by interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// It runs in every so many-th cycle, from the first one on.
    pub every: u64,
}

impl Task {
    /// Time from one start to the next, in a project of this `period`.
    pub fn interval(&self, period: Duration) -> Duration {
        period * self.every
    }
}

/// The tasks that a generated file calls, in its order, which is that of their priorities.
pub(super) fn of(text: &str) -> Vec<Task> {
    text.lines().filter_map(task).collect()
}

/// What MATIEC writes for a task: `NAME = !(tick % 25);`.
fn task(line: &str) -> Option<Task> {
    let (name, rest) = line.trim().split_once(" = !(tick % ")?;
    let every = rest
        .strip_suffix(");")?
        .trim_end_matches(['u', 'U', 'l', 'L']);
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let every = every.parse().ok().filter(|&every| every > 0)?;
    (!name.is_empty() && name.chars().all(known)).then(|| Task {
        name: name.to_owned(),
        every,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_in_the_order_in_which_they_are_called() {
        let text = "void RES0_run__(unsigned long tick) {\n  FAST = !(tick % 1);\n  SLOW = !(tick % 25ULL);\n\
                    // ODD = !(tick % 3);\n  NEVER = !(tick % 0);\n  if (FAST) {\n";
        let task = |name: &str, every| Task {
            name: name.into(),
            every,
        };
        assert_eq!(of(text), [task("FAST", 1), task("SLOW", 25)]);
    }
}
