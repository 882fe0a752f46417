//! What is wrong at present, a sentence each.
//!
//! What other hosts are the cause of takes no key: whoever sends frames from ever other addresses makes as many sentences as he likes. So those
//! have a place of their own, from which the oldest one goes, and lines of their own in the log. What is wrong on this host is told whatever
//! others send.

use std::collections::BTreeMap;

use bumpless_base::{Duration, Instant};

/// Sentences on other hosts that are kept, and on flows.
const KEPT: usize = 16;
/// A sentence on another host is over when it has not been said again for so long at least, and for so many of the periods in which hosts
/// advertise themselves: what is said with each advertisement is not to come and go meanwhile.
const OVER: Duration = Duration::from_secs(300);
const PERIODS: u64 = 3;
/// Lines on other hosts in the log: so many at most in so long.
const LINES: u32 = 16;
const SPAN: Duration = Duration::from_secs(60);

/// Whose trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// This host's: one of few.
    Host,
    /// A flow's, of which there may be thousands.
    Flow,
    /// Another host's, or somebody's who has its address.
    Other,
}

struct Said {
    words: String,
    at: Instant,
}

/// The sentences, by what they are about.
pub struct Troubles {
    /// When a sentence on another host is over.
    over: Duration,
    of_host: BTreeMap<String, String>,
    of_flows: BTreeMap<String, String>,
    of_others: BTreeMap<String, Said>,
    /// Lines on other hosts since then.
    lines: u32,
    lines_since: Instant,
    left_out: u64,
}

impl Troubles {
    /// None. Hosts advertise themselves `every` so often.
    pub fn new(every: Duration) -> Self {
        Self {
            over: OVER.max(every * PERIODS),
            of_host: BTreeMap::new(),
            of_flows: BTreeMap::new(),
            of_others: BTreeMap::new(),
            lines: 0,
            lines_since: Instant::ZERO,
            left_out: 0,
        }
    }

    /// Takes a sentence; whether it is to be logged, since it has not been said before.
    pub fn say(&mut self, now: Instant, of: Of, about: &str, words: &str) -> bool {
        match of {
            Of::Host => note(&mut self.of_host, about, words),
            Of::Flow => {
                let all = &mut self.of_flows;
                if all.len() >= KEPT && !all.contains_key(about) {
                    self.left_out += 1;
                    return false;
                }
                note(all, about, words)
            }
            Of::Other => self.say_of_other(now, about, words),
        }
    }

    fn say_of_other(&mut self, now: Instant, about: &str, words: &str) -> bool {
        if let Some(said) = self.of_others.get_mut(about) {
            said.at = now;
            if said.words == words {
                return false;
            }
            words.clone_into(&mut said.words);
            return self.has_line(now);
        }
        if self.of_others.len() >= KEPT {
            let oldest = self.of_others.iter().min_by_key(|(_, said)| said.at);
            if let Some(oldest) = oldest.map(|(about, _)| about.clone()) {
                self.of_others.remove(&oldest);
            }
        }
        let said = Said {
            words: words.to_owned(),
            at: now,
        };
        self.of_others.insert(about.to_owned(), said);
        self.has_line(now)
    }

    /// Whether the log has a line for a sentence on another host; what it has none for is counted.
    fn has_line(&mut self, now: Instant) -> bool {
        if now.since(self.lines_since) >= SPAN {
            (self.lines_since, self.lines) = (now, 0);
        }
        let has_line = self.lines < LINES;
        match has_line {
            true => self.lines += 1,
            false => self.left_out += 1,
        }
        has_line
    }

    /// Whether this host has this trouble.
    pub fn has(&self, about: &str) -> bool {
        self.of_host.contains_key(about)
    }

    /// It is not so any more.
    pub fn end(&mut self, about: &str) {
        self.of_host.remove(about);
        self.of_flows.remove(about);
        self.of_others.remove(about);
    }

    /// Time has passed.
    pub fn expire(&mut self, now: Instant) {
        let over = self.over;
        self.of_others.retain(|_, said| now.since(said.at) < over);
    }

    /// All that hold, this host's own first.
    pub fn words(&self) -> Vec<String> {
        let own = self.of_host.values().chain(self.of_flows.values());
        let others = self.of_others.values().map(|said| &said.words);
        own.chain(others).cloned().collect()
    }

