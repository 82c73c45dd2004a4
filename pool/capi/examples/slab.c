/*
 * A slab cache in C89: objects of one size in slabs of 64 KiB. Free objects form a list. The record of a slab
 * is in an array by the slab's number, not in its pages. Build it like blocks.c.
 */
#include <pageset.h>
#include <stdio.h>
#include <string.h>

#define SLAB_ORDER 4
#define SLAB_BYTES ((size_t)4096 << SLAB_ORDER)
#define POOL_BYTES ((size_t)64 << 20)
#define SLABS (POOL_BYTES / SLAB_BYTES)
#define NONE SLABS

struct object {
    struct object *next;
};

/* The record of a slab. A slab with free objects is in the cache's list. */
struct slab {
    struct object *free;
    unsigned used;
    size_t next, previous;
};

struct cache {
    pageset_pool *pool;
    char *start;
    size_t object_bytes, first;
    struct slab slabs[SLABS];
};

static void link_slab(struct cache *cache, size_t at) {
    struct slab *slab = &cache->slabs[at];

    slab->previous = NONE;
    slab->next = cache->first;
    if (slab->next != NONE) cache->slabs[slab->next].previous = at;
    cache->first = at;
}

static void unlink_slab(struct cache *cache, size_t at) {
    struct slab *slab = &cache->slabs[at];

    if (slab->next != NONE) cache->slabs[slab->next].previous = slab->previous;
    if (slab->previous != NONE) cache->slabs[slab->previous].next = slab->next;
    else cache->first = slab->next;
}

/* Allocates a slab, with all objects free. */
static int add_slab(struct cache *cache) {
    void *pages;
    size_t at, place;
    int error = pageset_alloc(cache->pool, SLAB_ORDER, &pages);

    if (error) return error;
    at = (size_t)((char *)pages - cache->start) / SLAB_BYTES;
    cache->slabs[at].free = NULL;
    cache->slabs[at].used = 0;
    for (place = SLAB_BYTES / cache->object_bytes; place-- > 0;) {
        struct object *object = (struct object *)((char *)pages + place * cache->object_bytes);
        object->next = cache->slabs[at].free;
        cache->slabs[at].free = object;
    }
    link_slab(cache, at);
    return 0;
}

static void *cache_alloc(struct cache *cache) {
    struct slab *slab;
    struct object *object;

    if (cache->first == NONE && add_slab(cache) != 0) return NULL;
    slab = &cache->slabs[cache->first];
    object = slab->free;
    slab->free = object->next;
    slab->used++;
    if (slab->free == NULL) unlink_slab(cache, cache->first);
    return object;
}

static void cache_free(struct cache *cache, void *pointer) {
    size_t at = (size_t)((char *)pointer - cache->start) / SLAB_BYTES;
    struct slab *slab = &cache->slabs[at];
    struct object *object = (struct object *)pointer;

    if (slab->free == NULL) link_slab(cache, at);
    object->next = slab->free;
    slab->free = object;
    if (--slab->used == 0) {
        /* The pool keeps the memory for the next slab, or gives it back to the system when it is idle. */
        unlink_slab(cache, at);
        pageset_free(cache->pool, cache->start + at * SLAB_BYTES, SLAB_ORDER);
    }
}

static int failed(void) {
    fprintf(stderr, "%s\n", pageset_message());
    return 1;
}

int main(void) {
    static struct cache cache;
    static void *objects[300000];
    pageset_config config;
    pageset_stats stats;
    void *start;
    size_t count = 0, at;

    pageset_config_init(&config, sizeof config);
    config.bytes = POOL_BYTES;
    if (pageset_create(&config, &cache.pool) != 0 || pageset_get_start(cache.pool, &start) != 0) return failed();
    cache.start = (char *)start;
    cache.object_bytes = 200;
    cache.first = NONE;
    while (count < 300000) {
        objects[count] = cache_alloc(&cache);
        if (objects[count] == NULL) return failed();
        memset(objects[count], (int)count, cache.object_bytes);
        count++;
    }
    if (pageset_get_stats(cache.pool, &stats, sizeof stats) != 0) return failed();
    printf("%lu objects in %lu pages\n", (unsigned long)count, (unsigned long)stats.nr_used);
    for (at = 0; at < count; at += 2) {
        if (*(unsigned char *)objects[at] != (unsigned char)at) return 1;
        cache_free(&cache, objects[at]);
    }
    for (at = 1; at < count; at += 2) {
        if (((unsigned char *)objects[at])[199] != (unsigned char)at) return 1;
        cache_free(&cache, objects[at]);
    }
    return pageset_destroy(cache.pool) == 0 ? 0 : failed();
}
