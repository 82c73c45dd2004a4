/*
 * An arena of jemalloc whose memory is a pool. Build:
 *     cc jemalloc.c jemalloc_hooks.c $(pkg-config --cflags --libs pageset jemalloc) -pthread -o jemalloc
 * `./jemalloc memfd` takes a pool whose memory is a file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jemalloc_hooks.h"

#define POOL_BYTES ((size_t)256 << 20)
#define LARGE_BYTES ((size_t)9 << 20)
#define LIVE 5000

static int failed(const char *what, int error) {
    fprintf(stderr, "%s: %s (%s)\n", what, strerror(error), pageset_message());
    return 1;
}

int main(int argument_count, char **arguments) {
    static unsigned char *objects[LIVE];
    static size_t sizes[LIVE];
    struct pool_hooks hooks;
    extent_hooks_t *extent_hooks = &hooks.extent_hooks;
    pageset_config config;
    pageset_pool *pool;
    pageset_stats stats;
    unsigned char *large;
    void *start;
    size_t size = sizeof(unsigned), wrong = 0, outside = 0, index, round;
    unsigned arena, random = 1;
    char name[64];
    int error;

    pageset_config_init(&config, sizeof config);
    config.bytes = POOL_BYTES;
    if (argument_count > 1 && strcmp(arguments[1], "memfd") == 0) config.backing = PAGESET_BACKING_MEMFD;
    if ((error = pageset_create(&config, &pool)) != 0) return failed("create", error);
    if ((error = pool_hooks_open(&hooks, pool)) != 0) return failed("hooks", error);
    error = mallctl("arenas.create", &arena, &size, &extent_hooks, sizeof extent_hooks);
    if (error != 0) return failed("arenas.create", error);
    pageset_get_start(pool, &start);

    /* Allocate and free objects of 16 bytes to 64 KiB. Each object must keep its contents, and lie in the
     * pool. */
    for (round = 0; round < 200000; round++) {
        random = random * 1664525u + 1013904223u;
        index = (random >> 8) % LIVE;
        if (objects[index] != NULL) {
            wrong += objects[index][0] != (unsigned char)index || objects[index][sizes[index] - 1] != (unsigned char)index;
            dallocx(objects[index], MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
        }
        sizes[index] = (size_t)16 << (random >> 28 > 12 ? 12 : random >> 28);
        objects[index] = mallocx(sizes[index], MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
        if (objects[index] == NULL) return failed("mallocx", ENOMEM);
        objects[index][0] = objects[index][sizes[index] - 1] = (unsigned char)index;
        outside += (size_t)((char *)objects[index] - (char *)start) >= POOL_BYTES;
    }
    pageset_get_stats(pool, &stats, sizeof stats);
    printf("%lu objects are wrong, %lu outside of the pool\n", (unsigned long)wrong, (unsigned long)outside);
    if (wrong != 0 || outside != 0 || stats.nr_used == 0) return 1;

    /* Allocate objects that are larger than a block. After a purge, their memory must be zero again. */
    for (round = 0; round < 3; round++) {
        large = (unsigned char *)mallocx(LARGE_BYTES, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE | MALLOCX_ZERO);
        if (large == NULL) return failed("mallocx", ENOMEM);
        outside += (size_t)((char *)large - (char *)start) >= POOL_BYTES;
        for (index = 0; index < LARGE_BYTES; index += 1024) wrong += large[index] != 0;
        memset(large, 1, LARGE_BYTES);
        dallocx(large, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
        snprintf(name, sizeof name, "arena.%u.purge", arena);
        if ((error = mallctl(name, NULL, NULL, NULL, 0)) != 0) return failed(name, error);
    }
    printf("%lu bytes are not zero, %lu large objects outside of the pool\n", (unsigned long)wrong, (unsigned long)outside);
    if (wrong != 0 || outside != 0) return 1;

    /* The end of the arena also frees its objects. */
    snprintf(name, sizeof name, "arena.%u.destroy", arena);
    if ((error = mallctl(name, NULL, NULL, NULL, 0)) != 0) return failed(name, error);
    if ((error = pool_hooks_close(&hooks)) != 0) return failed("close", error);
    if ((error = pageset_validate(pool)) != 0) return failed("validate", error);
    if ((error = pageset_destroy(pool)) != 0) return failed("destroy", error);
    puts("all pages are back");
    return 0;
}