    /// Sentences that were neither logged nor kept before.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn note(all: &mut BTreeMap<String, String>, about: &str, words: &str) -> bool {
    let is_new = all.get(about).is_none_or(|known| known != words);
    if is_new {
        all.insert(about.to_owned(), words.to_owned());
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn who_sends_from_ever_other_addresses_silences_nothing_of_this_host_and_fills_neither_memory_nor_log()
     {
        let mut troubles = Troubles::new(EVERY);
        let mut logged = 0;
        for number in 0..100_000_u64 {
            let (about, words) = (format!("unknown_key {number}"), format!("{number} seals"));
            let now = at(100) + Duration::from_millis(number);
            logged += u32::from(troubles.say(now, Of::Other, &about, &words));
        }
        // 100 seconds.
        assert_eq!(logged, 2 * LINES);
        assert_eq!(troubles.left_out(), 100_000 - u64::from(logged));
        assert_eq!(troubles.words().len(), KEPT);
        for about in ["networks", "rules", "members"] {
            assert!(troubles.say(at(200), Of::Host, about, "cannot be"));
            assert!(!troubles.say(at(200), Of::Host, about, "cannot be"), "once");
        }
        assert!(troubles.say(at(200), Of::Flow, "capture", "the firewall's set"));
        let words = troubles.words();
        assert_eq!(words.len(), KEPT + 4);
        assert_eq!(words[..3], ["cannot be", "cannot be", "cannot be"]);
        // The latest are kept, and go when they are not said again.
        assert!(words.contains(&"99999 seals".to_owned()));
        troubles.expire(at(400));
        assert_eq!(troubles.words().len(), KEPT + 4);
        troubles.expire(at(600));
        assert_eq!(troubles.words().len(), 4);
        troubles.end("rules");
        troubles.end("capture");
        assert_eq!(troubles.words().len(), 2);
    }

    #[test]
    fn one_host_that_says_ever_other_things_has_one_sentence_and_no_more_lines() {
        let mut troubles = Troubles::new(EVERY);
        let say = |number: u32, troubles: &mut Troubles| {
            let words = format!("the key {number:04x}");
            troubles.say(at(1), Of::Other, "unknown_key 10.0.0.1", &words)
        };
        let logged = (0..1_000)
            .filter(|number| say(*number, &mut troubles))
            .count();
        assert_eq!(logged, LINES as usize);
        assert_eq!(troubles.words(), ["the key 03e7"]);
        troubles.end("unknown_key 10.0.0.1");
        assert!(troubles.words().is_empty());
    }

    #[test]
    fn what_is_said_with_each_advertisement_does_not_come_and_go_however_seldom_that_is() {
        for every in [1, 30, 299, 3_600] {
            let mut troubles = Troubles::new(Duration::from_secs(every));
            let said = |now: u64, troubles: &mut Troubles| {
                let is_logged = troubles.say(at(now), Of::Other, "keys 10.0.0.2", "its key");
                troubles.expire(at(now));
                is_logged
            };
            assert!(said(1_000, &mut troubles));
            let mut now = 1_000;
            for _ in 0..5 {
                // One advertisement in two is lost.
                now += 2 * every;
                troubles.expire(at(now));
                assert_eq!(troubles.words().len(), 1, "{every} s");
                assert!(!said(now, &mut troubles), "{every} s: said before");
            }
            troubles.expire(at(now + (3 * every).max(300)));
            assert!(troubles.words().is_empty(), "{every} s");
        }
    }

    #[test]
    fn flows_that_are_too_many_are_counted_and_keep_nothing_else_from_being_told() {
        let mut troubles = Troubles::new(EVERY);
        let kept = (0..100).filter(|number| {
            let about = format!("capture {number}");
            troubles.say(at(1), Of::Flow, &about, "refused")
        });
        assert_eq!(kept.count(), KEPT);
        assert_eq!(troubles.left_out(), 100 - KEPT as u64);
        assert!(troubles.say(at(1), Of::Host, "rules", "cannot be changed"));
        assert!(troubles.say(at(1), Of::Other, "unknown_key", "x"));
    }
}
