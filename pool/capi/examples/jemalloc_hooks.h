/*
 * jemalloc over a pool: extent hooks whose memory is pages of libpageset. An arena with these hooks has huge pages, a hard
 * capacity, one NUMA node, or a shared file, as its pool has. What is larger than a block of a pool (4 MiB) comes from mmap.
 *
 *     pool_hooks_open(&hooks, pool);
 *     extent_hooks_t *extent_hooks = &hooks.extent_hooks;
 *     mallctl("arenas.create", &arena, &size, &extent_hooks, sizeof extent_hooks);
 *     ... mallocx(n, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE) ...
 *     mallctl("arena.N.destroy", ...);
 *     pool_hooks_close(&hooks);
 */
#ifndef JEMALLOC_HOOKS_H
#define JEMALLOC_HOOKS_H

#include <jemalloc/jemalloc.h>
#include <pageset.h>
#include <pthread.h>

struct pool_hooks_list;

struct pool_hooks {
    extent_hooks_t extent_hooks; /* First, since jemalloc passes its address to the hooks. */
    pageset_pool *pool;
    pthread_mutex_t lock;
    struct pool_hooks_list *blocks; /* What the arena got. Pages of the pool, too. */
};

/* Gets hooks ready for the pool. 0, or a number of errno.h. */
int pool_hooks_open(struct pool_hooks *hooks, pageset_pool *pool);

/* Frees everything that the arena got; the arena has been destroyed. 0, or a number of errno.h. */
int pool_hooks_close(struct pool_hooks *hooks);

#endif
