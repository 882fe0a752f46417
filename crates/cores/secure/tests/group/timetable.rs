//! A server and its members under whatever happens, beside a timetable that is kept by hand.

use bumpless_secure::group::{Grant, Issuer, Numbers, Schedule};
use proptest::prelude::*;

use super::{Drawer, at, member, opens, server, terms, token};

/// The keys that a server has said are sealed with, one entry each: from when, which number. What anybody would write on paper.
struct Timetable {
    entries: Vec<(u64, u64)>,
    lifetime: u64,
    last: u64,
    /// When the first key of the last roll begins, and whether another roll waits for it.
    over: u64,
    again: bool,
}

impl Timetable {
    fn new(lifetime: u64) -> Self {
        Self {
            entries: vec![(3000, 1)],
            lifetime,
            last: 1,
            over: 0,
            again: false,
        }
    }

    /// So many keys that have not begun at `ms`.
    fn fill(&mut self, future: usize, ms: u64) {
        while self.entries.iter().filter(|(from, _)| *from > ms).count() < future.max(1)
            || self.entries.len() < future + 1
        {
            self.last += 1;
            let (from, _) = self.entries[self.entries.len() - 1];
            // A server that was down for too long begins when it is there.
            self.entries
                .push(((from + self.lifetime).max(ms), self.last));
        }
    }

    fn roll(&mut self, ms: u64) {
        if ms < self.over {
            self.again = true;
            return;
        }
        // The first key may not have begun: it does then.
        if self.entries[0].0 > ms {
            self.entries[0].0 = ms;
        }
        self.entries.retain(|(from, _)| *from <= ms);
        self.last += 1;
        (self.over, self.again) = (ms + 500, false);
        // Nobody waits for the end of what is over.
        let (from, _) = self.entries[self.entries.len() - 1];
        let is_over = from + self.lifetime <= ms;
        let begins = if is_over { ms } else { self.over };
        self.entries.push((begins, self.last));
    }

    /// Rolls what was to be rolled again.
    fn follow(&mut self, ms: u64) -> bool {
        let due = self.again && ms >= self.over;
        if due {
            self.roll(ms);
        }
        due
    }

    fn at(&self, ms: u64) -> u64 {
        let begun = self.entries.iter().rev().find(|(from, _)| *from <= ms);
        begun.unwrap_or(&self.entries[0]).1
    }
}

/// What happens in a world of a server and its members, each after so many milliseconds.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A member hears what the server said so much earlier.
    Ask(usize, u64),
    /// Keys are rolled, and members are told: those of the bits, after so long.
    Roll(u8, u64),
    /// The server is down for a while, and goes on.
    Restart(u64),
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let what = prop_oneof![
        8 => (0..3usize, 0..400u64).prop_map(|(who, late)| Step::Ask(who, late)),
        1 => (0..8u8, 0..200u64).prop_map(|(who, late)| Step::Roll(who, late)),
        1 => (0..3000u64).prop_map(Step::Restart),
    ];
    (1..700u64, what)
}

struct Member {
    schedule: Schedule,
    /// When what it heard last was said.
    said: u64,
    /// The same at the last roll.
    said_before: u64,
    /// What it will hear, and when that was said and comes.
    coming: Vec<(Grant, u64, u64)>,
}

struct World {
    issuer: Issuer,
    drawer: Drawer,
    table: Timetable,
    members: Vec<Member>,
    lifetime: u64,
    rolled: u64,
    /// The roll before that one.
    rolled_before: u64,
    down_until: u64,
    stored: (Grant, Numbers, u64),
}

impl World {
    fn new(lifetime: u64, future: usize) -> Self {
        let mut drawer = Drawer::default();
        let issuer = server(terms(lifetime, future), &mut drawer);
        let mut table = Timetable::new(lifetime);
        table.fill(future, 0);
        Self {
            stored: (issuer.grant(at(0)).unwrap(), issuer.numbers(), 0),
            members: (0..3)
                .map(|_| Member {
                    schedule: member(&issuer, 0),
                    said: 0,
                    said_before: 0,
                    coming: Vec::new(),
                })
                .collect(),
            issuer,
            drawer,
            table,
            lifetime,
            rolled: 0,
            rolled_before: 0,
            down_until: 0,
        }
    }

    fn tell(&mut self, who: usize, late: u64, ms: u64) {
        // As a server does: what is missing is made, and stored, before anything is said.
        if self.issuer.refill(&mut || self.drawer.draw(), at(ms)) {
            self.store(ms);
        }
        let grant = self.issuer.grant(at(ms)).unwrap();
        self.members[who].coming.push((grant, ms, ms + late));
    }

