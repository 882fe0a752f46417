//! Checkers know positions; who reads a failure knows names.

/// What things are called, by kind and position.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The nodes.
    pub nodes: Vec<String>,
    /// The applications.
    pub applications: Vec<String>,
    /// The groups.
    pub groups: Vec<String>,
    /// The networks.
    pub networks: Vec<String>,
}

impl Names {
    /// `text` with each position behind the word for its kind replaced by its name: `node 1`, `nodes 0 and 1`.
    pub fn put_into(&self, text: &str) -> String {
        let mut told: Vec<String> = Vec::new();
        let mut names: Option<&[String]> = None;
        for word in text.split(' ') {
            let digits = word.trim_end_matches([',', ':', ';', '.']);
            let named = digits.parse::<usize>().ok().and_then(|at| names?.get(at));
            match named {
                Some(name) => told.push(format!("{name}{}", &word[digits.len()..])),
                None => {
                    told.push(word.to_owned());
                    // Two of a kind are joined.
                    if word != "and" {
                        names = self.of_kind(digits);
                    }
                }
            }
        }
        told.join(" ")
    }

    fn of_kind(&self, word: &str) -> Option<&[String]> {
        match word.strip_suffix('s').unwrap_or(word) {
            "node" => Some(&self.nodes),
            "application" => Some(&self.applications),
            "group" => Some(&self.groups),
            "network" => Some(&self.networks),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_become_names_and_other_numbers_stay() {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let names = Names {
            nodes: all(&["left", "right"]),
            applications: all(&["swift", "steady"]),
            groups: all(&["pair"]),
            networks: all(&["A", "B"]),
        };
        for (text, told) in [
            (
                "nodes 0 and 1 may both write for group 0, in epochs 1 and 0",
                "nodes left and right may both write for group pair, in epochs 1 and 0",
            ),
            (
                "application 1: node 0 wrote cycle 1 in epoch 1 after node 1 had written cycle 0",
                "application steady: node left wrote cycle 1 in epoch 1 after node right had written cycle 0",
            ),
            (
                "application 0 sends on network 1 while 1 waits",
                "application swift sends on network B while 1 waits",
            ),
            ("node 7 has 1 packet", "node 7 has 1 packet"),
        ] {
            assert_eq!(names.put_into(text), told);
        }
    }
}
