//! The allocator of a component. The allocator keeps freed blocks by size and reuses them. New blocks come from the end
//! of memory.
//!
//! A sandbox runs one pass and has one thread. So a component does not need a general allocator, which would prevent
//! fragmentation but add eight kilobytes of code. The allocator rounds a size up to a multiple of 8 bytes. Above 64
//! bytes, it rounds up to the next of four sizes between two powers of two.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

const PAGE: usize = 64 * 1024;
/// The number of pages to request at once, if enough memory is available.
const AT_ONCE: usize = 4;
/// The address of every block is a multiple of this number.
const ALIGN: usize = 8;
const CLASSES: usize = 9 + 4 * (usize::BITS as usize - 6);

/// The state of the heap.
pub(crate) struct Heap {
    /// The first free block of each class of sizes. Each free block contains the address of the next free block.
    free: [*mut u8; CLASSES],
    /// The start of the memory that is not part of any block yet.
    next: *mut u8,
    room: usize,
}

/// Returns the class for a block of `size` bytes, and the size of all blocks of this class.
const fn class(size: usize) -> (usize, usize) {
    if size <= 64 {
        let eighths = if size == 0 { 1 } else { size.div_ceil(8) };
        return (eighths, eighths * 8);
    }
    let shift = (size - 1).ilog2() - 2;
    let quarters = (size - 1) >> shift;
    (5 + 4 * (shift as usize - 4) + quarters, (quarters + 1) << shift)
}

#[allow(clippy::cast_ptr_alignment, reason = "blocks begin at multiples of eight")]
impl Heap {
    pub(crate) const fn new() -> Self {
        Self { free: [ptr::null_mut(); CLASSES], next: ptr::null_mut(), room: 0 }
    }

    /// Returns a block for `layout`, or null if there is no memory. `grow` adds pages and returns their start.
    ///
    /// # Safety
    ///
    /// The pages that `grow` returns must belong to this heap alone.
    pub(crate) unsafe fn alloc(&mut self, layout: Layout, grow: impl FnMut(usize) -> Option<NonNull<u8>>) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // The heap never reuses a block with an alignment above `ALIGN`. Such blocks are rare, and neither Rust nor the
        // contract asks for an alignment above 16.
        let slack = if align > ALIGN { align } else { 0 };
        let Some(wanted) = size.checked_add(slack).filter(|wanted| isize::try_from(*wanted).is_ok()) else {
            return ptr::null_mut();
        };
        let (class, rounded) = class(wanted);
        if slack == 0 && !self.free[class].is_null() {
            let block = self.free[class];
            // SAFETY: a free block contains the address of the next free block.
            self.free[class] = unsafe { block.cast::<*mut u8>().read() };
            return block;
        }
        if rounded > self.room && !self.extend(rounded, grow) {
            return ptr::null_mut();
        }
        let block = self.next;
        self.take(rounded);
        if slack == 0 { block } else { block.wrapping_add(block.align_offset(align)) }
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// `block` must come from [`alloc`](Self::alloc) with this `layout`, or from [`realloc`](Self::realloc) with the
    /// size in `layout`.
    pub(crate) unsafe fn dealloc(&mut self, block: *mut u8, layout: Layout) {
        if layout.align() <= ALIGN {
            let (class, _) = class(layout.size());
            // SAFETY: every block has room for an address, and the caller no longer uses this block.
            unsafe { block.cast::<*mut u8>().write(self.free[class]) };
            self.free[class] = block;
        }
    }

    /// Resizes `block` to `size` bytes in place. Returns false if the block has to move.
    ///
    /// # Safety
    ///
    /// See [`dealloc`](Self::dealloc).
    pub(crate) unsafe fn realloc(&mut self, block: *mut u8, layout: Layout, size: usize) -> bool {
        // A block that shrinks stays in place. From now on, it belongs to the class of its new size.
        if size <= layout.size() {
            return true;
        }
        if layout.align() > ALIGN || isize::try_from(size).is_err() {
            return false;
        }
        let ((_, before), (_, after)) = (class(layout.size()), class(size));
        let is_last = ptr::eq(block.wrapping_add(before), self.next);
        if after > before && is_last && after - before <= self.room {
            self.take(after - before);
            return true;
        }
        after <= before
    }

    fn take(&mut self, size: usize) {
        self.next = self.next.wrapping_add(size);
        self.room -= size;
    }

    /// Requests `size` contiguous bytes from `grow`.
    fn extend(&mut self, size: usize, mut grow: impl FnMut(usize) -> Option<NonNull<u8>>) -> bool {
        let pages = size.div_ceil(PAGE);
        let (pages, start) = match grow(pages.max(AT_ONCE)) {
            Some(start) => (pages.max(AT_ONCE), start),
            None => match grow(pages) {
                Some(start) => (pages, start),
                None => return false,
            },
        };
        if !ptr::eq(self.next.wrapping_add(self.room), start.as_ptr()) {
            (self.next, self.room) = (start.as_ptr(), 0);
        }
        self.room += pages * PAGE;
        true
    }
}

/// Makes [`Heap`] the global allocator of the component.
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
mod component {
    use super::{Heap, PAGE};
    use core::alloc::{GlobalAlloc, Layout};
    use core::arch::wasm32::memory_grow;
    use core::cell::UnsafeCell;
    use core::ptr::NonNull;

    struct Component(UnsafeCell<Heap>);

    // SAFETY: a component has one thread.
    unsafe impl Sync for Component {}

