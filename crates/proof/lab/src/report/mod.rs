//! The report of a run: one HTML file that needs nothing else, on a desk, on a phone, on paper.
//!
//! The drawings are plain SVG written here, because their colours come from the page's style sheet
//! and so follow the reader's choice of light or dark; plotting libraries paint fixed colours.

mod decimate;
mod page;
mod panel;
mod plots;
#[cfg(test)]
mod tests;

pub use page::{About, render};
