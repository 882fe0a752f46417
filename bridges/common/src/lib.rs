//! What every bridge beside a node does: it asks the node at its control socket, as any other program may, says which of
//! the answer is shown under which name, and tells of itself.

pub mod model;
pub mod node;
mod problem;
mod report;
mod signals;

pub use problem::Problem;
pub use report::Report;
pub use signals::told_to_end;
