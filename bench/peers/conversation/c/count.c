/* Counts what the whole program allocates: Rust, C and C++ code end here, since the program's own
 * malloc stands before the one in glibc, to which everything is passed on.
 *
 * Off until it is switched on, so that timings do not pay for it. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *block);

static atomic_bool counting;
static _Atomic uint64_t allocations;
static _Atomic int64_t in_use;
static _Atomic int64_t peak;

static void add(void *block) {
    if (block == NULL)
        return;
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    int64_t size = (int64_t)malloc_usable_size(block);
    int64_t sum = atomic_fetch_add_explicit(&in_use, size, memory_order_relaxed) + size;
    int64_t seen = atomic_load_explicit(&peak, memory_order_relaxed);
    while (sum > seen && !atomic_compare_exchange_weak_explicit(&peak, &seen, sum, memory_order_relaxed,
                                                               memory_order_relaxed))
        ;
}

static void take(void *block) {
    if (block != NULL)
        atomic_fetch_sub_explicit(&in_use, (int64_t)malloc_usable_size(block), memory_order_relaxed);
}

static bool on(void) { return atomic_load_explicit(&counting, memory_order_relaxed); }

void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    if (on())
        add(block);
    return block;
}

void *calloc(size_t count, size_t size) {
    void *block = __libc_calloc(count, size);
    if (on())
        add(block);
    return block;
}

void *realloc(void *old, size_t size) {
    if (!on())
        return __libc_realloc(old, size);
    int64_t before = old == NULL ? 0 : (int64_t)malloc_usable_size(old);
    void *block = __libc_realloc(old, size);
    if (block != NULL || size == 0)
        atomic_fetch_sub_explicit(&in_use, before, memory_order_relaxed);
    add(block);
    return block;
}

void free(void *block) {
    if (on())
        take(block);
    __libc_free(block);
}

void peer_count_start(void) { atomic_store(&counting, true); }

uint64_t peer_count_allocations(void) { return atomic_load(&allocations); }

uint64_t peer_count_peak(void) {
    int64_t seen = atomic_load(&peak);
    return seen < 0 ? 0 : (uint64_t)seen;
}