    #[global_allocator]
    static HEAP: Component = Component(UnsafeCell::new(Heap::new()));

    #[inline(never)]
    fn grow(pages: usize) -> Option<NonNull<u8>> {
        let before = memory_grow::<0>(pages);
        // The address of new pages is never zero: the stack and the data occupy the first page.
        if before == usize::MAX { None } else { NonNull::new((before * PAGE) as *mut u8) }
    }

    // SAFETY: `Heap` gives each byte to one block at a time, and none of its methods calls the allocator.
    unsafe impl GlobalAlloc for Component {
        #[inline(never)]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: there is one thread, and nothing else uses the new pages.
            unsafe { (*self.0.get()).alloc(layout, grow) }
        }

        #[inline(never)]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the caller guarantees that the block came from this allocator with this layout.
            unsafe { (*self.0.get()).dealloc(block, layout) }
        }

        #[inline(never)]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: the caller guarantees that the block came from this allocator with this layout. The two blocks do
            // not overlap, and both have `layout.size()` bytes.
            unsafe {
                if (*self.0.get()).realloc(block, layout, size) {
                    return block;
                }
                let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(block, layout.size());
                    self.dealloc(block, layout);
                }
                moved
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, CLASSES, Heap, PAGE, class};
    use core::alloc::Layout;
    use core::ptr::NonNull;
    use proptest::prelude::*;

    /// Contiguous pages, like the memory of a component.
    struct Memory {
        words: Vec<u64>,
        used: usize,
    }

    impl Memory {
        fn of(pages: usize) -> Self {
            Self { words: vec![0; pages * PAGE / 8], used: 0 }
        }

        fn grow(&mut self, pages: usize) -> Option<NonNull<u8>> {
            let words = self.words.get_mut(self.used..self.used + pages * PAGE / 8)?;
            self.used += words.len();
            NonNull::new(words.as_mut_ptr().cast())
        }
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn blocks_are_at_most_a_quarter_larger_than_asked_for() {
        let mut last = (0, 0);
        for size in 1..100_000 {
            let (number, rounded) = class(size);
            assert!(rounded >= size && rounded % 8 == 0 && rounded <= (size + 7).max(size + size / 4), "{size}");
            assert!((number, rounded) == last || (number == last.0 + 1 && size == last.1 + 1), "{size}");
            last = (number, rounded);
        }
        assert!(class(isize::MAX as usize).0 < CLASSES);
    }

    #[test]
    fn the_last_block_grows_in_place_and_free_blocks_are_reused() {
        let (mut memory, mut heap) = (Memory::of(AT_ONCE), Heap::new());
        unsafe {
            let first = heap.alloc(layout(100), |pages| memory.grow(pages));
            assert!(heap.realloc(first, layout(100), 10_000));
            let second = heap.alloc(layout(8), |pages| memory.grow(pages));
            assert!(!heap.realloc(first, layout(10_000), 20_000));
            assert!(heap.realloc(first, layout(10_000), 9_000));
            heap.dealloc(first, layout(9_000));
            heap.dealloc(second, layout(8));
            assert_eq!(heap.alloc(layout(9_100), |_| None), first);
            assert_eq!(heap.alloc(layout(3), |_| None), second);
        }
    }

    #[test]
    fn all_pages_are_used_before_an_allocation_fails() {
        let (mut memory, mut heap) = (Memory::of(AT_ONCE + 1), Heap::new());
        unsafe {
            assert!(heap.alloc(layout(PAGE * (AT_ONCE + 2)), |pages| memory.grow(pages)).is_null());
            for _ in 0..=AT_ONCE {
                assert!(!heap.alloc(layout(PAGE), |pages| memory.grow(pages)).is_null());
            }
            assert!(heap.alloc(layout(8), |pages| memory.grow(pages)).is_null());
            assert!(heap.alloc(layout(isize::MAX as usize - 7), |pages| memory.grow(pages)).is_null());
        }
    }

    proptest! {
        #[test]
        fn no_two_blocks_overlap(steps in prop::collection::vec((0_usize..4, 1_usize..3000, 0_u32..5), 1..200)) {
            let (mut memory, mut heap) = (Memory::of(64), Heap::new());
            let mut blocks: Vec<(*mut u8, Layout, u8)> = Vec::new();
            for (at, (step, size, align)) in steps.into_iter().enumerate() {
                let layout = Layout::from_size_align(size, 1 << align).unwrap();
                let mark = at.to_le_bytes()[0];
                unsafe {
                    if step == 0 && !blocks.is_empty() {
                        let (block, layout, _) = blocks.swap_remove(size % blocks.len());
                        heap.dealloc(block, layout);
                    } else if step == 1 && !blocks.is_empty() {
                        let one = size % blocks.len();
                        let (block, layout, old) = blocks[one];
                        if heap.realloc(block, layout, size) {
                            prop_assert_eq!(block.read(), old);
                            block.write_bytes(mark, size);
                            blocks[one] = (block, Layout::from_size_align(size, layout.align()).unwrap(), mark);
                        }
                    } else {
                        let block = heap.alloc(layout, |pages| memory.grow(pages));
                        prop_assert!(!block.is_null() && block.addr() % layout.align() == 0);
                        block.write_bytes(mark, size);
                        blocks.push((block, layout, mark));
                    }
                    for (block, layout, mark) in &blocks {
                        prop_assert!(block.read() == *mark && block.add(layout.size() - 1).read() == *mark);
                    }
                }
            }
        }
    }
}
