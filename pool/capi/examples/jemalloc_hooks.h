/*
 * jemalloc over a pool: extent hooks whose memory is pages of libpageset. An arena with these hooks has the
 * pool's huge pages, capacity, NUMA node, or shared file.
 * A purge changes the pages behind addresses, so the pool must not be pinned.
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
    extent_hooks_t extent_hooks; /* The first field, because jemalloc passes its address to the hooks. */
    pageset_pool *pool;
    pthread_mutex_t lock;
    struct pool_hooks_list *lists; /* The runs that the arena got. The lists are in pages of the pool. */
};

/* Prepares hooks for the pool. Returns 0 or a number of errno.h. */
int pool_hooks_open(struct pool_hooks *hooks, pageset_pool *pool);

/* Frees all memory of the arena, which must have been destroyed. Returns 0 or a number of errno.h. */
int pool_hooks_close(struct pool_hooks *hooks);

#endif