    fn act(&mut self, step: Step, ms: u64) {
        if ms < self.down_until {
            return;
        }
        match step {
            Step::Ask(who, late) => self.tell(who, late, ms),
            Step::Roll(who, late) => {
                let rolled = self.issuer.roll(&mut || self.drawer.draw(), at(ms));
                assert_eq!(rolled, ms >= self.table.over);
                self.table.roll(ms);
                // A server that ends remembers that it was to roll.
                self.store(ms);
                if rolled {
                    self.note_roll(ms);
                }
                for member in (0..3).filter(|member| who >> member & 1 == 1) {
                    self.tell(member, late, ms);
                }
            }
            Step::Restart(span) => self.down_until = ms + span,
        }
    }

    fn note_roll(&mut self, ms: u64) {
        (self.rolled_before, self.rolled) = (self.rolled, ms);
        for member in &mut self.members {
            member.said_before = member.said;
        }
    }

    fn store(&mut self, ms: u64) {
        let grant = self.issuer.grant(at(ms)).unwrap();
        self.stored = (grant, self.issuer.numbers(), ms);
    }

    /// One millisecond.
    fn pass(&mut self, ms: u64) {
        if ms == self.down_until && ms > 0 {
            let (grant, numbers, since) = &self.stored;
            let (terms, since) = (self.issuer.terms(), Some(at(*since)));
            self.issuer = Issuer::restore(terms, grant, *numbers, since, at(ms)).unwrap();
            // What is to be rolled again need not wait any more.
            self.table.over = 0;
        }
        if ms >= self.down_until {
            let future = self.issuer.terms().future;
            if self.table.follow(ms) {
                self.note_roll(ms);
            }
            if self.issuer.refill(&mut || self.drawer.draw(), at(ms)) {
                self.store(ms);
            }
            self.table.fill(future, ms);
            let place = self.issuer.schedule().place(at(ms)).unwrap();
            assert_eq!(place.token, self.table.at(ms), "the server at {ms}");
        }
        for member in &mut self.members {
            member.schedule.handle_timeout(at(ms));
            for (grant, said, _) in member.coming.extract_if(.., |(_, _, comes)| *comes <= ms) {
                // What overtook it is later.
                if said >= member.said {
                    member.schedule.take(&grant, at(ms), at(ms)).unwrap();
                    member.said = said;
                }
            }
        }
    }

    /// Whoever has reached the server within the last lifetime, and since the last roll, opens what others of these seal, and
    /// is where the timetable is.
    fn check(&self, ms: u64) {
        let reached = |it: &&Member| it.said + self.lifetime >= ms && it.said >= self.rolled;
        for one in self.members.iter().filter(reached) {
            let sealed = token(&one.schedule, ms).expect("it seals");
            let table = [0, 400].map(|late| self.table.at(ms.saturating_sub(late)));
            assert!(
                table[1] <= sealed && sealed <= table[0],
                "{sealed} {table:?} at {ms}"
            );
            for other in self.members.iter().filter(reached) {
                let opened = opens(&other.schedule, ms);
                assert!(opened.contains(&sealed), "{sealed} of {opened:?} at {ms}");
            }
        }
        // Who was told of a roll and who was not have a key in common until it comes into force.
        if ms < self.rolled + 500 {
            let before = |it: &&Member| {
                it.said_before + self.lifetime >= ms && it.said_before >= self.rolled_before
            };
            for one in self.members.iter().filter(before) {
                // Keys of one that was not told may be over.
                let sealed = token(&one.schedule, ms);
                let Some(sealed) = sealed.filter(|it| *it < self.table.at(ms + 500)) else {
                    continue;
                };
                for other in self.members.iter().filter(before) {
                    let opened = opens(&other.schedule, ms);
                    let is_over = opened.is_empty();
                    assert!(
                        is_over || opened.contains(&sealed),
                        "{sealed} of {opened:?} at {ms}"
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn two_that_reached_a_server_within_the_last_lifetime_always_have_a_key_in_common(
        lifetime in 1000..6000u64,
        future in 1..6usize,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new(lifetime, future);
        let mut ms = 0;
        for (wait, step) in steps {
            for _ in 0..wait {
                world.pass(ms);
                world.check(ms);
                ms += 1;
            }
            world.act(step, ms);
        }
    }
}
