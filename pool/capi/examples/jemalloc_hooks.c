/*
 * Extents of jemalloc from a pool. jemalloc keeps them until its arena is destroyed, as it does with memory of
 * mmap on Linux (opt.retain). It splits and merges extents, and purges idle ones. So the hooks note the blocks
 * that they handed out.
 *
 * The rules of hooks: jemalloc(3), "arena.<i>.extent_hooks". A hook that returns `true` refuses.
 */
#define _DEFAULT_SOURCE
#include "jemalloc_hooks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define BLOCK_BYTES_MAX ((size_t)4 << 20)
#define BLOCKS_PER_PAGE 254

struct pool_hooks_block {
    void *start;
    size_t bytes;
};

/* One page of the pool. */
struct pool_hooks_list {
    struct pool_hooks_list *next;
    size_t count;
    struct pool_hooks_block blocks[BLOCKS_PER_PAGE];
};

/* Notes a block. Returns 0, or a number of errno.h. */
static int note(struct pool_hooks *hooks, void *start, size_t bytes) {
    int error = 0;
    pthread_mutex_lock(&hooks->lock);
    if (hooks->blocks == NULL || hooks->blocks->count == BLOCKS_PER_PAGE) {
        void *page;
        error = pageset_alloc(hooks->pool, 0, &page);
        if (error == 0) {
            struct pool_hooks_list *list = (struct pool_hooks_list *)page;
            list->next = hooks->blocks;
            list->count = 0;
            hooks->blocks = list;
        }
    }
    if (error == 0) {
        struct pool_hooks_block *block = &hooks->blocks->blocks[hooks->blocks->count++];
        block->start = start;
        block->bytes = bytes;
    }
    pthread_mutex_unlock(&hooks->lock);
    return error;
}

/* Allocates pages of exactly `size` bytes. alloc_exact aligns them to a page. For a larger alignment, the
 * function allocates a block, keeps its beginning, and frees its rest. */
static void *from_pool(pageset_pool *pool, size_t size, size_t alignment) {
    const size_t whole = size < alignment ? alignment : size;
    unsigned order = 0;
    void *pages;
    if (whole > BLOCK_BYTES_MAX) return NULL;
    if (alignment <= PAGE) return pageset_alloc_exact(pool, size / PAGE, &pages) == 0 ? pages : NULL;
    while (((size_t)PAGE << order) < whole) order++;
    if (pageset_alloc(pool, order, &pages) != 0) return NULL;
    if (((size_t)PAGE << order) > size) pageset_shrink(pool, pages, (size_t)1 << order, 0, size / PAGE, NULL);
    return pages;
}

/* Requests larger than a block: some of jemalloc's own records, and objects of more than 4 MiB. */
static void *from_system(size_t size, size_t alignment) {
    const size_t whole = size + alignment;
    char *start, *aligned;
    if (whole < size) return NULL;
    start = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    aligned = start + (-(size_t)start & (alignment - 1));
    if (aligned > start) munmap(start, (size_t)(aligned - start));
    if (aligned + size < start + whole) munmap(aligned + size, (size_t)(start + whole - (aligned + size)));
    return aligned;
}

static int give_back(pageset_pool *pool, void *start, size_t bytes) {
    if (bytes > BLOCK_BYTES_MAX) return munmap(start, bytes) == 0 ? 0 : errno;
    return pageset_free_exact(pool, start, bytes / PAGE);
}

static void *hook_alloc(extent_hooks_t *extent_hooks, void *new_addr, size_t size, size_t alignment, bool *zero, bool *commit,
                        unsigned arena) {
    struct pool_hooks *hooks = (struct pool_hooks *)extent_hooks;
    void *pages;
    (void)arena;
    /* An address that jemalloc chooses may be in use. */
    if (new_addr != NULL) return NULL;
    pages = size > BLOCK_BYTES_MAX ? from_system(size, alignment) : from_pool(hooks->pool, size, alignment);
    if (pages == NULL) return NULL;
    if (note(hooks, pages, size) != 0) {
        give_back(hooks->pool, pages, size);
        return NULL;
    }
    if (*zero) memset(pages, 0, size);
    *commit = true;
    return pages;
}

/* Refuses, so that jemalloc keeps the memory for its next request. */
static bool hook_dalloc(extent_hooks_t *extent_hooks, void *addr, size_t size, bool committed, unsigned arena) {
    (void)extent_hooks, (void)addr, (void)size, (void)committed, (void)arena;
    return true;
}

/* The arena ends: pool_hooks_close frees whole blocks. */
static void hook_destroy(extent_hooks_t *extent_hooks, void *addr, size_t size, bool committed, unsigned arena) {
    (void)extent_hooks, (void)addr, (void)size, (void)committed, (void)arena;
}

/* Gives idle memory back to the system. The memory is zero at its next use. */
static bool hook_purge(extent_hooks_t *extent_hooks, void *addr, size_t size, size_t offset, size_t length, unsigned arena) {
    (void)extent_hooks, (void)size, (void)arena;
    return madvise((char *)addr + offset, length, MADV_DONTNEED) != 0;
}

static bool hook_split(extent_hooks_t *extent_hooks, void *addr, size_t size, size_t size_a, size_t size_b, bool committed,
                       unsigned arena) {
    (void)extent_hooks, (void)addr, (void)size, (void)size_a, (void)size_b, (void)committed, (void)arena;
    return false;
}

/* Allows jemalloc to merge adjacent extents, because the hooks free only whole blocks that they allocated. */
static bool hook_merge(extent_hooks_t *extent_hooks, void *addr_a, size_t size_a, void *addr_b, size_t size_b, bool committed,
                       unsigned arena) {
    (void)extent_hooks, (void)addr_a, (void)size_a, (void)addr_b, (void)size_b, (void)committed, (void)arena;
    return false;
}

int pool_hooks_open(struct pool_hooks *hooks, pageset_pool *pool) {
    memset(hooks, 0, sizeof *hooks);
    hooks->extent_hooks.alloc = hook_alloc;
    hooks->extent_hooks.dalloc = hook_dalloc;
    hooks->extent_hooks.destroy = hook_destroy;
    hooks->extent_hooks.purge_forced = hook_purge;
    hooks->extent_hooks.split = hook_split;
    hooks->extent_hooks.merge = hook_merge;
    hooks->pool = pool;
    return pthread_mutex_init(&hooks->lock, NULL);
}

int pool_hooks_close(struct pool_hooks *hooks) {
    int first = 0;
    while (hooks->blocks != NULL) {
        struct pool_hooks_list *list = hooks->blocks;
        size_t index;
        int error;
        for (index = 0; index < list->count; index++) {
            error = give_back(hooks->pool, list->blocks[index].start, list->blocks[index].bytes);
            if (first == 0) first = error;
        }
        hooks->blocks = list->next;
        error = pageset_free(hooks->pool, list, 0);
        if (first == 0) first = error;
    }
    pthread_mutex_destroy(&hooks->lock);
    return first;
}
