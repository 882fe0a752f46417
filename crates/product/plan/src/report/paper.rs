//! The first paper's figure 12 itself: messages lost in a year over the retransmission budget, on one network and
//! on two.

use bumpless_base::Duration;

use super::{losses, page};
use crate::input::Loss;
use crate::reliability::{lost_on_all, state_loss, states_per_year};

/// Sizes of the messages, bytes; the paper's text names the first and the last.
pub const SIZES: [u32; 6] = [5_000_000, 2_500_000, 1_000_000, 500_000, 100_000, 15_000];
/// Bytes of a message in each packet: all that a frame carries, as the paper reckons (15 kB are ten packets, 5 MB
/// more than 3,000).
const PAYLOAD: u32 = 1_500;
/// Bytes of a full-size Ethernet frame, which every packet counts as.
pub const FRAME: u64 = 1_518;
const BIT_ERRORS: Loss = Loss::BitErrors(1e-10);
const PERIOD: Duration = Duration::from_millis(100);

const TITLE: &str =
    "Messages lost in a year over the retransmission budget (first paper, figure 12)";
const BELOW: &str = "retransmission budget; upwards: messages lost in a year at one each 100 ms, bit error rate 1e-10; \
                     solid: one network, dashed: two";

/// Packets of a message of `size` bytes.
pub fn packets(size: u32) -> u64 {
    size.div_ceil(PAYLOAD).into()
}

/// Messages of `size` bytes lost in a year on so many networks.
pub fn lost_in_a_year(size: u32, budget: u32, networks: usize) -> f64 {
    let on_one = BIT_ERRORS.of_frame(FRAME);
    let on_all = lost_on_all(std::iter::repeat_n(on_one, networks));
    state_loss(packets(size), budget, on_all) * states_per_year(PERIOD)
}

/// The figure, a drawing that stands alone.
pub fn figure_12() -> String {
    let lines = SIZES.map(|size| {
        let curve = |networks| {
            let budgets = 0..=losses::BUDGETS;
            budgets.map(move |budget| lost_in_a_year(size, budget, networks))
        };
        losses::Line {
            name: format!("{} MB", f64::from(size) / 1e6),
            more: 0,
            budget: None,
            single: curve(1).collect(),
            all: curve(2).collect(),
        }
    });
    let lines: Vec<&losses::Line> = lines.iter().collect();
    page::alone(&losses::figure(&lines, losses::BUDGETS, (TITLE, BELOW)))
}
