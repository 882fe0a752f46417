//! Which blocks of a memory differ from its image (G-24).

/// Bytes of a block.
pub(super) const BLOCK: usize = 256;
/// Bytes of a page.
pub(super) const PAGE: usize = 65_536;
/// Bytes of a page's bits, one for each block.
pub(super) const BITS_PER_PAGE: usize = PAGE / BLOCK / 8;

/// Blocks whose bits are one word.
const GROUP: usize = 64;
const WORDS_PER_PAGE: usize = PAGE / BLOCK / GROUP;

/// A memory's image, and the blocks that differed from it when it was looked at last.
pub(super) struct Blocks {
    image: Box<[u8]>,
    /// A bit for each block, the first in the lowest bit; all that the largest memory needs.
    changed: Box<[u64]>,
    pages: usize,
    count: usize,
}

impl Blocks {
    /// With `image`, for memories of at most `pages_max` pages.
    pub(super) fn new(image: &[u8], pages_max: usize) -> Self {
        let pages = image.len() / PAGE;
        Self {
            image: image.into(),
            changed: vec![0; pages_max.max(pages) * WORDS_PER_PAGE].into_boxed_slice(),
            pages,
            count: 0,
        }
    }

    /// Looks which blocks of `memory` differ.
    pub(super) fn scan(&mut self, memory: &[u8]) {
        self.pages = memory.len() / PAGE;
        self.count = 0;
        let groups = memory.chunks_exact(GROUP * BLOCK);
        let mut images = self.image.chunks_exact(GROUP * BLOCK);
        for (word, group) in self.changed.iter_mut().zip(groups) {
            let image = images.next().unwrap_or(&[0; GROUP * BLOCK]);
            *word = if group == image {
                0
            } else {
                differing(group, image)
            };
            self.count += word.count_ones() as usize;
        }
    }

    /// Bytes that [`write`](Self::write) needs.
    pub(super) fn size(&self) -> usize {
        self.pages * BITS_PER_PAGE + self.count * BLOCK
    }

    pub(super) fn pages(&self) -> usize {
        self.pages
    }

    /// Writes bits and blocks of `memory`, as it was when it was looked at, to the front of `into`, which has room.
    pub(super) fn write(&self, memory: &[u8], into: &mut [u8]) {
        let (bits, content) = into.split_at_mut(self.pages * BITS_PER_PAGE);
        let words = &self.changed[..self.pages * WORDS_PER_PAGE];
        for (bits, word) in bits.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bits = word.to_le_bytes();
        }
        let (blocks, _) = memory.as_chunks::<BLOCK>();
        let (slots, _) = content.as_chunks_mut::<BLOCK>();
        for (slot, at) in slots.iter_mut().zip(ones(words)) {
            *slot = blocks[at];
        }
    }

    /// Makes `memory` what `bits` and `content` say, and notes what differs then.
    pub(super) fn restore(&mut self, memory: &mut [u8], bits: &[u8], content: &[u8]) {
        let from_image = self.image.len().min(memory.len());
        memory[..from_image].copy_from_slice(&self.image[..from_image]);
        memory[from_image..].fill(0);
        let (words, _) = bits.as_chunks::<8>();
        self.pages = memory.len() / PAGE;
        for (word, bits) in self.changed.iter_mut().zip(words) {
            *word = u64::from_le_bytes(*bits);
        }
        let words = &self.changed[..self.pages * WORDS_PER_PAGE];
        let (blocks, _) = memory.as_chunks_mut::<BLOCK>();
        let (saved, _) = content.as_chunks::<BLOCK>();
        self.count = saved.len();
        for (block, at) in saved.iter().zip(ones(words)) {
            blocks[at] = *block;
        }
    }
}

/// A bit for each block of `group` that differs from that of `image`.
fn differing(group: &[u8], image: &[u8]) -> u64 {
    let (blocks, images) = (group.as_chunks::<BLOCK>().0, image.as_chunks::<BLOCK>().0);
    let mut word = 0;
    for (at, (block, image)) in blocks.iter().zip(images).enumerate() {
        word |= u64::from(block != image) << at;
    }
    word
}

/// Positions of the bits that are set.
fn ones(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(at, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(at * GROUP + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn memory(pages: usize, edits: &[(usize, u8)]) -> Vec<u8> {
        let mut memory = vec![0; pages * PAGE];
        for &(at, value) in edits {
            let len = memory.len();
            memory[at % len] = value;
        }
        memory
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_memory_comes_back_from_its_blocks_whatever_was_there(
            image in proptest::collection::vec((0usize..PAGE * 2, any::<u8>()), 0..20),
            edits in proptest::collection::vec((0usize..PAGE * 3, any::<u8>()), 0..20),
            before in proptest::collection::vec((0usize..PAGE * 3, any::<u8>()), 0..20),
            pages in 1usize..4,
        ) {
            let image = memory(2, &image);
            let mut now = memory(pages, &[]);
            let shared = image.len().min(now.len());
            now[..shared].copy_from_slice(&image[..shared]);
            for (at, value) in edits {
                let len = now.len();
                now[at % len] = value;
            }
            let mut blocks = Blocks::new(&image, 3);
            blocks.scan(&now);
            let mut saved = vec![0xa5; blocks.size()];
            blocks.write(&now, &mut saved);

            let twin: Vec<bool> = now.chunks(BLOCK).enumerate().map(|(at, block)| {
                let was = image.get(at * BLOCK..(at + 1) * BLOCK).unwrap_or(&[0; BLOCK]);
                block != was
            }).collect();
            let (bits, content) = saved.split_at(pages * BITS_PER_PAGE);
            let read: Vec<bool> = (0..twin.len()).map(|at| bits[at / 8] >> (at % 8) & 1 == 1).collect();
            prop_assert_eq!(&read, &twin);

            let mut other = memory(pages, &before);
            let mut restored = Blocks::new(&image, 3);
            restored.restore(&mut other, bits, content);
            prop_assert!(other == now);
            prop_assert_eq!(restored.size(), saved.len());
            let mut again = vec![0; restored.size()];
            restored.write(&other, &mut again);
            prop_assert!(again == saved);
        }
    }
}
