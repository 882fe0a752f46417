//! Policies by name.

use bumpless_base::{Duration, Instant};
use bumpless_guard::metric::{Earliness, Fill};
use bumpless_guard::mitigation::{
    Budget, Burst, Gates, Hysteresis, Mitigation, Queue, Slack, SlackSettings, Unmitigated,
};

/// Who comes first where both want the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The critical task.
    CriticalFirst,
    /// Neither. An interrupt that wakes the driver gives it the processor, and it keeps it until it has nothing left.
    Equal,
    /// Neither. They take turns at every tick.
    Sliced,
    /// The driver.
    DriverFirst,
}

/// A policy against floods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The scheduler alone.
    None,
    /// So many packets in a slice.
    Burst(u32, Duration),
    /// Stopped and started by the share of its target that the task uses, in percent.
    Hysteresis(u32, u32),
    /// The task's earliness is the driver's budget.
    Budget,
    /// The same, the driver seeing only so many percent of the time that it takes.
    ShortBudget(u32),
    /// A full queue silences the network until it is empty.
    Queue,
    /// Ours: interrupts are paid from the slack of the job that they interrupt.
    Slack,
}

/// How long the stopped driver of the hysteresis mitigation sleeps: one tick of FreeRTOS at 1 kHz.
const NAP: Duration = Duration::from_millis(1);

impl Policy {
    /// All, with the settings of section 5.3.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Burst(600, Duration::from_millis(20)),
        Self::Hysteresis(90, 90),
        Self::Budget,
        Self::Queue,
        Self::Slack,
    ];

    /// Its name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Burst(..) => "burst",
            Self::Hysteresis(..) => "hysteresis",
            Self::Budget | Self::ShortBudget(_) => "budget",
            Self::Queue => "queue",
            Self::Slack => "slack",
        }
    }

    /// Which priorities section 5.2.2 wants with it.
    pub fn order(self) -> Order {
        match self {
            Self::Budget | Self::ShortBudget(_) => Order::Equal,
            _ => Order::CriticalFirst,
        }
    }

    /// The policy itself; `settings` is what the slack mitigation must know.
    pub fn build(self, settings: SlackSettings) -> Box<dyn Mitigation> {
        match self {
            Self::None => Box::new(Unmitigated),
            Self::Burst(capacity, length) => Box::new(Burst::new(capacity, length)),
            Self::Hysteresis(stop, go_on) => Box::new(Hysteresis::new(stop, go_on, NAP)),
            Self::Budget => Box::new(Budget::new()),
            Self::ShortBudget(percent) => Box::new(Short {
                budget: Budget::new(),
                percent,
            }),
            Self::Queue => Box::new(Queue::new()),
            Self::Slack => Box::new(Slack::new(settings)),
        }
    }
}

/// A budget whose driver underestimates itself, which is how section 5.3.1 explains its measurement.
struct Short {
    budget: Budget,
    percent: u32,
}

impl Mitigation for Short {
    fn handle_processed(&mut self, now: Instant, spent: Duration, fill: Fill) {
        let seen = spent * u64::from(self.percent) / 100;
        self.budget.handle_processed(now, seen, fill);
    }

    fn handle_completion(&mut self, now: Instant, earliness: Earliness) {
        self.budget.handle_completion(now, earliness);
    }

    fn gates(&self) -> Gates {
        self.budget.gates()
    }
}
