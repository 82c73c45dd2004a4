/*
 * Extents of jemalloc from a pool. jemalloc keeps extents until their arena is destroyed, as with memory of mmap
 * on Linux (opt.retain). jemalloc splits, merges and purges extents. So the hooks note the runs that
 * they handed out.
 *
 * The rules of hooks: jemalloc(3), "arena.<i>.extent_hooks". A hook that returns `true` refuses.
 */
#define _DEFAULT_SOURCE
#include "jemalloc_hooks.h"

#include <string.h>
#include <sys/mman.h>

#define RUNS_PER_PAGE 510

/* One page of the pool. */
struct pool_hooks_list {
    struct pool_hooks_list *next;
    size_t count;
    void *runs[RUNS_PER_PAGE];
};

/* Notes a run. Returns 0 or a number of errno.h. */
static int note(struct pool_hooks *hooks, void *start) {
    int error = 0;
    pthread_mutex_lock(&hooks->lock);
    if (hooks->lists == NULL || hooks->lists->count == RUNS_PER_PAGE) {
        void *page;
        error = pageset_alloc(hooks->pool, 0, &page);
        if (error == 0) {
            struct pool_hooks_list *list = (struct pool_hooks_list *)page;
            list->next = hooks->lists;
            list->count = 0;
            hooks->lists = list;
        }
    }
    if (error == 0) hooks->lists->runs[hooks->lists->count++] = start;
    pthread_mutex_unlock(&hooks->lock);
    return error;
}

static void *hook_alloc(extent_hooks_t *extent_hooks, void *new_addr, size_t size, size_t alignment, bool *zero, bool *commit,
                        unsigned arena) {
    struct pool_hooks *hooks = (struct pool_hooks *)extent_hooks;
    void *pages;
    int error;
    (void)arena;
    /* An address that jemalloc chooses may be in use. */
    if (new_addr != NULL) return NULL;
    error = *zero ? pageset_alloc_run_aligned_zeroed(hooks->pool, size, alignment, &pages)
                  : pageset_alloc_run_aligned(hooks->pool, size, alignment, &pages);
    if (error != 0) return NULL;
    if (note(hooks, pages) != 0) {
        pageset_free_run(hooks->pool, pages);
        return NULL;
    }
    *commit = true;
    return pages;
}

/* Refuses, so that jemalloc keeps the memory for its next request. */
static bool hook_dalloc(extent_hooks_t *extent_hooks, void *addr, size_t size, bool committed, unsigned arena) {
    (void)extent_hooks, (void)addr, (void)size, (void)committed, (void)arena;
    return true;
}

/* Does nothing at the end of the arena, because pool_hooks_close frees whole runs. */
static void hook_destroy(extent_hooks_t *extent_hooks, void *addr, size_t size, bool committed, unsigned arena) {
    (void)extent_hooks, (void)addr, (void)size, (void)committed, (void)arena;
}

/* Gives idle memory back to the system. jemalloc expects zeros when jemalloc uses the memory again. In a file,
 * only a hole reads as zeros. */
static bool hook_purge(extent_hooks_t *extent_hooks, void *addr, size_t size, size_t offset, size_t length, unsigned arena) {
    struct pool_hooks *hooks = (struct pool_hooks *)extent_hooks;
    int memfd;
    (void)size, (void)arena;
    return madvise((char *)addr + offset, length,
                   pageset_get_memfd(hooks->pool, &memfd) == 0 ? MADV_REMOVE : MADV_DONTNEED) != 0;
}

static bool hook_split(extent_hooks_t *extent_hooks, void *addr, size_t size, size_t size_a, size_t size_b, bool committed,
                       unsigned arena) {
    (void)extent_hooks, (void)addr, (void)size, (void)size_a, (void)size_b, (void)committed, (void)arena;
    return false;
}

/* Allows every merge of neighbours, because the hooks free only the runs that the hooks allocated. */
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
    while (hooks->lists != NULL) {
        struct pool_hooks_list *list = hooks->lists;
        size_t index;
        int error;
        for (index = 0; index < list->count; index++) {
            error = pageset_free_run(hooks->pool, list->runs[index]);
            if (first == 0) first = error;
        }
        hooks->lists = list->next;
        error = pageset_free(hooks->pool, list, 0);
        if (first == 0) first = error;
    }
    pthread_mutex_destroy(&hooks->lock);
    return first;
}
