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

/// The tasks that a file of MATIEC calls, in its order, which is that of their priorities.
pub(super) fn of_matiec(text: &str) -> Vec<Task> {
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

/// A task of STruC++ without an interval has this one, nanoseconds, as in OpenPLC's runtime.
const USUAL_INTERVAL: u64 = 20_000_000;

/// The tasks that the files of STruC++ make, by priority, 0 first; of equal ones the one that is listed first.
pub(super) fn of_strucpp(texts: &[String]) -> Vec<Task> {
    let lines = texts.iter().flat_map(|text| text.lines());
    let mut found: Vec<(i64, &str, u64)> = lines.filter_map(task_instance).collect();
    found.sort_by_key(|&(priority, ..)| priority);
    let common = found.iter().fold(0, |all, &(.., each)| gcd(all, each));
    found
        .into_iter()
        .map(|(_, name, interval)| Task {
            name: name.to_owned(),
            every: interval / common,
        })
        .collect()
}

/// Priority, name and interval of `TaskInstance("FAST", 20000000LL, 0, ...)`.
fn task_instance(line: &str) -> Option<(i64, &str, u64)> {
    let (_, rest) = line.split_once("TaskInstance(\"")?;
    let (name, rest) = rest.split_once("\", ")?;
    let mut numbers = rest.split(", ");
    let interval: i64 = numbers.next()?.trim_end_matches('L').parse().ok()?;
    let priority = numbers.next()?.parse().ok()?;
    let interval = u64::try_from(interval).ok().filter(|&it| it > 0);
    Some((priority, name, interval.unwrap_or(USUAL_INTERVAL)))
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
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
        assert_eq!(of_matiec(text), [task("FAST", 1), task("SLOW", 25)]);
    }

    #[test]
    fn tasks_of_strucpp_are_ordered_by_priority_and_counted_in_periods() {
        let text = "    tasks_storage[0] = TaskInstance(\"SLOW\", 50000000LL, 7, &task_programs_storage[0], 1);\n\
                    \x20   tasks_storage[1] = TaskInstance(\"FAST\", 20000000LL, 1, &task_programs_storage[1], 1);\n\
                    \x20   tasks_storage[2] = TaskInstance(\"SINGLE\", 0LL, 7, &task_programs_storage[2], 1);\n";
        let found = of_strucpp(&[text.into()]);
        let told: Vec<_> = found.iter().map(|it| (&*it.name, it.every)).collect();
        assert_eq!(told, [("FAST", 2), ("SLOW", 5), ("SINGLE", 2)]);
    }
}
