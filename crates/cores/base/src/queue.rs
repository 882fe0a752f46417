//! A first-in-first-out queue that never grows.

use alloc::collections::VecDeque;

/// A queue with a fixed capacity. What does not fit is handed back, never dropped silently.
#[derive(Clone, Debug, Hash)]
pub struct BoundedQueue<T> {
    items: VecDeque<T>,
    capacity: usize,
}

impl<T> BoundedQueue<T> {
    /// An empty queue for `capacity` items; its memory is taken here.
    pub fn new(capacity: usize) -> Self {
        Self {
            items: VecDeque::with_capacity(capacity),
            capacity,
        }
    }
    /// Appends `item`, or gives it back if the queue is full.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.items.len() == self.capacity {
            return Err(item);
        }
        self.items.push_back(item);
        Ok(())
    }
    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop_front()
    }
    /// Removes the items that `keep` refuses; the others stay in their order.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.retain(keep);
    }
    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_hands_the_item_back() {
        let mut queue = BoundedQueue::new(1);
        assert_eq!(queue.push(1), Ok(()));
        assert_eq!(queue.push(2), Err(2));
        assert_eq!((queue.pop(), queue.pop()), (Some(1), None));
    }

    #[test]
    fn what_is_kept_stays_in_its_order_and_what_is_removed_makes_room() {
        let mut queue = BoundedQueue::new(4);
        (1..=4).for_each(|item| queue.push(item).unwrap());
        queue.retain(|item| item % 2 == 0);
        assert_eq!(
            (queue.push(5), queue.push(6), queue.push(7)),
            (Ok(()), Ok(()), Err(7))
        );
        assert!(std::iter::from_fn(|| queue.pop()).eq([2, 4, 5, 6]));
    }
}
