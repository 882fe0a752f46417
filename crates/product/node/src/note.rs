//! What a node found at its start that weakens it.

use bumpless_base::LinkId;

use crate::snapshot::LinkSnapshot;

/// A weakness found at start besides those of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// A sentence with its remedy.
    pub text: String,
    /// The network whose link comes up when it does not hold any more; `None`: it holds for as long as the
    /// process runs.
    pub until_up: Option<LinkId>,
}

impl Note {
    /// One that holds for as long as the process runs.
    pub const fn lasting(text: String) -> Self {
        Self {
            text,
            until_up: None,
        }
    }

    /// Whether it still holds with these `links` of `networks` networks, partner by partner.
    pub fn holds(&self, links: &[LinkSnapshot], networks: usize) -> bool {
        let Some(network) = self.until_up else {
            return true;
        };
        let of_network = links.iter().skip(network.0.into()).step_by(networks.max(1));
        !of_network.into_iter().any(|link| link.came_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_a_link_on_its_network_is_up_and_not_with_another_network() {
        let note = Note {
            text: String::new(),
            until_up: Some(LinkId(1)),
        };
        let lasting = Note::lasting(String::new());
        for came_up in 0..6 {
            let mut links = [LinkSnapshot::default(); 6];
            assert!(note.holds(&links, 3));
            links[came_up].came_up = true;
            assert_eq!(note.holds(&links, 3), came_up % 3 != 1, "{came_up}");
            assert!(lasting.holds(&links, 3));
        }
    }
}
