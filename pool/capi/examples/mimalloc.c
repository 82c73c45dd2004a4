/*
 * An arena of mimalloc in a run of a pool: a heap of mimalloc has the pool's huge pages, node or file. mimalloc
 * 2.0.9 crashes if the arena is not aligned to its segments of 32 MiB. Build it like blocks.c, with -lmimalloc.
 */
#include <mimalloc.h>
#include <pageset.h>
#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)128 << 20)
#define ALIGN_BYTES ((size_t)32 << 20)

static int failed(void) {
    fprintf(stderr, "%s\n", pageset_message());
    return 1;
}

int main(void) {
    static void *objects[100000];
    pageset_config config;
    pageset_pool *pool;
    mi_arena_id_t arena;
    mi_heap_t *heap;
    void *run;
    char *start;
    size_t at, inside = 0;

    pageset_config_init(&config, sizeof config);
    config.bytes = 2 * ARENA_BYTES;
    if (pageset_create(&config, &pool) != 0) return failed();
    if (pageset_alloc_run_aligned_zeroed(pool, ARENA_BYTES, ALIGN_BYTES, &run) != 0) return failed();
    /* The run may be used at once, is not locked, is zero, may be on any node, and is only for this heap. */
    if (!mi_manage_os_memory_ex(run, ARENA_BYTES, 1, 0, 1, -1, 1, &arena)) return 1;
    heap = mi_heap_new_in_arena(arena);
    start = (char *)run;
    for (at = 0; at < 100000; at++) {
        objects[at] = mi_heap_malloc(heap, 16 + at % 1000);
        if (objects[at] == NULL) return 1;
        memset(objects[at], (int)at, 16);
        inside += (char *)objects[at] >= start && (char *)objects[at] < start + ARENA_BYTES;
    }
    for (at = 0; at < 100000; at++) {
        if (*(unsigned char *)objects[at] != (unsigned char)at) return 1;
        mi_free(objects[at]);
    }
    printf("%lu of 100000 objects in the pool\n", (unsigned long)inside);
    /* mimalloc keeps an arena for ever, so neither the run nor the pool is freed. */
    return inside == 100000 && pageset_validate(pool) == 0 ? 0 : failed();
}
